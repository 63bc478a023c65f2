//! Whether what is live grows: by how much from one interval of time to the next, and how sure that is.
//!
//! What is live now was mostly live before, so the values of a series depend on each other. A line fitted through them, by least squares or as
//! the median of all slopes, then seems surer than it is: a cache that only wanders passes for a leak. What came and went in one interval says
//! little of the next, so this looks at the differences of neighbours. Their centre is estimated by the median of the means of all pairs (Hodges
//! and Lehmann), and its interval of confidence is that of Wilcoxon's signed ranks, which assumes no distribution but a symmetric one:
//! Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", third edition, 3.2 and 3.3. A single step, a table that doubles and the
//! tear-down at the end are a few differences among many, and do not count as growth.

use serde::Serialize;

/// The fewest differences that chance would not make as well: of fewer, an interval of 95 % does not exist.
pub const FEWEST: usize = 6;

/// The chance that the true change is outside of the interval.
const CHANCE: f64 = 0.05;

/// The differences of neighbours that are looked at, at most: sums of ranks stay exact.
const MOST: usize = 50;

/// Where something goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// It grows: the whole interval of confidence is above 0.
    Growing,
    /// It shrinks.
    Shrinking,
    /// It is the same from one interval to the next, or goes up and down.
    Steady,
}

/// How a series changes from one value to the next.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Where it goes.
    pub direction: Direction,
    /// The change from one value to the next, estimated.
    pub change: f64,
    /// The least change in the interval of 95 %.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The differences that it was estimated from.
    pub differences: usize,
}

impl Trend {
    /// Finds how values change that were taken at equal distances. `None`: there are too few.
    #[must_use]
    pub fn of(values: &[u64]) -> Option<Self> {
        let differences: Vec<f64> = values.iter().zip(values.iter().skip(1)).map(|(a, b)| difference(*a, *b)).collect();
        if !(FEWEST..=MOST).contains(&differences.len()) {
            return None;
        }
        let mut means = Vec::with_capacity(differences.len() * (differences.len() + 1) / 2);
        for (at, one) in differences.iter().enumerate() {
            means.extend(differences.iter().skip(at).map(|other| f64::midpoint(*one, *other)));
        }
        means.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| means.get(index).copied();
        let outside = rank_sum(differences.len())?;
        let (low, high) = (at(outside)?, at(means.len().checked_sub(outside + 1)?)?);
        let change = f64::midpoint(at((means.len() - 1) / 2)?, at(means.len() / 2)?);
        let direction = match (low, high) {
            _ if low > 0.0 => Direction::Growing,
            _ if high < 0.0 => Direction::Shrinking,
            _ => Direction::Steady,
        };
        Some(Self { direction, change, low, high, differences: differences.len() })
    }
}

#[expect(clippy::cast_precision_loss, reason = "an estimate")]
fn difference(before: u64, after: u64) -> f64 {
    if after >= before { (after - before) as f64 } else { -((before - after) as f64) }
}

/// Returns the means that lie outside of the interval on each side: one more than the greatest sum of ranks that has at most half of the chance.
fn rank_sum(count: usize) -> Option<usize> {
    // How many of the sets of ranks 1 to `count` have each sum; all are equally likely.
    let mut sets = vec![0_f64; count * (count + 1) / 2 + 1];
    *sets.first_mut()? = 1.0;
    for rank in 1..=count {
        for sum in (rank..sets.len()).rev() {
            let less = sets.get(sum - rank).copied()?;
            *sets.get_mut(sum)? += less;
        }
    }
    let all: f64 = sets.iter().sum();
    let mut below = 0.0;
    sets.iter().position(|sets| {
        below += sets;
        below > all * CHANCE / 2.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{Growing, Shrinking, Steady};

    fn direction(values: impl IntoIterator<Item = u64>) -> Option<Direction> {
        let values: Vec<u64> = values.into_iter().collect();
        Trend::of(&values).map(|trend| trend.direction)
    }

    /// Critical values of the books' tables: T is significant at 5 %, two-sided, if it is at most this.
    #[test]
    fn ranks_are_those_of_the_tables() {
        let tables =
            [(5, None), (6, Some(0)), (8, Some(3)), (10, Some(8)), (15, Some(25)), (20, Some(52)), (25, Some(89))];
        for (count, greatest) in tables {
            assert_eq!(rank_sum(count).and_then(|outside| outside.checked_sub(1)), greatest, "{count}");
        }
    }

    #[test]
    fn what_grows_and_what_does_not() {
        assert_eq!(direction((0..20).map(|n| n * 64)), Some(Growing));
        assert_eq!(direction((0..20).map(|n| 10_000 - n * 64)), Some(Shrinking));
        assert_eq!(direction([7; 20]), Some(Steady));
        // It grows in six of ten intervals.
        assert_eq!(direction((0..20).map(|n| n * 6 / 10)), Some(Growing));
        // One step; a table that doubles; a cache that fills and is emptied; the tear-down at the end of what was steady.
        assert_eq!(direction((0..20).map(|n| if n < 9 { 10 } else { 1000 })), Some(Steady));
        assert_eq!(direction((1..21).map(|n: u64| n.next_power_of_two() * 64)), Some(Steady));
        assert_eq!(direction((0..20).map(|n| n % 5 * 1000)), Some(Steady));
        assert_eq!(direction((0..20).map(|n| if n < 19 { 5000 } else { 0 })), Some(Steady));
        // And of what grew.
        assert_eq!(direction((0..20).map(|n| if n < 19 { n * 100 } else { 0 })), Some(Growing));
        assert_eq!(direction(0..6), None);
        assert_eq!(direction(0..7), Some(Growing));
        assert_eq!(direction([0, u64::MAX].repeat(10)), Some(Steady));
        let even = Trend::of(&(0..20).map(|n| n * 64).collect::<Vec<_>>()).unwrap();
        assert_eq!((even.change, even.low, even.high, even.differences), (64.0, 64.0, 64.0, 19));
    }

    /// Series that only wander are called growing as seldom as the confidence promises: 2.5 % of them, and as many shrinking.
    #[test]
    fn what_wanders_seldom_grows() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut count = [0; 2];
        for _ in 0..4000 {
            let mut live = 1_u64 << 40;
            let walk: Vec<u64> = (0..20)
                .map(|_| {
                    // The sum of several is near to normal.
                    live = live + (0..8).map(|_| random() % 2001).sum::<u64>() - 8000;
                    live
                })
                .collect();
            match direction(walk) {
                Some(Growing) => count[0] += 1,
                Some(Shrinking) => count[1] += 1,
                _ => {}
            }
        }
        assert!(count.iter().all(|count| (60..140).contains(count)), "{count:?} of 4000");
    }
}
