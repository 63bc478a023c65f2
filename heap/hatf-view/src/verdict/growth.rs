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

/// The share of the peak that the growth of all live memory must reach to be mentioned: a twentieth.
const LITTLE: f64 = 20.0;
/// The share of the peak that the growth of one function must reach to be mentioned if the whole does not grow.
const LITTLE_OF_ONE: f64 = 100.0;

/// Describes the growth of live memory if it is certain: the 95% confidence interval is above 0, and the growth goes on
/// in the last third of the run. If the memory as a whole does not grow, describes the function that grows most.
/// Returns `None` if the growth is small compared to the `peak` of live bytes. `what` is the subject of the sentence about
/// the whole, and `functions` is `None` if the trace has no stacks.
///
/// The rule is that of [`Trend`](hatf_lab::history::Trend), which examines all of the run. A temporary peak is a single
/// rise and a single fall, so it is not growth.
#[must_use]
pub fn growth(
    what: &str,
    whole: Option<Growth>,
    functions: Option<Vec<GrowingFunction>>,
    has_times: bool,
    peak: u64,
) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "the threshold is not exact")]
    let peak = peak as f64;
    let has_functions = functions.is_some();
    let mut functions = functions.unwrap_or_default();
    functions.retain(|function| is_growing(&function.growth) && function.growth.total * LITTLE_OF_ONE >= peak);
    functions.sort_by(|a, b| b.growth.rate.total_cmp(&a.growth.rate));
    let Some(whole) = whole.filter(|whole| is_growing(whole) && whole.total * LITTLE >= peak) else {
        let GrowingFunction { name, growth } = functions.into_iter().next()?;
        return Some(format!("The memory of {name} grows by {}.", rate(&growth, has_times)));
    };
    let rated = rate(&whole, has_times);
    let by = match functions.first() {
        None if !has_functions => String::new(),
        None => ", but no single function is certain to grow".to_owned(),
        Some(first) if first.growth.rate * 2.0 > whole.rate => format!(", mostly in {}", first.name),
        Some(first) => format!(", most of all in {}", first.name),
    };
    Some(format!("{what} grows by {rated}{by}."))
}

fn is_growing(growth: &Growth) -> bool {
    growth.direction == Direction::Growing
}

/// Formats a rate with its confidence interval.
fn rate(growth: &Growth, has_times: bool) -> String {
    let per = if has_times { "/s" } else { " per 1,000 events" };
    let [rate, low, high] = [growth.rate, growth.low, growth.high].map(|rate| Value::Bytes(bytes(rate)));
    format!("{rate}{per} (95% range {low} to {high})")
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the rate is positive")]
fn bytes(rate: f64) -> u64 {
    rate.round() as u64
}
