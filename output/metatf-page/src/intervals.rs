//! Pictures of intervals that are drawn next to each other.

use std::borrow::Cow;

/// Intervals of several series in groups: each group has one interval per series. They are drawn in panels that share a
/// horizontal axis.
///
/// # Examples
///
/// ```
/// use metatf_page::{Form, Intervals, Page, Panel, render};
///
/// let grep = vec![Some([0.9, 1.0, 1.1]), Some([0.7, 0.8, 0.9])];
/// let make = vec![Some([0.9, 1.0, 1.2]), None];
/// let intervals = Intervals {
///     title: "Time relative to glibc".to_owned(),
///     groups: vec!["grep".to_owned(), "make".to_owned()],
///     series: vec!["glibc".to_owned(), "jemalloc".to_owned()],
///     panels: vec![Panel { intervals: vec![grep, make], ..Panel::default() }],
///     ..Intervals::default()
/// };
/// let mut page = Page::default();
/// page.figure(intervals);
///
/// let mut out = Vec::new();
/// render(&page, Form::Svg, &mut out)?;
/// assert!(String::from_utf8(out)?.contains("<desc>glibc, jemalloc; grep, make</desc>"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// The title.
    pub title: String,
    /// The unit of the numbers, or empty if the numbers are ratios.
    pub unit: Cow<'static, str>,
    /// The name of the groups.
    pub x_name: Cow<'static, str>,
    /// The groups, from left to right.
    pub groups: Vec<String>,
    /// The series, each with its own color.
    pub series: Vec<String>,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
    /// Maximum of the value axes. Larger values are drawn at the top and labeled. If `None`, the maximum is the largest
    /// value.
    pub most: Option<f64>,
    /// A number with which the intervals are compared.
    pub baseline: Option<f64>,
}

/// A panel. See the example of [`Intervals`](Intervals#examples).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// The name, if there are several panels.
    pub name: String,
    /// For each group, the interval of each series: minimum, middle and maximum. `None` means that there is no
    /// interval, which is drawn as a cross at 0.
    pub intervals: Vec<Vec<Option<[f64; 3]>>>,
}

impl Intervals {
    /// Returns the maximum of the value axes, which is greater than 0.
    pub(crate) fn top(&self) -> f64 {
        let all = self.panels.iter().flat_map(|panel| panel.intervals.iter().flatten().flatten()).flatten();
        let most = self.most.unwrap_or_else(|| all.copied().filter(|number| number.is_finite()).fold(0.0, f64::max));
        if most > 0.0 { most } else { 1.0 }
    }
}
