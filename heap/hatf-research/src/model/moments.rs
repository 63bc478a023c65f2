//! Means and variances computed from integers.

use serde::{Deserialize, Serialize};

/// The count, sum and sum of squares of a quantity. These are integers, so the order of observations does not matter
/// and the mean is an exact fraction. The stored form is an array of the three numbers.
///
/// # Examples
///
/// ```
/// use hatf_research::model::Moments;
///
/// let mut moments = Moments::default();
/// for value in [2, 4, 4, 4, 5, 5, 7, 9, 5] {
///     moments.note(value);
/// }
/// assert_eq!((moments.count(), moments.fraction()), (9, Some((5, 1))));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u128, u128)", into = "(u64, u128, u128)")]
pub struct Moments {
    count: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    /// Adds an observation.
    pub fn note(&mut self, value: u64) {
        let value = u128::from(value);
        self.count += 1;
        self.sum += value;
        // Only observations near 2^64 lead to saturation.
        self.squares = self.squares.saturating_add(value * value);
    }

    /// Returns the number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean as a reduced fraction, or `None` if there are no observations.
    #[must_use]
    pub fn fraction(&self) -> Option<(u128, u128)> {
        reduced(self.sum, self.count.into())
    }

    /// Returns the mean, or `None` if there are no observations.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| float(self.sum) / float(self.count.into()))
    }

    /// Returns the standard deviation with divisor n, or 0 if there are no observations.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        let count = u128::from(self.count);
        if count == 0 {
            return 0.0;
        }
        let exact = || self.squares.checked_mul(count)?.checked_sub(self.sum.checked_mul(self.sum)?);
        let variance = match exact() {
            Some(scaled) => float(scaled) / float(count) / float(count),
            None => {
                let mean = float(self.sum) / float(count);
                float(self.squares) / float(count) - mean * mean
            }
        };
        variance.max(0.0).sqrt()
    }

    /// Returns whether the values are consistent.
    pub(super) fn is_sound(&self) -> bool {
        self.count > 0 || (self.sum, self.squares) == (0, 0)
    }
}

impl From<(u64, u128, u128)> for Moments {
    fn from((count, sum, squares): (u64, u128, u128)) -> Self {
        Self { count, sum, squares }
    }
}

impl From<Moments> for (u64, u128, u128) {
    fn from(Moments { count, sum, squares }: Moments) -> Self {
        (count, sum, squares)
    }
}

/// Reduces a fraction. Returns `None` if the denominator is 0.
#[must_use]
pub fn reduced(of: u128, by: u128) -> Option<(u128, u128)> {
    let (mut a, mut b) = (of, by);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (by > 0).then(|| (of / a, by / a))
}

#[expect(clippy::cast_precision_loss, reason = "rounding to nearest is the same on every machine")]
pub(super) fn float(value: u128) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|value| moments.note(*value));
        moments
    }

    #[test]
    fn exact() {
        let moments = of(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!((moments.fraction(), moments.mean(), moments.deviation()), (Some((5, 1)), Some(5.0), 2.0));
        assert_eq!(of(&[1, 1, 2]).fraction(), Some((4, 3)));
        let none = Moments::default();
        assert_eq!((none.fraction(), none.mean(), none.deviation()), (None, None, 0.0));
    }

    #[test]
    fn large_values() {
        let moments = of(&[u64::MAX; 3]);
        assert_eq!(moments.fraction(), Some((u64::MAX.into(), 1)));
        assert!(moments.deviation().is_finite());
        let text = serde_json::to_string(&moments).unwrap();
        assert_eq!(serde_json::from_str::<Moments>(&text).unwrap(), moments);
    }
}
