//! Downsampling of a varying quantity to a bounded number of values.

use serde::Serialize;

/// The maximum number of stretches, above which pairs of stretches are joined.
const MOST: u64 = 512;

/// Values in up to 512 stretches of equal length along a coordinate such as time or events.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::{MostAndLast, Stretches};
///
/// let mut stretches = Stretches::<MostAndLast>::new(16);
/// stretches.note(20, 7);
/// stretches.note(21, 3);
/// stretches.note(50, 5);
/// let points: Vec<_> = stretches.points.iter().map(|point| (point.most, point.last)).collect();
/// assert_eq!(points, [(0, 0), (7, 3), (3, 3), (5, 5)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stretches<T> {
    /// The length of one stretch, a power of two.
    pub step: u64,
    /// The summaries of the stretches, starting at position 0.
    pub points: Vec<T>,
}

/// A summary of the values in one stretch.
pub trait Summary: Copy {
    /// Adds the summary of the next values.
    fn add(&mut self, next: Self);

    /// Returns the summary of a stretch without values whose preceding summary is `before`.
    #[must_use]
    fn unchanged(before: Option<Self>) -> Self;
}

/// The maximum and the last value of a quantity that stays constant until its next value is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MostAndLast {
    /// The maximum in the stretch.
    pub most: u64,
    /// The value at the end of the stretch.
    pub last: u64,
}

impl Summary for MostAndLast {
    #[inline]
    fn add(&mut self, next: Self) {
        *self = Self { most: self.most.max(next.most), last: next.last };
    }

    fn unchanged(before: Option<Self>) -> Self {
        before.map_or(0, |point| point.last).into()
    }
}

impl From<u64> for MostAndLast {
    fn from(value: u64) -> Self {
        Self { most: value, last: value }
    }
}

/// The maxima of `N` quantities.
impl<const N: usize> Summary for [u64; N] {
    #[inline]
    fn add(&mut self, next: Self) {
        for (most, value) in self.iter_mut().zip(next) {
            *most = (*most).max(value);
        }
    }

    fn unchanged(before: Option<Self>) -> Self {
        before.unwrap_or([0; N])
    }
}

/// Starts with stretches of length 1,024.
impl<T> Default for Stretches<T> {
    fn default() -> Self {
        Self { step: 1024, points: Vec::new() }
    }
}

impl<T: Summary> Stretches<T> {
    /// Starts with stretches of this length, a power of two.
    #[must_use]
    pub fn new(step: u64) -> Self {
        Self { step: step.max(1).next_power_of_two(), points: Vec::new() }
    }

    /// Records a value at a position. Positions must not decrease.
    #[inline]
    pub fn note(&mut self, at: u64, value: impl Into<T>) {
        // Use a shift, because a division per event would be noticeable.
        let stretch = at >> self.step.trailing_zeros();
        let stretches = self.points.len() as u64;
        match self.points.last_mut() {
            Some(point) if stretch < stretches => point.add(value.into()),
            _ => self.begin(at, value.into()),
        }
    }

    /// Records the first value of a stretch, and fills the preceding stretches without values.
    #[cold]
    fn begin(&mut self, at: u64, value: T) {
        while at >> self.step.trailing_zeros() >= MOST {
            self.halve();
        }
        let stretch = usize::try_from(at >> self.step.trailing_zeros()).unwrap_or(0);
        while self.points.len() < stretch {
            self.points.push(T::unchanged(self.points.last().copied()));
        }
        match self.points.get_mut(stretch) {
            Some(point) => point.add(value),
            None => self.points.push(value),
        }
    }

    fn halve(&mut self) {
        self.step *= 2;
        let pair = |pair: &[T]| {
            let mut both = *pair.first()?;
            pair.iter().skip(1).for_each(|next| both.add(*next));
            Some(both)
        };
        self.points = self.points.chunks(2).filter_map(pair).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_keeps_the_peak() {
        let mut stretches = Stretches::<MostAndLast>::new(1024);
        for n in 0..2_000_000_u64 {
            stretches.note(n * 100, if n == 777_777 { 9_999 } else { n % 1000 });
        }
        assert!(stretches.points.len() as u64 <= MOST);
        assert_eq!(stretches.points.iter().map(|point| point.most).max(), Some(9_999));
        let peak = usize::try_from(77_777_700 / stretches.step).unwrap();
        assert_eq!(stretches.points[peak].most, 9_999);
        stretches.note(u64::MAX, 5);
        assert_eq!(stretches.points.last().map(|point| point.last), Some(5));
    }

    /// A level stays constant until the next level is recorded. The level before the first one is 0.
    #[test]
    fn stretches_without_values() {
        let mut stretches = Stretches::<MostAndLast>::new(10);
        assert_eq!(stretches.step, 16);
        stretches.note(40, 7);
        stretches.note(41, 3);
        stretches.note(100, 5);
        let points: Vec<_> = stretches.points.iter().map(|point| (point.most, point.last)).collect();
        assert_eq!(points, [(0, 0), (0, 0), (7, 3), (3, 3), (3, 3), (3, 3), (5, 5)]);
    }
}
