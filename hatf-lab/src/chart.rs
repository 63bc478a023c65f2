//! What pictures of ranges have in common, which `metatf_page` does not draw.

use std::io::{self, Write};

const LEFT: f64 = 90.0;
/// Colours that people who see few of them tell from each other (Okabe and Ito).
pub(crate) const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

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
