//! Draws intervals next to each other.

use std::io::{self, Write};

use super::{begin, colour, cut, dash, dot, float};
use crate::Intervals;
use crate::axis::step;
use crate::escape::markup;
use crate::intervals::Panel;

const LEFT: f64 = 80.0;
const WIDTH: f64 = 750.0;
const RIGHT: f64 = LEFT + WIDTH;
/// The top of the first panel.
const TOP: f64 = 66.0;
/// The distance from the bottom of a panel to the top of the next.
const GAP: f64 = 56.0;
/// The height of a single panel.
const ALONE: f64 = 300.0;
/// The height of each of several panels.
const PANEL: f64 = 150.0;
/// The distance between two lines of the legend.
const LINE: f64 = 20.0;

pub(super) fn draw(picture: &Intervals, out: &mut dyn Write) -> io::Result<()> {
    let height = if picture.panels.len() > 1 { PANEL } else { ALONE };
    let bottom = TOP + (height + GAP) * float(picture.panels.len() as u64);
    let size = (RIGHT + 30.0, bottom + LINE * float(picture.series.len() as u64));
    begin(&picture.title, &about(picture), size, out)?;
    for (number, panel) in (0..).zip(&picture.panels) {
        let top = TOP + (height + GAP) * float(number);
        scale(picture, panel, top, height, out)?;
        intervals(picture, panel, top + height, height, out)?;
    }
    writeln!(
        out,
        r#"<text x="{RIGHT:.0}" y="{:.0}" text-anchor="end">{}</text>"#,
        bottom - 16.0,
        markup(&picture.x_name)
    )?;
    for (number, series) in picture.series.iter().enumerate() {
        let y = bottom + LINE * float(number as u64);
        writeln!(
            out,
            r#"<circle cx="{:.0}" cy="{y:.0}" r="4" {}/><text x="{:.0}" y="{:.0}">{}</text>"#,
            LEFT + 12.0,
            dot(number),
            LEFT + 32.0,
            y + 5.0,
            markup(&cut(series, 90))
        )?;
    }
    writeln!(out, "</svg>")
}

/// Describes the picture in words.
fn about(picture: &Intervals) -> String {
    let panels = picture.panels.iter().map(|panel| panel.name.as_str()).filter(|name| !name.is_empty());
    let all =
        [panels.collect::<Vec<_>>(), picture.series.iter().map(String::as_str).collect()].map(|names| names.join(", "));
    let [panels, series] = all;
    let of = picture.groups.join(", ");
    [panels, series, of].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}

/// Draws the lines and numbers of a panel's scale, and its name with the unit.
fn scale(picture: &Intervals, panel: &Panel, top: f64, height: f64, out: &mut dyn Write) -> io::Result<()> {
    let most = picture.top();
    let step = step(most);
    let digits = if step < 0.1 { 2 } else { usize::from(step < 1.0) };
    let name =
        [panel.name.as_str(), &picture.unit].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    writeln!(out, r#"<text x="{:.0}" y="{:.0}">{}</text>"#, LEFT - 40.0, top - 12.0, markup(&name))?;
    for number in (0..12_u32).map(|n| f64::from(n) * step).take_while(|number| *number <= most * 1.000_001) {
        let y = top + height * (1.0 - number / most);
        let stroke =
            if picture.baseline.is_some_and(|at| (at - number).abs() < step / 1000.0) { "#888" } else { "#ddd" };
        writeln!(
            out,
            r#"<path d="M{LEFT:.0} {y:.1}H{RIGHT:.0}" stroke="{stroke}"/><text x="{:.0}" y="{:.1}" text-anchor="end">{number:.digits$}</text>"#,
            LEFT - 8.0,
            y + 5.0
        )?;
    }
    Ok(())
}

fn intervals(picture: &Intervals, panel: &Panel, bottom: f64, height: f64, out: &mut dyn Write) -> io::Result<()> {
    let most = picture.top();
    let place = |value: f64| bottom - height * value.clamp(0.0, most) / most;
    let group = WIDTH / float(picture.groups.len().max(1) as u64);
    for ((number, name), of_group) in (0..).zip(&picture.groups).zip(&panel.intervals) {
        let left = LEFT + group * float(number);
        writeln!(
            out,
            r#"<text x="{:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
            left + group / 2.0,
            bottom + 20.0,
            markup(&cut(name, 30))
        )?;
        for (at, interval) in of_group.iter().enumerate() {
            let x = left + group * float(at as u64 + 1) / float(picture.series.len() as u64 + 1);
            let (colour, dash) = (colour(at), dash(at));
            match interval.filter(|interval| interval.iter().all(|number| number.is_finite())) {
                Some([least, middle, greatest]) => {
                    writeln!(
                        out,
                        r#"<path d="M{x:.1} {:.1}V{:.1}" stroke="{colour}" stroke-width="2"{dash}/><circle cx="{x:.1}" cy="{:.1}" r="4" {}/>"#,
                        place(least),
                        place(greatest),
                        place(middle),
                        dot(at)
                    )?;
                    if middle > most {
                        writeln!(out, r#"<text x="{:.1}" y="{:.1}">{middle:.1}</text>"#, x + 7.0, place(middle) + 5.0)?;
                    }
                }
                None => writeln!(
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
