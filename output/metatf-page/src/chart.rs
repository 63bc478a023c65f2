//! Charts of quantities over time or another axis.

use std::borrow::Cow;

use crate::Unit;

/// Quantities over one axis.
///
/// # Examples
///
/// ```
/// use metatf_page::{Chart, Form, Mark, Page, Series, Shape, Unit, render};
///
/// let mut chart = Chart::new("grep.mtf: live bytes over time", Unit::Time, Unit::Bytes);
/// chart.stretches("live", Shape::Area, 1000, [1024, 3072, 512]);
/// chart.series.push(Series { name: "limit".to_owned(), shape: Shape::Line, points: vec![(0, 4096), (3000, 4096)] });
/// chart.marks.push(Mark { at: 2000, name: "peak".to_owned() });
/// let mut page = Page::default();
/// page.push(chart);
///
/// let mut out = Vec::new();
/// render(&page, Form::Svg, &mut out)?;
/// let about = "live: at most 3.00 KiB; limit: at most 4.00 KiB; peak at 2.00 us; from 0 to 3.00 us";
/// assert!(String::from_utf8(out)?.contains(&format!("<desc>{about}</desc>")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The unit of the horizontal axis.
    pub x: Unit,
    /// The name of the horizontal axis, if its unit is not clear enough.
    pub x_name: Cow<'static, str>,
    /// The unit of the vertical axis.
    pub y: Unit,
    /// The quantities.
    pub series: Vec<Series>,
    /// Named positions.
    pub marks: Vec<Mark>,
    /// The end of the horizontal axis, if it is after the last point.
    pub end: u64,
}

/// A quantity. See the example of [`Chart`](Chart#examples).
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The name.
    pub name: String,
    /// The shape in which the quantity is drawn.
    pub shape: Shape,
    /// The end of each interval, and the quantity in it.
    pub points: Vec<(u64, u64)>,
}

/// The shape in which a quantity is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A step line: the quantity is constant in each interval.
    Steps,
    /// The area under a step line.
    Area,
    /// A line from point to point.
    Line,
    /// A bar for each point.
    Bars,
}

/// A named position on the horizontal axis. See the example of [`Chart`](Chart#examples).
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The position.
    pub at: u64,
    /// The name.
    pub name: String,
}

impl Chart {
    /// Creates an empty chart.
    pub fn new(title: impl Into<String>, x: Unit, y: Unit) -> Self {
        Self { title: title.into(), x, x_name: Cow::Borrowed(""), y, series: Vec::new(), marks: Vec::new(), end: 0 }
    }

    /// Adds a quantity with intervals of equal length.
    pub fn stretches(
        &mut self,
        name: impl Into<String>,
        shape: Shape,
        step: u64,
        values: impl IntoIterator<Item = u64>,
    ) {
        let ends = std::iter::successors(Some(step), |end| Some(end.saturating_add(step)));
        self.series.push(Series { name: name.into(), shape, points: ends.zip(values).collect() });
    }

    /// Returns the ends of both axes, at least 1.
    pub(crate) fn ends(&self) -> (u64, u64) {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let x = points().map(|point| point.0).chain([self.end]).max().unwrap_or(0);
        let y = points().map(|point| point.1).max().unwrap_or(0);
        (x.max(1), y.max(1))
    }

    /// Returns the maximum of a quantity in each of this many intervals of equal length.
    pub(crate) fn columns(&self, series: &Series, columns: usize) -> Vec<u64> {
        let (end, _) = self.ends();
        let mut most = vec![0_u64; columns];
        let place = |x: u64| usize::try_from(u128::from(x) * columns as u128 / u128::from(end)).unwrap_or(columns);
        let mut from = 0;
        for (x, y) in &series.points {
            let to = place(*x).clamp(from + 1, columns.max(from + 1));
            for column in most.iter_mut().take(to).skip(from) {
                *column = (*column).max(*y);
            }
            from = place(*x).min(columns.saturating_sub(1));
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_the_most() {
        let mut chart = Chart::new("", Unit::Count, Unit::Bytes);
        chart.stretches("a", Shape::Area, 10, [1, 2, 9, 4, 5, 6, 7, 8]);
        let columns =
            |chart: &Chart, count| chart.series.first().map(|series| chart.columns(series, count)).unwrap_or_default();
        assert_eq!(columns(&chart, 4), [2, 9, 6, 8]);
        assert_eq!(columns(&chart, 8), [1, 2, 9, 4, 5, 6, 7, 8]);
        assert_eq!(columns(&chart, 16), [1, 1, 2, 2, 9, 9, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8]);
        assert_eq!(columns(&chart, 0), []);
        chart.end = u64::MAX;
        assert_eq!(columns(&chart, 2), [9, 0]);
    }
}
