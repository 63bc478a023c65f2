//! Line charts as SVG.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::curve::Curves;
use metatf_page::units::{bytes, count};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 90.0;
const TOP: f64 = 40.0;
/// Colours that people who see few of them tell from each other (Okabe and Ito).
pub(crate) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/// Draws bytes over events: the most in each stretch.
///
/// # Errors
/// The output's.
pub fn lines(title: &str, curves: &Curves, out: &mut dyn Write) -> io::Result<()> {
    lines_of(title, curves, bytes, out)
}

/// Draws any quantity over events; `label` names a value of the scale.
///
/// # Errors
/// The output's.
pub fn lines_of(title: &str, curves: &Curves, label: fn(u64) -> String, out: &mut dyn Write) -> io::Result<()> {
    let most = curves.lines.iter().flat_map(|line| &line.most).copied().max().unwrap_or(0).max(1);
    let stretches = curves.lines.iter().map(|line| line.most.len()).max().unwrap_or(0);
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    let legend = 18.0 * float(curves.lines.len() as u64);
    begin(title, right + 30.0, bottom + 44.0 + legend, out)?;
    let events = curves.step.saturating_mul(stretches as u64);
    for quarter in 0..=4_u64 {
        let part = |of: u64| u64::try_from(u128::from(of) * u128::from(quarter) / 4).unwrap_or(0);
        let (x, y) = (LEFT + WIDTH * float(quarter) / 4.0, bottom - HEIGHT * float(quarter) / 4.0);
        writeln!(
            out,
            r##"<path d="M{LEFT} {y}H{right}" stroke="#ddd"/><text x="{}" y="{}" text-anchor="end">{}</text>
<text x="{x}" y="{}" text-anchor="middle">{}</text>"##,
            LEFT - 8.0,
            y + 4.0,
            label(part(most)),
            bottom + 20.0,
            count(part(events))
        )?;
    }
    for (n, line) in curves.lines.iter().enumerate() {
        let colour = COLOURS.get(n % COLOURS.len()).copied().unwrap_or_default();
        let mut path = String::new();
        for (at, most_of_line) in line.most.iter().enumerate() {
            let x = |at: usize| LEFT + WIDTH * float(at as u64) / float(stretches.max(1) as u64);
            let y = bottom - HEIGHT * float(*most_of_line) / float(most);
            let _ = write!(path, "{}{:.1} {y:.1}H{:.1}", if at == 0 { "M" } else { "L" }, x(at), x(at + 1));
        }
        let y = bottom + 44.0 + 18.0 * float(n as u64);
        writeln!(
            out,
            r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>
<path d="M{LEFT} {y}h24" stroke="{colour}" stroke-width="3"/><text x="{}" y="{}">{}</text>"#,
            LEFT + 32.0,
            y + 4.0,
            escape(&line.name)
        )?;
    }
    writeln!(out, "</svg>")
}

/// Begins a picture of this size, with a title.
pub(crate) fn begin(title: &str, width: f64, height: f64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="{LEFT}" y="22" font-size="15">{}</text>"#,
        escape(title)
    )
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

/// Escapes text for SVG, cut after 200 characters.
pub(crate) fn escape(text: &str) -> String {
    let shown = text.chars().take(200).filter(|c| !c.is_control());
    shown.fold(String::new(), |mut out, c| {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Line;

    #[test]
    fn draws_anything() {
        let mut out = Vec::new();
        lines("empty", &Curves { step: 1, lines: Vec::new() }, &mut out).unwrap();
        let line = |name: &str, most: &[u64]| Line { name: name.to_owned(), most: most.to_vec() };
        let curves = Curves { step: u64::MAX, lines: vec![line("a <b>", &[0, u64::MAX]), line("c", &[])] };
        lines("x & y", &curves, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("</svg>").count(), 2);
        assert!(text.contains("x &amp; y") && text.contains("a &lt;b&gt;"));
        assert!(!text.contains("NaN") && !text.contains("inf"));
    }
}
