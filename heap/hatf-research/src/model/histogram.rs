//! Histograms of values, and sampling from them.

use serde::{Deserialize, Serialize};

use super::random::{Random, scaled};
use hatf_lab::AddressMap;

/// The frequency of each value in ascending order, stored as pairs of value and count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(Vec<(u64, u64)>);

impl Histogram {
    pub(super) fn new(counts: &AddressMap<u64>) -> Self {
        let mut pairs: Vec<_> = counts.iter().map(|(value, count)| (*value, *count)).collect();
        pairs.sort_unstable();
        Self(pairs)
    }

    /// Returns the pairs of value and count.
    #[must_use]
    pub fn pairs(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// Returns whether the histogram can be sampled. Values must ascend, and counts must be positive with a sum below
    /// 2^64.
    pub(super) fn is_sound(&self) -> bool {
        let sum = self.0.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        self.0.is_sorted_by(|a, b| a.0 < b.0) && self.0.iter().all(|(_, count)| *count > 0) && sum.is_some()
    }

    pub(super) fn table(&self) -> Table {
        let ends = Ends::new(self.0.iter().map(|(_, count)| *count));
        Table { values: self.0.iter().map(|(value, _)| *value).collect(), ends }
    }
}

/// A histogram prepared for sampling.
#[derive(Debug)]
pub(super) struct Table {
    values: Vec<u64>,
    ends: Ends,
}

impl Table {
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        self.values.get(self.ends.draw(random)).copied().unwrap_or(0)
    }
}

/// A sampler that draws an index in proportion to its count, in about two steps regardless of the number of counts.
#[derive(Debug)]
pub(super) struct Ends {
    /// The cumulative counts. Each includes the count of its own index.
    ends: Vec<u64>,
    /// For each prefix of a random number, an index that does not exceed the index to draw.
    guide: Vec<u32>,
    total: u64,
}

impl Ends {
    /// Builds a sampler for up to 2^32 counts. A model contains fewer counts.
    pub(super) fn new(counts: impl Iterator<Item = u64>) -> Self {
        let mut total = 0_u64;
        let ends: Vec<u64> = counts.map(|count| (total = total.saturating_add(count), total).1).collect();
        let cells = ends.len() as u64;
        let mut at = 0_usize;
        let guide = (0..cells).map(|cell| {
            // The smallest random number in this cell.
            let bits = (u128::from(cell) << 64).div_ceil(u128::from(cells));
            let least = scaled(u64::try_from(bits).unwrap_or(u64::MAX), total);
            while ends.get(at).is_some_and(|end| *end <= least) {
                at += 1;
            }
            u32::try_from(at).unwrap_or(u32::MAX)
        });
        let guide = guide.collect();
        Self { ends, guide, total }
    }

    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let bits = random.bits();
        let value = scaled(bits, self.total);
        let cell = usize::try_from(scaled(bits, self.guide.len() as u64)).unwrap_or(0);
        let mut at = self.guide.get(cell).map_or(0, |at| *at as usize);
        while self.ends.get(at).is_some_and(|end| *end <= value) {
            at += 1;
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_proportion() {
        let counts = [1, 1000, 3, 0, 40, 1, 1, 1, 500];
        let (ends, mut random) = (Ends::new(counts.into_iter()), Random::new(1, 1));
        let mut drawn = [0_u64; 9];
        (0..1_547_000).for_each(|_| drawn[ends.draw(&mut random)] += 1);
        for (count, drawn) in counts.iter().zip(drawn) {
            assert!(drawn.abs_diff(count * 1000) <= 60 + count * 10, "{drawn} of {count}");
        }
        let (one, values) = (Ends::new([u64::MAX].into_iter()), Histogram(vec![(5, 1), (7, 1)]).table());
        assert_eq!(one.draw(&mut random), 0);
        assert!((0..100).all(|_| [5, 7].contains(&values.draw(&mut random))));
    }
}
