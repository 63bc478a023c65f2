//! The paper's Figures 3 to 6 in one picture: each model's metrics, of the actual ones, with their intervals.

use std::io::{self, Write};

use super::student::Interval;
use super::{INTRINSIC, Program};
use crate::chart::{COLOURS, begin, escape, float};

const WIDTH: f64 = 820.0;
const PANEL: f64 = 150.0;
const LEFT: f64 = 90.0;
/// The top of the scale; what is above is drawn there, with its number.
const MOST: f64 = 3.0;

/// Draws four panels. A model that was stopped is a cross at 0, as the paper plots it.
///
/// # Errors
/// The output's.
pub fn chart(title: &str, programs: &[Program], out: &mut dyn Write) -> io::Result<()> {
    let models = programs.first().map_or(&[][..], |program| &program.models);
    let (legend, panels) = (60.0 + 18.0 * float(models.len() as u64), 4.0 * (PANEL + 50.0));
    begin(title, LEFT + WIDTH + 30.0, 40.0 + panels + legend, out)?;
    for (metric, name) in INTRINSIC.iter().enumerate() {
        let top = 60.0 + float(metric as u64) * (PANEL + 50.0);
        panel(programs, metric, name, top, out)?;
    }
    for (n, model) in models.iter().enumerate() {
        let y = 60.0 + panels + 18.0 * float(n as u64);
        writeln!(
            out,
            r#"<circle cx="{}" cy="{y}" r="4" fill="{}"/><text x="{}" y="{}">{}</text>"#,
            LEFT + 12.0,
            colour(n),
            LEFT + 32.0,
            y + 4.0,
            escape(&model.model.to_string())
        )?;
    }
    writeln!(out, "</svg>")
}

fn panel(programs: &[Program], metric: usize, name: &str, top: f64, out: &mut dyn Write) -> io::Result<()> {
    let bottom = top + PANEL;
    let height = |value: f64| bottom - PANEL * value.clamp(0.0, MOST) / MOST;
    writeln!(out, r#"<text x="{LEFT}" y="{}">{name}, of the actual</text>"#, top - 6.0)?;
    for value in [0.0, 1.0, 2.0, 3.0] {
        let (y, stroke) = (height(value), if value == 1.0 { "#888" } else { "#ddd" });
        writeln!(
            out,
            r#"<path d="M{LEFT} {y}h{WIDTH}" stroke="{stroke}"/><text x="{}" y="{}" text-anchor="end">{value}</text>"#,
            LEFT - 8.0,
            y + 4.0
        )?;
    }
    let group = WIDTH / float(programs.len().max(1) as u64);
    for (n, program) in programs.iter().enumerate() {
        let left = LEFT + group * float(n as u64);
        writeln!(
            out,
            r#"<text x="{}" y="{}" text-anchor="middle">{}</text>"#,
            left + group / 2.0,
            bottom + 16.0,
            escape(&program.name)
        )?;
        for (place, model) in program.models.iter().enumerate() {
            let x = left + group * float(place as u64 + 1) / float(program.models.len() as u64 + 1);
            let colour = colour(place);
            match model.intrinsic.and_then(|intervals| intervals.get(metric).copied()) {
                Some(Interval { mean, half }) if mean.is_finite() => {
                    let half = half.unwrap_or(0.0);
                    writeln!(
                        out,
                        r#"<path d="M{x:.1} {:.1}V{:.1}" stroke="{colour}" stroke-width="2"/><circle cx="{x:.1}" cy="{:.1}" r="4" fill="{colour}"/>"#,
                        height(mean - half),
                        height(mean + half),
                        height(mean)
                    )?;
                    if mean > MOST {
                        writeln!(out, r#"<text x="{:.1}" y="{:.1}">{mean:.1}</text>"#, x + 7.0, height(mean) + 4.0)?;
                    }
                }
                _ => writeln!(
                    out,
                    r#"<path d="M{:.1} {:.1}l8 8m0 -8l-8 8" stroke="{colour}" stroke-width="2"/>"#,
                    x - 4.0,
                    bottom - 4.0
                )?,
            }
        }
    }
    Ok(())
}

fn colour(n: usize) -> &'static str {
    COLOURS.get(n % COLOURS.len()).copied().unwrap_or_default()
}
