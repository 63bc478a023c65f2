//! Draws charts as SVG.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{begin, colour, cut, dash, float};
use crate::axis::Axis;
use crate::escape::markup;
use crate::{Chart, Series, Shape, Value};

const LEFT: f64 = 80.0;
const TOP: f64 = 62.0;
const WIDTH: f64 = 750.0;
const HEIGHT: f64 = 300.0;
const RIGHT: f64 = LEFT + WIDTH;
const BOTTOM: f64 = TOP + HEIGHT;
/// The distance between two lines of the legend.
const LINE: f64 = 20.0;
/// Maximum number of marks drawn; more would be indistinguishable.
const MARKS: usize = 50;

pub(super) fn draw(chart: &Chart, out: &mut dyn Write) -> io::Result<()> {
    let (x_most, y_most) = chart.ends();
    let x = Axis::new(x_most, chart.x, false);
    let y = Axis::new(y_most, chart.y, true);
    let legend = if chart.series.len() > 1 { LINE * float(chart.series.len() as u64) } else { 0.0 };
    begin(&chart.title, &about(chart), (RIGHT + 30.0, BOTTOM + 60.0 + legend), out)?;
    axes(chart, &x, &y, out)?;
    for (number, series) in chart.series.iter().enumerate() {
        let path = path(series, &x, &y);
        let (colour, dash) = (colour(number), dash(number));
        match series.shape {
            Shape::Area => writeln!(
                out,
                r#"<path d="{path}V{BOTTOM:.0}H{LEFT:.0}Z" fill="{colour}" fill-opacity="0.3" stroke="{colour}" stroke-width="1.5"{dash}/>"#
            )?,
            Shape::Bars => writeln!(out, r#"<path d="{path}" fill="{colour}" fill-opacity="0.7"/>"#)?,
            Shape::Steps | Shape::Line => {
                writeln!(out, r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>"#)?;
            }
        }
    }
    marks(chart, &x, out)?;
    if chart.series.len() > 1 {
        for (number, series) in chart.series.iter().enumerate() {
            let y = BOTTOM + 58.0 + LINE * float(number as u64);
            writeln!(
                out,
                r#"<path d="M{LEFT:.0} {y:.0}h24" stroke="{}" stroke-width="4"{}/><text x="{:.0}" y="{:.0}">{}</text>"#,
                colour(number),
                dash(number),
                LEFT + 32.0,
                y + 5.0,
                markup(&cut(&series.name, 90))
            )?;
        }
    }
    writeln!(out, "</svg>")
}

/// Describes the picture in words.
fn about(chart: &Chart) -> String {
    let (x, _) = chart.ends();
    let series = chart.series.iter().map(|series| {
        let most = series.points.iter().map(|point| point.1).max().unwrap_or(0);
        format!("{}: at most {}", series.name, Value::of(most, chart.y))
    });
    let marks = chart.marks.iter().take(MARKS).map(|mark| format!("{} at {}", mark.name, Value::of(mark.at, chart.x)));
    let all: Vec<_> =
        series.chain(marks).chain([format!("from 0 to {} {}", Value::of(x, chart.x), chart.x_name)]).collect();
    all.join("; ").trim_end().to_owned()
}

/// Draws both axes with their numbers and units.
fn axes(chart: &Chart, x: &Axis, y: &Axis, out: &mut dyn Write) -> io::Result<()> {
    for (at, number) in &y.ticks {
        let place = BOTTOM - HEIGHT * at;
        writeln!(
            out,
            r##"<path d="M{LEFT:.0} {place:.1}H{RIGHT:.0}" stroke="#ddd"/><text x="{:.0}" y="{:.1}" text-anchor="end">{number}</text>"##,
            LEFT - 8.0,
            place + 5.0
        )?;
    }
    for (at, number) in &x.ticks {
        let place = LEFT + WIDTH * at;
        writeln!(
            out,
            r##"<path d="M{place:.1} {BOTTOM:.0}v5" stroke="#888"/><text x="{place:.1}" y="{:.0}" text-anchor="middle">{number}</text>"##,
            BOTTOM + 20.0
        )?;
    }
    let name =
        [chart.x_name.as_ref(), x.unit].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    writeln!(
        out,
        r#"<text x="{:.0}" y="{:.0}" text-anchor="end">{}</text><text x="{RIGHT:.0}" y="{:.0}" text-anchor="end">{}</text>"#,
        LEFT - 8.0,
        TOP - 14.0,
        y.unit,
        BOTTOM + 40.0,
        markup(&name)
    )
}

/// Returns the outline of a quantity in the units of both axes.
fn path(series: &Series, x: &Axis, y: &Axis) -> String {
    let place = |at: u64| LEFT + WIDTH * (float(at) / x.end).min(1.0);
    let height = |value: u64| BOTTOM - HEIGHT * (float(value) / y.end).min(1.0);
    let mut path = String::new();
    let mut from = LEFT;
    for (number, (at, value)) in series.points.iter().enumerate() {
        let (to, y) = (place(*at), height(*value));
        let _ = match series.shape {
            Shape::Line if number == 0 => write!(path, "M{to:.1} {y:.1}"),
            Shape::Line => write!(path, "L{to:.1} {y:.1}"),
            Shape::Bars => {
                write!(path, "M{:.1} {BOTTOM:.0}V{y:.1}H{:.1}V{BOTTOM:.0}Z", from + 1.0, (to - 1.0).max(from + 1.5))
            }
            Shape::Steps if number == 0 => write!(path, "M{from:.1} {y:.1}H{to:.1}"),
            Shape::Area if number == 0 => write!(path, "M{from:.1} {BOTTOM:.0}V{y:.1}H{to:.1}"),
            Shape::Steps | Shape::Area => write!(path, "V{y:.1}H{to:.1}"),
        };
        from = to;
    }
    if path.is_empty() { format!("M{LEFT:.0} {BOTTOM:.0}") } else { path }
}

fn marks(chart: &Chart, x: &Axis, out: &mut dyn Write) -> io::Result<()> {
    for mark in chart.marks.iter().take(MARKS) {
        let place = LEFT + WIDTH * (float(mark.at) / x.end).min(1.0);
        let (anchor, beside) = if place > LEFT + WIDTH / 2.0 { ("end", -5.0) } else { ("start", 5.0) };
        writeln!(
            out,
            r##"<path d="M{place:.1} {TOP:.0}V{BOTTOM:.0}" stroke="#b03030" stroke-dasharray="4 3"/><text x="{:.1}" y="{:.0}" text-anchor="{anchor}" fill="#b03030">{}</text>"##,
            place + beside,
            TOP - 4.0,
            markup(&cut(&mark.name, 40))
        )?;
    }
    Ok(())
}
