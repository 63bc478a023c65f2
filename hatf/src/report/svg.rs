//! The picture of live bytes over time, as SVG.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::analysis::{Report, Timeline};
use hatf_lab::units::{bytes, nanoseconds};

const WIDTH: u64 = 860;
const HEIGHT: u64 = 300;
const LEFT: u64 = 90;
const TOP: u64 = 40;

/// Draws live bytes over time: the area under the most live bytes of each stretch of time.
///
/// # Errors
/// The output's.
pub fn svg(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let pages = report.pages.as_ref().filter(|pages| pages.samples > 0).map(|pages| &pages.timeline);
    let points = report.timeline.points.iter().chain(pages.iter().flat_map(|pages| &pages.points));
    let most = points.map(|point| point.most).max().unwrap_or(0).max(1);
    let (right, bottom) = (LEFT + WIDTH, TOP + HEIGHT);
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="{LEFT}" y="22" font-size="15">{}</text>"#,
        right + 30,
        bottom + 40,
        escape(&title(report))
    )?;
    for quarter in 0..=4 {
        let y = bottom - HEIGHT * quarter / 4;
        let label = bytes(portion(most, quarter, 4));
        writeln!(
            out,
            r##"<path d="M{LEFT} {y}H{right}" stroke="#ddd"/><text x="{}" y="{}" text-anchor="end">{label}</text>"##,
            LEFT - 8,
            y + 4
        )?;
        let x = LEFT + WIDTH * quarter / 4;
        let label = nanoseconds(portion(report.duration, quarter, 4));
        writeln!(out, r#"<text x="{x}" y="{}" text-anchor="middle">{label}</text>"#, bottom + 20)?;
    }
    let area = area(report, most);
    writeln!(out, r##"<path d="{area}" fill="#4878a8" fill-opacity="0.35" stroke="#28587f"/>"##)?;
    if let Some(pages) = pages {
        let line = line(pages, report.duration, most);
        writeln!(out, r##"<path d="M{LEFT} {bottom}{line}" fill="none" stroke="#b06010" stroke-width="1.5"/>"##)?;
        writeln!(
            out,
            r##"<text x="{right}" y="22" text-anchor="end" fill="#b06010">resident and private pages</text>"##
        )?;
    }
    let x = LEFT + scale(report.peak.time, report.duration, WIDTH);
    writeln!(
        out,
        r##"<path d="M{x} {TOP}V{bottom}" stroke="#b03030" stroke-dasharray="3 3"/>
</svg>"##
    )
}

fn title(report: &Report) -> String {
    let command = report.comments.iter().find_map(|comment| comment.strip_prefix("command: "));
    let peak = bytes(report.peak.bytes);
    format!("{}: live bytes over time, peak {peak}", command.unwrap_or("heap trace"))
}

/// Returns the path around the area.
fn area(report: &Report, most: u64) -> String {
    let bottom = TOP + HEIGHT;
    let line = line(&report.timeline, report.duration, most);
    format!("M{LEFT} {bottom}{line}V{bottom}Z")
}

/// Returns the steps of a timeline, from the left on.
fn line(timeline: &Timeline, duration: u64, most: u64) -> String {
    let bottom = TOP + HEIGHT;
    let mut path = String::new();
    for (n, point) in (0..).zip(&timeline.points) {
        let y = bottom - scale(point.most, most, HEIGHT);
        let end = timeline.step.saturating_mul(n + 1).min(duration);
        let x = LEFT + scale(end, duration, WIDTH);
        let _ = write!(path, "V{y}H{x}");
    }
    path
}

/// Where `value` of `most` falls on a length.
fn scale(value: u64, most: u64, length: u64) -> u64 {
    if most == 0 {
        return 0;
    }
    u64::try_from(u128::from(value.min(most)) * u128::from(length) / u128::from(most)).unwrap_or(0)
}

fn portion(value: u64, part: u64, of: u64) -> u64 {
    scale(part, of, value)
}

fn escape(text: &str) -> String {
    let shown = text.chars().take(100).filter(|c| !c.is_control());
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
    use crate::analysis::Analysis;
    use crate::event::{Call, Event, EventKind, EventSink as _, Function};

    #[test]
    fn draws_anything() {
        let mut out = Vec::new();
        svg(&Analysis::new().finish(), &mut out).unwrap();
        let mut analysis = Analysis::new();
        analysis.comment(b"command: a <b> & 'c'").unwrap();
        let what = EventKind::Call(Call { size: u64::MAX, address: 1, ..Call::new(Function::Malloc) });
        let event = Event { time: u64::MAX, ..Event::new(what) };
        analysis.event(&event).unwrap();
        svg(&analysis.finish(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("a &lt;b&gt; &amp; 'c': live bytes"));
        assert_eq!(text.matches("</svg>").count(), 2);
    }
}
