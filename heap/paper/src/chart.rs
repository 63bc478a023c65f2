//! A chart of the bytes per record of every encoding, in the packing with the smallest mean.
//!
//! This module draws the chart itself, because `metatf_page` has no chart type whose rows contain a bar and a numbered
//! dot per trace.

use std::io::{self, Write};

use super::column::{Column, Packing, STAR};
use super::measure::Measured;

/// Horizontal positions of the encoding (right-aligned), the packing, the mean, and the start of the scale.
const TITLE: f64 = 170.0;
const PACKING: f64 = 180.0;
const MEAN: f64 = 270.0;
const LEFT: f64 = 290.0;
const WIDTH: f64 = 640.0;
const TOP: f64 = 58.0;
/// Heights of a bar, of a line of numbers above the bar, and of the gap below.
const BAR: f64 = 10.0;
const LINE: f64 = 9.0;
const GAP: f64 = 8.0;
/// Width of a number at a dot.
const NUMBER: f64 = 25.0;

/// An encoding in its smallest packing.
struct Row<'m> {
    column: Column,
    packing: Packing,
    mean: f64,
    /// Bytes per record for each trace, in descending order.
    figures: Vec<(f64, &'m str)>,
}

impl<'m> Row<'m> {
    /// Returns the row of an encoding, or `None` if it was not measured.
    fn new(column: Column, measured: &'m [Measured]) -> Option<Self> {
        let row = |&packing: &Packing| {
            let figure = |m: &'m Measured| Some((m.size(column, packing)?, m.name.as_str()));
            let mut figures: Vec<_> = measured.iter().filter_map(figure).collect();
            figures.sort_by(|(a, _), (b, _)| b.total_cmp(a));
            let count: f64 = figures.iter().map(|_| 1.0).sum();
            let mean = figures.iter().map(|(figure, _)| figure).sum::<f64>() / count;
            (count > 0.0).then_some(Self { column, packing, mean, figures })
        };
        let rows = column.packings().iter().filter_map(row);
        // The mean of a packing that some traces lack is not comparable with the means of other packings.
        rows.min_by(|a, b| b.figures.len().cmp(&a.figures.len()).then(a.mean.total_cmp(&b.mean)))
    }
}

/// Draws a bar for the mean of each encoding over all traces, and a numbered dot for each trace.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn chart(measured: &[Measured], out: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Row<'_>> = Column::ALL.into_iter().filter_map(|column| Row::new(column, measured)).collect();
    let figures = rows.iter().flat_map(|row| &row.figures).map(|(figure, _)| *figure);
    let most = figures.fold(f64::MIN_POSITIVE, f64::max);
    let step = tick(most);
    let end = (most / step).ceil() * step;
    let x = |figure: f64| LEFT + figure / end * WIDTH;
    let flags: Vec<Vec<f64>> = rows.iter().map(|row| flags(row.figures.iter().map(|(figure, _)| x(*figure)))).collect();
    let height = |flags: &Vec<f64>| flags.iter().copied().fold(0.0, f64::max) + LINE + BAR + GAP;
    let (bottom, right) = (TOP + flags.iter().map(height).sum::<f64>(), LEFT + WIDTH);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="10" y="22" font-size="15">Bytes per record, with each encoding in its smallest packing ({STAR})</text>
<text x="{TITLE}" y="46" text-anchor="end">encoding</text><text x="{PACKING}" y="46">packing</text><text x="{MEAN}" y="46" text-anchor="end">mean</text><text x="{LEFT}" y="46">bar: mean; dots: traces</text>"#,
        right + 50.0,
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
    for (row, flags) in rows.iter().zip(&flags) {
        y += height(flags);
        let middle = y - GAP - BAR / 2.0;
        let Row { column, packing, mean, figures } = row;
        writeln!(
            out,
            r##"<text x="{TITLE}" y="{text:.1}" text-anchor="end">{}</text><text x="{PACKING}" y="{text:.1}">{}</text><text x="{MEAN}" y="{text:.1}" text-anchor="end">{mean:.3}</text><rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{BAR}" fill="#4878a8" fill-opacity="0.45"/>"##,
            column.title(),
            packing.name(),
            middle - BAR / 2.0,
            x(*mean) - LEFT,
            text = middle + 4.0,
        )?;
        for ((figure, trace), flag) in figures.iter().zip(flags) {
            let (x, top) = (x(*figure), middle - BAR / 2.0 - 2.0 - flag);
            writeln!(
                out,
                r##"<g><title>{}: {figure:.3}</title><path d="M{x:.1} {middle:.1}V{:.1}" stroke="#28587f" stroke-width="0.5"/><circle cx="{x:.1}" cy="{middle:.1}" r="2.5" fill="#28587f"/><text x="{:.1}" y="{top:.1}" font-size="8">{figure:.3}</text></g>"##,
                escaped(trace),
                top - 6.0,
                x + 1.5,
            )?;
        }
    }
    writeln!(out, "</svg>")
}

