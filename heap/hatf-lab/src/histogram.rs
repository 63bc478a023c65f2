//! Counts of values in classes, which are powers of two for printing and finer classes for quantiles.

use crate::classes::{CLASSES, bounds, class_of};
use serde::Serialize;

/// Values below this number are counted exactly. Above, each power of two is divided into this many classes.
const FINE: u64 = 1 << FINE_BITS;
const FINE_BITS: u32 = 7;

/// Counts of values in the classes `0`, `1`, `2..3`, `4..7` and so on, and in finer classes. The maximum of a finer
/// class exceeds its minimum by less than 1/128 (0.8%).
///
/// # Examples
///
/// ```
/// use hatf_lab::statistics::Histogram;
///
/// let mut sizes = Histogram::default();
/// for size in [24, 24, 40, 100] {
///     sizes.add(size, size);
/// }
/// assert_eq!((sizes.count(), sizes.quantile(500)), (4, 24));
/// let buckets: Vec<_> = sizes.buckets().map(|bucket| (bucket.from, bucket.to, bucket.count)).collect();
/// assert_eq!(buckets, [(16, 31, 2), (32, 63, 1), (64, 127, 1)]);
/// ```
#[derive(Clone, Debug)]
pub struct Histogram {
    classes: [(u64, u64); CLASSES],
    fine: Vec<u64>,
    greatest: u64,
}

/// A class of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The minimum value of the class.
    pub from: u64,
    /// The maximum value of the class.
    pub to: u64,
    /// The number of values.
    pub count: u64,
    /// The total number of bytes that the values represent.
    pub bytes: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let powers = (u64::BITS - FINE_BITS + 1) as usize;
        Self { classes: [(0, 0); CLASSES], fine: vec![0; powers << FINE_BITS], greatest: 0 }
    }
}

impl Histogram {
    /// Counts a value that represents `bytes` bytes.
    #[inline]
    pub fn add(&mut self, value: u64, bytes: u64) {
        if let Some((count, sum)) = self.classes.get_mut(class_of(value)) {
            *count += 1;
            *sum = sum.saturating_add(bytes);
        }
        if let Some(count) = self.fine.get_mut(fine_class(value)) {
            *count += 1;
        }
        self.greatest = self.greatest.max(value);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (mine, other) in self.classes.iter_mut().zip(&other.classes) {
            *mine = (mine.0 + other.0, mine.1.saturating_add(other.1));
        }
        for (mine, other) in self.fine.iter_mut().zip(&other.fine) {
            *mine += other;
        }
        self.greatest = self.greatest.max(other.greatest);
    }

    /// Returns the classes that are not empty, in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.classes.iter().enumerate().filter(|(_, (count, _))| *count > 0).map(|(class, (count, bytes))| {
            let (from, to) = bounds(class);
            Bucket { from, to, count: *count, bytes: *bytes }
        })
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes.iter().map(|(count, _)| count).sum()
    }

    /// Returns the smallest value `v` such that at least `permille` per 1000 of the counted values are at most `v`. The
    /// result may be up to 0.8% too high. Returns 0 if there are no values.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = (u128::from(self.count()) * u128::from(permille)).div_ceil(1000).max(1);
        let mut seen = 0;
        let class = self.fine.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        });
        class.map_or(self.greatest, greatest_of).min(self.greatest)
    }
}

/// Returns the fine class of a value. Below [`FINE`], this is the value itself. Above, it consists of the power of two
/// and the seven bits after the leading bit.
fn fine_class(value: u64) -> usize {
    let power = (u64::BITS - FINE_BITS - 1).saturating_sub(value.leading_zeros());
    // Below twice `FINE` the power is 0, so no bits are lost.
    usize::try_from(u64::from(power) * FINE + (value >> power)).unwrap_or(usize::MAX)
}

/// Returns the maximum value of a fine class.
fn greatest_of(class: usize) -> u64 {
    let class = class as u64;
    let power = (class / FINE).saturating_sub(1);
    let next = u128::from(class - power * FINE + 1) << power;
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let mut histogram = Histogram::default();
        for value in [0, 1, 2, 3, 4, u64::MAX] {
            histogram.add(value, 1);
        }
        let classes: Vec<_> = histogram.buckets().map(|b| (b.from, b.to, b.count)).collect();
        let top = 1 << 63;
        assert_eq!(classes, [(0, 0, 1), (1, 1, 1), (2, 3, 2), (4, 7, 1), (top, u64::MAX, 1)]);
        assert_eq!(histogram.quantile(500), 2);
        assert_eq!(histogram.quantile(1000), u64::MAX);
        assert_eq!(Histogram::default().quantile(500), 0);
    }

    #[test]
    fn fine_classes_follow_each_other() {
        let mut values: Vec<u64> = (0..4096).collect();
        values
            .extend((12..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1, (1 << bit) | (1 << (bit - 1))]));
        values.push(u64::MAX);
        values.sort_unstable();
        for pair in values.windows(2) {
            let (a, b) = (fine_class(pair[0]), fine_class(pair[1]));
            assert!(a <= b && b < Histogram::default().fine.len(), "{pair:?}");
        }
        for value in values {
            let greatest = greatest_of(fine_class(value));
            assert!(greatest >= value && greatest - value <= value / 128, "{value}: {greatest}");
        }
    }

    /// Compares quantiles with the sorted values.
    #[test]
    fn quantiles_are_quantiles() {
        let mut histogram = Histogram::default();
        let mut state = 1_u64;
        let mut values = Vec::new();
        for n in 0..10_007_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Use values of all magnitudes, and one value frequently.
            let value = if n % 3 == 0 { 1500 } else { state >> (state % 60) };
            histogram.add(value, 0);
            values.push(value);
        }
        values.sort_unstable();
        for permille in [1_usize, 100, 333, 500, 900, 990, 999, 1000] {
            let exact = values[(values.len() * permille).div_ceil(1000) - 1];
            let found = histogram.quantile(permille as u64);
            assert!(found >= exact && found - exact <= exact / 128, "{permille}: {found}, exactly {exact}");
        }
        assert_eq!(histogram.quantile(1000), values[values.len() - 1]);
    }
}
