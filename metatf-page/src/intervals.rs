//! Intervals beside each other.

use std::borrow::Cow;

/// Intervals of several series, in groups: one of each series in each group, in panels that share their axis from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Intervals {
    /// What it shows.
    pub title: String,
    /// The unit of the numbers; empty: they are ratios.
    pub unit: Cow<'static, str>,
    /// What the groups are.
    pub x_name: Cow<'static, str>,
    /// The groups, from left to right.
    pub groups: Vec<String>,
    /// The series; each has a colour.
    pub series: Vec<String>,
    /// The panels, from top to bottom.
    pub panels: Vec<Panel>,
    /// The top of the scales: what is above is drawn there, with its number. Without, that of the greatest number.
    pub most: Option<f64>,
    /// A number to compare with.
    pub baseline: Option<f64>,
}

/// A panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Its name, where there are several.
    pub name: String,
    /// Of each group, each series' interval: its least, its middle, and its most; `None`: there is none, which is a cross at 0.
    pub intervals: Vec<Vec<Option<[f64; 3]>>>,
}

impl Intervals {
    /// Returns the top of the scales, more than 0.
    pub(crate) fn top(&self) -> f64 {
        let all = self.panels.iter().flat_map(|panel| panel.intervals.iter().flatten().flatten()).flatten();
        let most = self.most.unwrap_or_else(|| all.copied().filter(|number| number.is_finite()).fold(0.0, f64::max));
        if most > 0.0 { most } else { 1.0 }
    }
}
