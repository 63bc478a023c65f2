//! Figures 3 to 6 of the paper in one picture. They show the metrics of each model divided by the actual metrics, with
//! confidence intervals.

use metatf_page::{Intervals, Panel};

use super::{INTRINSIC, Program};
use hatf_lab::statistics::Interval;

/// The upper end of the scale.
const MOST: f64 = 3.0;

/// Draws four panels. A stopped model has no interval; the paper plots it at 0.
#[must_use]
pub fn chart(title: &str, programs: &[Program]) -> Intervals {
    let models = programs.first().map_or(&[][..], |program| &program.models);
    let panel = |(metric, name): (usize, &&str)| Panel {
        name: format!("{name} / actual"),
        intervals: programs
            .iter()
            .map(|program| {
                let of_model = program.models.iter().map(|model| model.intrinsic?.get(metric).copied());
                of_model
                    .map(|interval| {
                        let Interval { mean, half, .. } = interval?;
                        let half = half.unwrap_or(0.0);
                        Some([mean - half, mean, mean + half])
                    })
                    .collect()
            })
            .collect(),
    };
    Intervals {
        title: title.to_owned(),
        groups: programs.iter().map(|program| program.name.clone()).collect(),
        series: models.iter().map(|model| model.model.to_string()).collect(),
        panels: INTRINSIC.iter().enumerate().map(panel).collect(),
        most: Some(MOST),
        baseline: Some(1.0),
        ..Intervals::default()
    }
}
