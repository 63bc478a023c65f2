//! Detects growth of live memory from the change per time interval and the confidence interval of this change.
//!
//! Most live memory was already live in the previous interval, so the values of a series depend on each other. A line
//! fitted to them, by least squares or as the median of all slopes, therefore appears more certain than it is. A cache
//! that merely fluctuates would look like a leak. The changes in one interval hardly depend on the changes in the
//! previous interval, so this module examines differences between neighbouring values. Their centre is estimated as the
//! median of the means of all pairs (Hodges and Lehmann). The confidence interval is computed from Wilcoxon's signed
//! ranks, a method that assumes only that the distribution is symmetric: Hollander, Wolfe and Chicken, "Nonparametric
//! Statistical Methods", third edition, 3.2 and 3.3. A single step, a table that doubles and the teardown at the end
//! contribute only a few of many differences, so they do not count as growth. A series that stops growing before its
//! last third, such as a cache that has filled up, does not count as growing either.

use serde::Serialize;

/// The minimum number of differences for which a 95% confidence interval exists.
pub const FEWEST: usize = 6;

/// The minimum number of differences in the last third. With four, the teardown at the end does not hide the growth.
const LATE_FEWEST: usize = 4;

/// The probability that the true change is outside the confidence interval.
const CHANCE: f64 = 0.05;

/// The maximum number of differences. Up to this number, rank sums are exact.
const MOST: usize = 50;

/// The direction of a trend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Growing: the entire confidence interval is above 0, and the estimate for the last third is too.
    Growing,
    /// Shrinking: the entire confidence interval is below 0.
    Shrinking,
    /// Unchanged from one interval to the next, or fluctuating.
    Steady,
}

/// The change of a series from one value to the next.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::{Direction, Trend};
///
/// let leak: Vec<u64> = (0..20).map(|n| n * 64).collect();
/// let trend = Trend::of(&leak).ok_or("too few values")?;
/// assert_eq!((trend.direction, trend.change), (Direction::Growing, 64.0));
/// // A cache that fills and is emptied does not grow.
/// let cache: Vec<u64> = (0..20).map(|n| n % 5 * 1_000).collect();
/// assert_eq!(Trend::of(&cache).map(|trend| trend.direction), Some(Direction::Steady));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Trend {
    /// The direction of the change.
    pub direction: Direction,
    /// The estimated change from one value to the next.
    pub change: f64,
    /// The lower bound of the 95% confidence interval.
    pub low: f64,
    /// The upper bound of the 95% confidence interval.
    pub high: f64,
    /// The number of differences used for the estimate.
    pub differences: usize,
}

impl Trend {
    /// Returns the trend of values sampled at equal intervals, or `None` if there are too few or too many values.
    #[must_use]
    pub fn of(values: &[u64]) -> Option<Self> {
        let differences: Vec<f64> = values.iter().zip(values.iter().skip(1)).map(|(a, b)| difference(*a, *b)).collect();
        if !(FEWEST..=MOST).contains(&differences.len()) {
            return None;
        }
        let means = pair_means(&differences);
        let at = |index: usize| means.get(index).copied();
        let outside = rank_sum(differences.len())?;
        let (low, high) = (at(outside)?, at(means.len().checked_sub(outside + 1)?)?);
        let change = centre(&means)?;
        let late = differences.len() - (differences.len() / 3).max(LATE_FEWEST);
        let late = centre(&pair_means(differences.get(late..)?))?;
        let direction = match (low, high) {
            _ if low > 0.0 && late > 0.0 => Direction::Growing,
            _ if high < 0.0 => Direction::Shrinking,
            _ => Direction::Steady,
        };
        Some(Self { direction, change, low, high, differences: differences.len() })
    }
}

/// Returns the means of all pairs of values, including each value with itself, in ascending order.
fn pair_means(values: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (at, one) in values.iter().enumerate() {
        means.extend(values.iter().skip(at).map(|other| f64::midpoint(*one, *other)));
    }
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// Returns the median of sorted values.
fn centre(sorted: &[f64]) -> Option<f64> {
    let at = |index: usize| sorted.get(index).copied();
    Some(f64::midpoint(at(sorted.len().checked_sub(1)? / 2)?, at(sorted.len() / 2)?))
}

#[expect(clippy::cast_precision_loss, reason = "the result is an estimate")]
fn difference(before: u64, after: u64) -> f64 {
    if after >= before { (after - before) as f64 } else { -((before - after) as f64) }
}

/// Returns the number of pairwise means outside of the confidence interval on each side. This number is one more than
/// the largest rank sum whose cumulative probability is at most half of [`CHANCE`].
fn rank_sum(count: usize) -> Option<usize> {
    // Count the subsets of the ranks 1 to `count` by their sums; all subsets are equally likely.
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

    /// Critical values from statistical tables: T is significant at 5% (two-sided) if it does not exceed the value.
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
        // Growth in six of ten intervals.
        assert_eq!(direction((0..20).map(|n| n * 6 / 10)), Some(Growing));
        // A single step, a table that doubles, a cache that fills and is emptied, and the teardown after a steady
        // state.
        assert_eq!(direction((0..20).map(|n| if n < 9 { 10 } else { 1000 })), Some(Steady));
        assert_eq!(direction((1..21).map(|n: u64| n.next_power_of_two() * 64)), Some(Steady));
        assert_eq!(direction((0..20).map(|n| n % 5 * 1000)), Some(Steady));
        assert_eq!(direction((0..20).map(|n| if n < 19 { 5000 } else { 0 })), Some(Steady));
        // The teardown after growth.
        assert_eq!(direction((0..20).map(|n| if n < 19 { n * 100 } else { 0 })), Some(Growing));
        // A cache that fills during 60% of the run.
        assert_eq!(direction((0..20).map(|n: u64| n.min(12) * 100)), Some(Steady));
        assert_eq!(direction(0..6), None);
        assert_eq!(direction(0..7), Some(Growing));
        assert_eq!(direction([0, u64::MAX].repeat(10)), Some(Steady));
        let even = Trend::of(&(0..20).map(|n| n * 64).collect::<Vec<_>>()).unwrap();
        assert_eq!((even.change, even.low, even.high, even.differences), (64.0, 64.0, 64.0, 19));
    }

    /// The share of random walks classified as growing matches the confidence level: 2.5%. The same share is classified
    /// as shrinking.
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
                    // The sum of several values is nearly normal.
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
