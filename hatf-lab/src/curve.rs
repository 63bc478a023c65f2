//! Curves over the events of a trace, in few numbers.

use metatf_page::{Chart, Shape, Unit};
use serde::Serialize;

/// At most so many points; when there are more, two become one.
const POINTS: usize = 512;

/// Collects the most of each of `N` quantities in equal stretches of events.
#[derive(Clone, Debug)]
pub struct Curve<const N: usize> {
    step: u64,
    /// Events still to come in the stretch that is under way.
    left: u64,
    now: [u64; N],
    points: Vec<[u64; N]>,
}

/// A finished curve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Curves {
    /// Events in a stretch.
    pub step: u64,
    /// The quantities.
    pub lines: Vec<Line>,
}

/// One quantity over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// The most of it in each stretch.
    pub most: Vec<u64>,
}

impl Curves {
    /// Draws quantities over events: the most in each stretch.
    #[must_use]
    pub fn chart(&self, title: String, unit: Unit) -> Chart {
        let mut chart = Chart::new(title, Unit::Count, unit);
        chart.x_name = "events".into();
        for line in &self.lines {
            chart.stretches(line.name.clone(), Shape::Steps, self.step, line.most.iter().copied());
        }
        chart
    }
}

impl<const N: usize> Default for Curve<N> {
    fn default() -> Self {
        Self { step: 64, left: 64, now: [0; N], points: Vec::new() }
    }
}

impl<const N: usize> Curve<N> {
    /// Starts with stretches of one event, so that the curve of a short trace has every event.
    pub(crate) fn of_each() -> Self {
        Self { step: 1, left: 1, ..Self::default() }
    }

    /// Notes the quantities after an event.
    #[inline]
    pub fn note(&mut self, values: [u64; N]) {
        for (most, value) in self.now.iter_mut().zip(values) {
            *most = (*most).max(value);
        }
        self.left -= 1;
        if self.left == 0 {
            self.end_stretch();
        }
    }

    #[cold]
    fn end_stretch(&mut self) {
        self.points.push(std::mem::replace(&mut self.now, [0; N]));
        if self.points.len() == POINTS {
            self.step *= 2;
            let pair = |pair: &[[u64; N]]| {
                std::array::from_fn(|n| pair.iter().filter_map(|point| point.get(n)).copied().max().unwrap_or(0))
            };
            self.points = self.points.chunks(2).map(pair).collect();
        }
        self.left = self.step;
    }

    /// Returns the curve, with names for its quantities.
    #[must_use]
    pub fn curves(&self, names: [&str; N]) -> Curves {
        let under_way = (self.left < self.step).then_some(&self.now);
        let line = |(n, name): (usize, &str)| Line {
            name: name.to_owned(),
            most: self.points.iter().chain(under_way).filter_map(|point| point.get(n)).copied().collect(),
        };
        Curves { step: self.step, lines: names.into_iter().enumerate().map(line).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_keeps_the_peak() {
        let mut curve = Curve::default();
        for n in 0..1_000_000_u64 {
            curve.note([n % 10, if n == 777_777 { 9_999 } else { 3 }]);
        }
        let curves = curve.curves(["a", "b"]);
        let [a, b] = &curves.lines[..] else { panic!("{curves:?}") };
        assert!(a.most.len() <= POINTS && a.most.iter().all(|most| *most == 9));
        let stretch = 777_777 / usize::try_from(curves.step).unwrap();
        assert_eq!(b.most.iter().position(|most| *most == 9_999), Some(stretch));
        assert_eq!(a.most.len() as u64, 1_000_000_u64.div_ceil(curves.step));
    }

    #[test]
    fn short_and_empty() {
        assert!(Curve::<1>::default().curves(["a"]).lines[0].most.is_empty());
        let mut curve = Curve::default();
        curve.note([5]);
        assert_eq!(curve.curves(["a"]).lines[0].most, [5]);
    }
}
