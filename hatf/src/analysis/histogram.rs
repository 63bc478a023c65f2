//! Counts by powers of two.

use serde::Serialize;

/// Values counted in classes `0`, `1`, `2..3`, `4..7`, and so on.
#[derive(Clone, Debug)]
pub struct Histogram {
    classes: [(u64, u64); 65],
}

/// One class of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bucket {
    /// The least value of the class.
    pub from: u64,
    /// The greatest.
    pub to: u64,
    /// How many values.
    pub count: u64,
    /// The bytes they stand for.
    pub bytes: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { classes: [(0, 0); 65] }
    }
}

impl Histogram {
    /// Counts a value that stands for that many bytes.
    pub fn add(&mut self, value: u64, bytes: u64) {
        let class = (u64::BITS - value.leading_zeros()) as usize;
        if let Some((count, sum)) = self.classes.get_mut(class) {
            *count += 1;
            *sum = sum.saturating_add(bytes);
        }
    }

    /// Returns the classes that hold something, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.classes.iter().enumerate().filter(|(_, (count, _))| *count > 0).map(|(class, (count, bytes))| Bucket {
            from: if class == 0 { 0 } else { 1 << (class - 1) },
            to: u64::MAX.checked_shr(64 - u32::try_from(class).unwrap_or(0)).unwrap_or(0),
            count: *count,
            bytes: *bytes,
        })
    }

    /// How many values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.classes.iter().map(|(count, _)| count).sum()
    }

    /// Returns the greatest value of the class in which the `permille`-th value of 1000 lies.
    #[must_use]
    pub fn quantile(&self, permille: u64) -> u64 {
        let rank = u128::from(self.count()) * u128::from(permille) / 1000;
        let mut seen = 0;
        let class = self.buckets().find(|bucket| {
            seen += u128::from(bucket.count);
            seen > rank
        });
        class.or_else(|| self.buckets().last()).map_or(0, |bucket| bucket.to)
    }
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
        assert_eq!(histogram.quantile(500), 3);
        assert_eq!(histogram.quantile(1000), u64::MAX);
        assert_eq!(Histogram::default().quantile(500), 0);
    }
}
