//! Detection of memory growth and its cause, which is the program's blocks or other memory.

use hatf_lab::history::{Direction, MostAndLast, Stretches};
use hatf_lab::leaks::Growth;
use serde::Serialize;

/// Minimum number of kernel samples for a verdict.
const FEWEST: u64 = 8;

/// Reciprocal of the minimum growth. Less growth (below one twentieth of the peak) is ignored.
const LITTLE: f64 = 20.0;

/// The growth of resident private pages and of live blocks over the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Grown {
    /// The growth of resident private bytes.
    pub private: Growth,
    /// The growth of live bytes.
    pub live: Growth,
    /// The cause of the growth in pages.
    pub by: GrownBy,
}

/// The cause of growth in a program's private pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrownBy {
    /// None, because it is not certain that the pages grow by at least a twentieth of their peak.
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
    /// Compares both growths. Returns `None` if the run is too short or there are too few kernel samples.
    pub(super) fn new(
        live: &Stretches<MostAndLast>,
        private: &Stretches<MostAndLast>,
        duration: u64,
        samples: u64,
    ) -> Option<Self> {
        if samples < FEWEST {
            return None;
        }
        let peak = private.points.iter().map(|point| point.most).max().unwrap_or(0);
        let (live, private) = (Growth::of_curve(live, duration)?, Growth::of_curve(private, duration)?);
        #[expect(clippy::cast_precision_loss, reason = "the threshold is not exact")]
        let is_little = private.direction != Direction::Growing || private.total * LITTLE < peak as f64;
        let blocks = if live.direction == Direction::Growing { live.rate } else { 0.0 };
        let by = if is_little {
            GrownBy::Nothing
        } else if blocks * 3.0 >= private.rate * 2.0 {
            GrownBy::Program
        } else if blocks * 3.0 <= private.rate {
            GrownBy::Other
        } else {
            GrownBy::Both
        };
        Some(Self { private, live, by })
    }
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
        // A temporary peak of live blocks, whose pages the allocator keeps.
        let peak = of(|time| if (60..80).contains(&time) { 3000 } else { 1000 });
        let pages_of_peak = of(|time| if time < 60 { 1000 } else { 3000 });
        for (live, private, by) in [
            (&flat, &flat, GrownBy::Nothing),
            (&grows, &grows, GrownBy::Program),
            (&torn_down, &grows, GrownBy::Program),
            (&flat, &grows, GrownBy::Other),
            (&of(|time| 1000 + 5 * time), &grows, GrownBy::Both),
            (&grows, &flat, GrownBy::Nothing),
            (&peak, &pages_of_peak, GrownBy::Nothing),
            // The memory grows only at the start.
            (&flat, &of(|time| 1000 * time.min(20)), GrownBy::Nothing),
        ] {
            assert_eq!(Grown::new(live, private, 100, 8).map(|grown| grown.by), Some(by));
        }
        let grown = Grown::new(&flat, &grows, 100, 8).unwrap();
        assert_eq!((grown.private.total.round(), grown.live.total), (1000.0, 0.0));
        assert_eq!(Grown::new(&flat, &grows, 100, 7), None);
        assert_eq!(Grown::new(&flat, &Stretches::new(1), 0, 8), None);
        assert_eq!(Grown::new(&flat, &Stretches::new(1), 100, 8).map(|grown| grown.by), Some(GrownBy::Nothing));
    }
}
