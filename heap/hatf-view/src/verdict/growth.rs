//! The sentence about growth.

use hatf_lab::history::Direction;
use hatf_lab::leaks::Growth;
use metatf_page::Value;

/// The growth of a function's live memory.
#[derive(Clone, Debug)]
pub struct GrowingFunction {
    /// The name of the function.
    pub name: String,
    /// The growth.
    pub growth: Growth,
}

/// The run in which memory grew.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Whether the trace has times. Otherwise, rates are per event.
    pub has_times: bool,
    /// Whether the program exited, rather than being killed or still running.
    pub exited: bool,
    /// The peak of live bytes.
    pub peak: u64,
}

impl Run {
    /// Returns whether a quantity grew, for long enough, and at a rate that is certain enough to be mentioned.
    #[must_use]
    pub fn is_certain(self, growth: &Growth) -> bool {
        let shortest = if self.exited { SHORTEST } else { SHORTEST_OF_KILLED };
        let is_long = !self.has_times || growth.total >= growth.rate * shortest;
        growth.direction == Direction::Growing && is_long && growth.high <= growth.low * UNCERTAIN
    }
}

/// Reciprocal of the share of the peak that growth must reach to be mentioned: a twentieth.
const LITTLE: f64 = 20.0;
/// The minimum duration of growth in seconds. Programs that load data and exit often take less.
const SHORTEST: f64 = 1.0;
/// The minimum duration of growth in seconds if the program did not end by itself.
const SHORTEST_OF_KILLED: f64 = 0.3;
/// The maximum ratio of the ends of the confidence interval.
const UNCERTAIN: f64 = 4.0;

/// Describes the growth of live memory if it is certain: the 95% confidence interval is above 0 and narrow, and the
/// growth goes on in the last third of the run. If the memory as a whole does not grow, describes the function that grows
/// most. Returns `None` if the run is short or the growth is small compared to the peak of live bytes. `what` is the
/// subject of the sentence about the whole, and `functions` is `None` if the trace has no stacks.
///
/// The rule is that of [`Trend`](hatf_lab::history::Trend), which examines all of the run. A temporary peak is a single
/// rise and a single fall, so it is not growth.
#[must_use]
pub fn growth(what: &str, whole: Option<Growth>, functions: Option<Vec<GrowingFunction>>, run: Run) -> Option<String> {
    let Run { has_times, peak, .. } = run;
    #[expect(clippy::cast_precision_loss, reason = "the threshold is not exact")]
    let peak = peak as f64;
    let has_functions = functions.is_some();
    let mut functions = functions.unwrap_or_default();
    let is_growing = |growth: &Growth| growth.direction == Direction::Growing;
    let is_notable = |growth: &Growth| run.is_certain(growth) && growth.total * LITTLE >= peak;
    functions.retain(|function| is_growing(&function.growth));
    functions.sort_by(|a, b| b.growth.rate.total_cmp(&a.growth.rate));
    let Some(whole) = whole.filter(is_notable) else {
        let GrowingFunction { name, growth } = functions.into_iter().find(|one| is_notable(&one.growth))?;
        return Some(format!("The memory of {name} grew by {}.", rate(&growth, has_times)));
    };
    let rated = rate(&whole, has_times);
    let by = match functions.first() {
        None if !has_functions => String::new(),
        None => ", but no single function certainly grew".to_owned(),
        Some(first) if first.growth.rate * 2.0 > whole.rate => format!(", mostly in {}", first.name),
        Some(first) => format!(", of which {} is in {}", per(first.growth.rate, has_times), first.name),
    };
    Some(format!("{what} grew by {rated}{by}."))
}

/// Formats a rate with its confidence interval.
fn rate(growth: &Growth, has_times: bool) -> String {
    let [low, high] = [growth.low, growth.high].map(|rate| Value::Bytes(bytes(rate)));
    format!("{} (95% range {low} to {high})", per(growth.rate, has_times))
}

/// Formats a rate.
fn per(rate: f64, has_times: bool) -> String {
    format!("{}{}", Value::Bytes(bytes(rate)), if has_times { "/s" } else { " per 1,000 events" })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rate is positive")]
fn bytes(rate: f64) -> u64 {
    rate.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatf_lab::history::{MostAndLast, Stretches};

    /// Returns the growth of a quantity that changes by `slope` per millisecond (more precisely, per 2^20 nanoseconds).
    fn line(slope: u64, milliseconds: u64) -> Growth {
        let mut curve = Stretches::<MostAndLast>::new(1 << 20);
        (0..milliseconds).for_each(|time| curve.note(time << 20, MostAndLast::from(1000 + slope * time)));
        Growth::of_curve(&curve, milliseconds << 20).unwrap()
    }

    #[test]
    fn only_certain_and_notable_growth_is_mentioned() {
        let function = |slope, time| Some(vec![GrowingFunction { name: "f".to_owned(), growth: line(slope, time) }]);
        let text = |whole, time, functions, peak| {
            growth("Live memory", Some(line(whole, time)), functions, Run { has_times: true, exited: false, peak })
        };
        let grows = text(100, 500, function(90, 500), 60_000).unwrap();
        assert!(grows.starts_with("Live memory grew by 93."), "{grows}");
        assert!(grows.ends_with("), mostly in f."), "{grows}");
        let part = text(100, 500, function(30, 500), 60_000).unwrap();
        assert!(part.contains("), of which 2") && part.ends_with(" KiB/s is in f."), "{part}");
        assert!(text(100, 500, function(0, 500), 60_000).unwrap().ends_with("no single function certainly grew."));
        assert!(text(100, 500, None, 60_000).unwrap().ends_with("KiB)."));
        // The growth of one function is hidden by the rest.
        assert!(text(0, 500, function(100, 500), 60_000).unwrap().starts_with("The memory of f grew by 93."));
        assert_eq!(text(0, 500, function(0, 500), 60_000), None);
        // The growth is small, and the run is short.
        assert_eq!(text(100, 500, function(100, 500), 10_000_000), None);
        assert_eq!(text(1000, 90, function(1000, 90), 60_000), None);
        let exited = Run { has_times: true, exited: true, peak: 60_000 };
        assert_eq!(growth("Live memory", Some(line(100, 500)), None, exited), None);
        assert!(growth("Live memory", Some(line(100, 1200)), None, exited).is_some());
        let mut uncertain = line(100, 1200);
        (uncertain.low, uncertain.high) = (1000.0, 5000.0);
        assert_eq!(growth("Live memory", Some(uncertain), None, exited), None);
    }
}
