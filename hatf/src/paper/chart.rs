//! The picture: bytes a record of every encoding, in its smallest packing.

use std::io::{self, Write};

use super::column::Column;
use super::measure::Measured;

const LEFT: f64 = 170.0;
const WIDTH: f64 = 640.0;
const TOP: f64 = 48.0;
const LINE: f64 = 26.0;

/// Draws a bar for each encoding, the mean over the traces, and a dot for each trace.
///
/// # Errors
/// The output's.
pub fn chart(measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    let lines: Vec<(Column, Vec<f64>)> = Column::ALL
        .into_iter()
        .map(|column| (column, measured.iter().filter_map(|m| m.smallest(column)).collect::<Vec<_>>()))
        .filter(|(_, figures)| !figures.is_empty())
        .collect();
    let most = lines.iter().flat_map(|(_, figures)| figures).copied().fold(f64::MIN_POSITIVE, f64::max);
    let step = tick(most);
    let end = (most / step).ceil() * step;
    let x = |figure: f64| LEFT + figure / end * WIDTH;
    let rows: f64 = lines.iter().map(|_| LINE).sum();
    let (bottom, right) = (TOP + rows, LEFT + WIDTH);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="10" y="22" font-size="15">Bytes a record: mean, and each trace, in the smallest packing</text>"#,
        right + 60.0,
        bottom + 34.0
    )?;
    let mut at = 0.0;
    while at <= end + step / 2.0 {
        let x = x(at);
        writeln!(
            out,
            r##"<path d="M{x:.1} {TOP}V{bottom:.1}" stroke="#ddd"/><text x="{x:.1}" y="{:.1}" text-anchor="middle">{at:.2}</text>"##,
            bottom + 18.0
        )?;
        at += step;
    }
    let mut y = TOP;
    for (column, figures) in &lines {
        let count: f64 = figures.iter().map(|_| 1.0).sum();
        let mean = figures.iter().sum::<f64>() / count;
        let middle = y + LINE / 2.0;
        writeln!(
            out,
            r##"<text x="{:.1}" y="{:.1}" text-anchor="end">{}</text><rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="#4878a8" fill-opacity="0.45"/><text x="{:.1}" y="{:.1}">{mean:.3}</text>"##,
            LEFT - 8.0,
            middle + 4.0,
            column.title(),
            y + 4.0,
            x(mean) - LEFT,
            LINE - 8.0,
            x(figures.iter().copied().fold(mean, f64::max)) + 8.0,
            middle + 4.0,
        )?;
        for &figure in figures {
            writeln!(out, r##"<circle cx="{:.1}" cy="{middle:.1}" r="2.5" fill="#28587f"/>"##, x(figure))?;
        }
        y += LINE;
    }
    writeln!(out, "</svg>")
}

/// Returns the distance of lines: 1, 2 or 5 times a power of ten, at most ten of them.
fn tick(most: f64) -> f64 {
    let power = 10_f64.powf((most / 10.0).log10().floor());
    [1.0, 2.0, 5.0].map(|n| n * power).into_iter().find(|step| most / step <= 10.0).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::{Options, measure};

    #[test]
    fn draws_any() {
        let mut out = Vec::new();
        chart(&[], &mut out).unwrap();
        let raw: Vec<u8> = (0..100_u64).flat_map(|i| [1, 8, 16 * i, 0].map(u64::to_le_bytes)).flatten().collect();
        let only = vec![Column::Simple, Column::Values];
        let measured = measure("a", &raw, &Options { only, ..Options::default() }, &|_| {}).unwrap();
        chart(&[measured], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("</svg>").count(), 2);
        assert_eq!(text.matches("<circle").count(), 2);
        assert!(text.contains(">Simple Binary<") && !text.contains("NaN") && !text.contains("inf"));
    }

    #[test]
    fn ticks() {
        for (most, step) in [(1.0, 0.1), (1.1, 0.2), (9.0, 1.0), (32.0, 5.0), (0.4, 0.05)] {
            assert!((tick(most) / step - 1.0).abs() < 1e-9, "{most}: {}", tick(most));
        }
    }
}
