//! Detection of memory growth and its cause, which is the program's blocks or other memory.

use hatf_lab::history::{MostAndLast, Stretches};
use serde::Serialize;

/// Minimum number of kernel samples for a verdict.
const FEWEST: u64 = 8;

/// Reciprocal of the minimum growth. Less growth (below one twentieth) is ignored.
const LITTLE: u64 = 20;

/// Growth from the second to the last quarter of a trace's time, so that neither startup nor final frees count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// Peak of resident private bytes in the second quarter and in the last.
    pub private: [u64; 2],
    /// Peak of live bytes in the second quarter and in the last.
    pub live: [u64; 2],
    /// The cause of the growth in pages.
    pub by: GrownBy,
}

/// The cause of growth in a program's private pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrownBy {
    /// None, because the pages grew by less than a twentieth.
    Nothing,
    /// The program, whose live blocks grew by at least two thirds as much as the pages.
    Program,
    /// Other memory, because the live blocks grew by at most a third as much as the pages. Either the allocator retains
    /// pages, or the memory does not come from the allocator.
    Other,
    /// Both the program and other memory.
    Both,
}

impl Grown {
    /// Compares the quarters. Returns `None` if there are too few kernel samples.
    pub(super) fn new(
        live: &Stretches<MostAndLast>,
        private: &Stretches<MostAndLast>,
        duration: u64,
        samples: u64,
    ) -> Option<Self> {
        if samples < FEWEST || duration == 0 {
            return None;
        }
        let quarters = |of: &Stretches<MostAndLast>| [most(of, duration, 1), most(of, duration, 3)];
        let (live, private) = (quarters(live), quarters(private));
        let grown = |[before, after]: [u64; 2]| after.saturating_sub(before);
        let (pages, blocks) = (grown(private), grown(live));
        let by = if pages.saturating_mul(LITTLE) <= private[0] {
            GrownBy::Nothing
        } else if blocks.saturating_mul(3) >= pages.saturating_mul(2) {
            GrownBy::Program
        } else if blocks.saturating_mul(3) <= pages {
            GrownBy::Other
        } else {
            GrownBy::Both
        };
        Some(Self { private, live, by })
    }
}

/// Returns the maximum during one quarter of the recording (0 to 3). If the quarter begins after the last stretch,
/// returns the last value, which stays constant from there on.
fn most(of: &Stretches<MostAndLast>, duration: u64, quarter: u64) -> u64 {
    let at = |quarter: u64| {
        let time = u128::from(duration) * u128::from(quarter) / 4;
        usize::try_from(time / u128::from(of.step.max(1))).unwrap_or(usize::MAX)
    };
    let (from, to) = (at(quarter), at(quarter + 1));
    let inside = of.points.iter().take(to.saturating_add(1)).skip(from).map(|point| point.most).max();
    inside.or_else(|| of.points.last().map(|point| point.last)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Fn(u64) -> u64) -> Stretches<MostAndLast> {
        let mut stretches = Stretches::new(1);
        (0..100).for_each(|time| stretches.note(time, MostAndLast::from(values(time))));
        stretches
    }

    #[test]
    fn who_grows() {
        let flat = of(|_| 1000);
        let grows = of(|time| 1000 + 10 * time);
        let torn_down = of(|time| if time < 98 { 1000 + 10 * time } else { 0 });
        for (live, private, by) in [
            (&flat, &flat, GrownBy::Nothing),
            (&grows, &grows, GrownBy::Program),
            (&torn_down, &grows, GrownBy::Program),
            (&flat, &grows, GrownBy::Other),
            (&of(|time| 1000 + 5 * time), &grows, GrownBy::Both),
            (&grows, &flat, GrownBy::Nothing),
            // The memory grows only at the start.
            (&flat, &of(|time| 1000 * time.min(20)), GrownBy::Nothing),
        ] {
            assert_eq!(Grown::new(live, private, 100, 8).map(|grown| grown.by), Some(by));
        }
        let grown = Grown::new(&flat, &grows, 100, 8).unwrap();
        assert_eq!((grown.private, grown.live), ([1500, 1990], [1000, 1000]));
        assert_eq!(Grown::new(&flat, &grows, 100, 7), None);
        assert_eq!(Grown::new(&flat, &Stretches::new(1), 0, 8), None);
        assert_eq!(Grown::new(&flat, &Stretches::new(1), 100, 8).map(|grown| grown.by), Some(GrownBy::Nothing));
    }
}