/// Returns the height of the number at each dot. Numbers are drawn like flags on poles, at heights at which no number
/// covers another number or a pole. Dots are ordered from right to left.
fn flags(dots: impl Iterator<Item = f64>) -> Vec<f64> {
    // The position up to which each line of numbers is free.
    let mut free: Vec<f64> = Vec::new();
    let flag = |dot: f64| {
        let line = free.iter().position(|&free| dot + NUMBER <= free).unwrap_or(free.len());
        free.resize(free.len().max(line + 1), dot);
        free.iter_mut().take(line + 1).for_each(|free| *free = dot);
        (0..line).map(|_| LINE).sum()
    };
    dots.map(flag).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Returns the distance between grid lines, which is 1, 2 or 5 times a power of ten and leads to at most ten lines.
fn tick(most: f64) -> f64 {
    let power = 10_f64.powf((most / 10.0).log10().floor());
    [1.0, 2.0, 5.0].map(|n| n * power).into_iter().find(|step| most / step <= 10.0).unwrap_or(power * 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, measure};

    #[test]
    fn draws_any() {
        let mut out = Vec::new();
        chart(&[], &mut out).unwrap();
        let raw: Vec<u8> = (0..100_u64).flat_map(|i| [1, 8, 16 * i, 0].map(u64::to_le_bytes)).flatten().collect();
        let only = vec![Column::Simple, Column::Values];
        let measured = measure("a<b&c", &raw, &Options { only, ..Options::default() }, &|_| {}).unwrap();
        chart(&[measured], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("</svg>").count(), 2);
        assert_eq!(text.matches("<circle").count(), 2);
        assert!(text.contains(">64-bit Simple Binary*<") && !text.contains("NaN") && !text.contains("inf"));
        assert!(text.contains(">zstd-") && text.contains("a&lt;b&amp;c: "));
    }

    /// A row names the packing whose figures it shows. This is never a packing that a trace lacks.
    #[test]
    fn one_packing_a_row() {
        let raw: Vec<u8> = (0..100_u64).flat_map(|i| [1, 8, 16 * i, 0].map(u64::to_le_bytes)).flatten().collect();
        let only = vec![Column::Simple];
        let mut a = measure("a", &raw, &Options { only, ..Options::default() }, &|_| {}).unwrap();
        let mut b = a.clone();
        b.name = "b".to_owned();
        a.bytes.insert("simple", [(Packing::Raw, 3200), (Packing::Gzip, 100), (Packing::Zstd3, 300)].into());
        b.bytes.insert("simple", [(Packing::Raw, 3200), (Packing::Gzip, 500), (Packing::Zstd3, 200)].into());
        let both = [a.clone(), b.clone()];
        let row = Row::new(Column::Simple, &both).unwrap();
        assert_eq!((row.packing, row.figures), (Packing::Zstd3, vec![(3.0, "a"), (2.0, "b")]));
        a.bytes.insert("simple", [(Packing::Gzip, 100), (Packing::Xz, 1)].into());
        let both = [a, b];
        assert_eq!(Row::new(Column::Simple, &both).unwrap().packing, Packing::Gzip);
    }

    #[test]
    fn numbers_stand_apart() {
        assert_eq!(flags([100.0, 90.0, 80.0, 40.0, 30.0].into_iter()), [0.0, LINE, 2.0 * LINE, 0.0, LINE]);
        assert!(flags([].into_iter()).is_empty());
    }

    #[test]
    fn ticks() {
        for (most, step) in [(1.0, 0.1), (1.1, 0.2), (9.0, 1.0), (32.0, 5.0), (0.4, 0.05)] {
            assert!((tick(most) / step - 1.0).abs() < 1e-9, "{most}: {}", tick(most));
        }
    }
}
