//! Live bytes over time, in few numbers.

use serde::Serialize;

/// At most so many points; when there are more, two become one.
const POINTS: usize = 512;

/// The most and the last live bytes in each of up to 512 equal stretches of time.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// Nanoseconds of one stretch.
    pub step: u64,
    /// The stretches, from time 0.
    pub points: Vec<Point>,
}

/// One stretch of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The most bytes live in it.
    pub most: u64,
    /// The bytes live at its end.
    pub last: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { step: 1024, points: Vec::new() }
    }
}

impl Timeline {
    /// Notes the live bytes at a time. Times do not go back.
    #[inline]
    pub(super) fn note(&mut self, time: u64, bytes: u64) {
        // Steps are powers of two: a division for each event would be seen.
        while time >> self.step.trailing_zeros() >= POINTS as u64 {
            self.halve();
        }
        let index = usize::try_from(time >> self.step.trailing_zeros()).unwrap_or(0);
        if let (true, Some(point)) = (index + 1 == self.points.len(), self.points.last_mut()) {
            *point = Point { most: point.most.max(bytes), last: bytes };
            return;
        }
        let last = self.points.last().map_or(0, |point| point.last);
        while self.points.len() <= index {
            self.points.push(Point { most: last, last });
        }
        if let Some(point) = self.points.get_mut(index) {
            *point = Point { most: point.most.max(bytes), last: bytes };
        }
    }

    fn halve(&mut self) {
        self.step *= 2;
        let pair = |pair: &[Point]| Point {
            most: pair.iter().map(|point| point.most).max().unwrap_or(0),
            last: pair.last().map_or(0, |point| point.last),
        };
        self.points = self.points.chunks(2).map(pair).collect();
    }

    /// Returns the most live bytes in each of `columns` equal parts.
    #[must_use]
    pub fn columns(&self, columns: usize) -> Vec<u64> {
        let points = self.points.len();
        let columns = columns.min(points);
        let part = |n: usize| {
            let (from, to) = (n * points / columns, ((n + 1) * points).div_ceil(columns));
            self.points.get(from..to).unwrap_or_default().iter().map(|p| p.most).max()
        };
        (0..columns).map(|n| part(n).unwrap_or(0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_keeps_the_peak() {
        let mut timeline = Timeline::default();
        for n in 0..2_000_000_u64 {
            timeline.note(n * 100, if n == 777_777 { 9_999 } else { n % 1000 });
        }
        assert!(timeline.points.len() <= POINTS);
        assert_eq!(timeline.columns(60).len(), 60);
        assert_eq!(timeline.columns(60).into_iter().max(), Some(9_999));
        timeline.note(u64::MAX, 5);
        assert_eq!(timeline.points.last().map(|point| point.last), Some(5));
    }

    #[test]
    fn empty() {
        assert_eq!(Timeline::default().columns(60), Vec::<u64>::new());
    }
}
