//! Downsampled curves over the events of a trace.

use metatf_page::{Chart, Shape, Unit};
use serde::Serialize;

use crate::stretches::Stretches;

/// A collector of the maxima of `N` quantities in equal intervals of events.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::Curve;
///
/// let mut curve = Curve::of_each();
/// for (live, held) in [(10, 4_096), (30, 8_192), (20, 8_192)] {
///     curve.note([live, held]);
/// }
/// let curves = curve.curves(["live bytes", "held bytes"]);
/// assert_eq!(curves.step, 1);
/// assert_eq!(curves.lines[0].most, [10, 30, 20]);
/// ```
#[derive(Clone, Debug)]
pub struct Curve<const N: usize> {
    events: u64,
    stretches: Stretches<[u64; N]>,
}

/// A finished curve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Curves {
    /// Events per interval.
    pub step: u64,
    /// The quantities.
    pub lines: Vec<Line>,
}

/// One quantity over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The name of the quantity.
    pub name: String,
    /// The maximum in each interval.
    pub most: Vec<u64>,
}

impl Curves {
    /// Draws the maximum of each quantity per interval over events.
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
        Self { events: 0, stretches: Stretches::new(64) }
    }
}

impl<const N: usize> Curve<N> {
    /// Creates a collector whose intervals initially contain one event, so the curve of a short trace contains every
    /// event.
    #[must_use]
    pub fn of_each() -> Self {
        Self { events: 0, stretches: Stretches::new(1) }
    }

    /// Records the quantities after an event.
    #[inline]
    pub fn note(&mut self, values: [u64; N]) {
        self.stretches.note(self.events, values);
        self.events += 1;
    }

    /// Returns the curves with the given names.
    #[must_use]
    pub fn curves(&self, names: [&str; N]) -> Curves {
        let Stretches { step, points } = &self.stretches;
        let line = |(n, name): (usize, &str)| Line {
            name: name.to_owned(),
            most: points.iter().filter_map(|point| point.get(n)).copied().collect(),
        };
        Curves { step: *step, lines: names.into_iter().enumerate().map(line).collect() }
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
        assert!(a.most.len() <= 512 && a.most.iter().all(|most| *most == 9));
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
