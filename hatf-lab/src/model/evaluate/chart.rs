//! The paper's Figures 3 to 6 in one picture: each model's metrics, divided by the actual ones, with their intervals.

use metatf_page::{Intervals, Panel};

use super::student::Interval;
use super::{INTRINSIC, Program};

/// The top of the scale.
const MOST: f64 = 3.0;

/// Makes four panels. A model that was stopped has no interval; the paper plots it at 0.
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
                        let Interval { mean, half } = interval?;
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
