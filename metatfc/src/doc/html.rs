//! The parts shared by all pages, such as the head, the style, prose from DTD comments, and link targets.

use crate::failure::{Failure, Result};
use metatf::container::Sink;
pub(super) use metatf_page::markup;
use std::fmt;
use std::fmt::Write as _;

/// The first bytes of every page. A later run recognizes its own pages by these bytes.
pub(super) const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"metatfc show --doc\">\n";

/// The style sheet, which follows the reader's light or dark theme and adapts to the window width.
const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8888;--fill:#0072b222;--mark:#e69f0044}
body{font:15px/1.45 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2.5rem}h3{font-size:1rem}
h2 .tag{font-weight:400;opacity:.7}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}.scroll{overflow-x:auto;margin:.8rem 0}
th,td{padding:.15rem .6rem;text-align:left;vertical-align:top}th{border-bottom:1px solid var(--line)}
.n{text-align:right}code,pre{font:13px/1.45 ui-monospace,monospace}
.from{font-size:.85em;opacity:.8;white-space:nowrap}
dt{float:left;clear:left;min-width:8rem}
tr:target,h2:target,pre span:target{background:var(--mark)}
svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:currentColor}
svg rect{fill:var(--fill);stroke:currentColor}svg .open{stroke-dasharray:4 3}
pre{overflow-x:auto}pre i{display:inline-block;min-width:3.5em;opacity:.6;font-style:normal;user-select:none}
@media print{body{max-width:none}}
";

/// An HTML page under construction, written to the sink block by block.
pub(super) struct Doc {
    pub(super) text: String,
    sink: Box<dyn Sink + Send>,
    name: String,
}

/// Number of bytes of text at which a block is written to the sink.
const FULL: usize = 1 << 16;

impl Doc {
    pub(super) fn new(sink: Box<dyn Sink + Send>, name: &str) -> Self {
        Self { text: String::new(), sink, name: name.to_owned() }
    }

    /// Writes the text once it contains at least [`FULL`] bytes.
    pub(super) fn spill(&mut self) -> Result<()> {
        if self.text.len() >= FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.sink.write_all(self.text.as_bytes()).map_err(|e| Failure::io(&self.name, &e))?;
        self.text.clear();
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Box<dyn Sink + Send>> {
        self.flush()?;
        Ok(self.sink)
    }
}

pub(super) fn start(out: &mut String, title: &str) {
    let title = markup(title);
    let _ = write!(
        out,
        "{HEAD}<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>\n"
    );
}

pub(super) fn end(out: &mut String) {
    out.push_str("</html>\n");
}

/// Writes a DTD comment as HTML paragraphs, formatting text between backticks as code.
pub(super) fn prose(out: &mut String, doc: Option<&str>) {
    let mut paragraph = String::new();
    // The additional empty line ends the last paragraph.
    for text in doc.unwrap_or_default().lines().chain([""]) {
        if !text.trim().is_empty() {
            paragraph.extend([text.trim(), " "]);
        } else if !paragraph.is_empty() {
            let _ = writeln!(out, "<p>{}</p>", line(paragraph.trim()));
            paragraph.clear();
        }
    }
}

/// Returns a line of prose, with code between backticks. An unpaired backtick is kept.
pub(super) fn line(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (code, after))) = rest.split_once('`').and_then(|(b, r)| Some((b, r.split_once('`')?))) {
        let _ = write!(out, "{}<code>{}</code>", markup(before), markup(code));
        rest = after;
    }
    out.push_str(&markup(rest));
    out
}

/// A name as part of a link target. Letters, digits, `_` and `.` are kept.
pub(super) struct Link<'n>(pub(super) &'n str);

impl Link<'_> {
    /// Returns the page name of a section.
    pub(super) fn section(number: u8) -> String {
        format!("section-{number}.html")
    }
}

impl fmt::Display for Link<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') { f.write_char(c) } else { f.write_char('-') }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_harmless() {
        let mut out = String::new();
        prose(&mut out, Some("a `<b>` & ` c\nd\n\n<script>e</script>"));
        assert_eq!(out, "<p>a <code>&lt;b&gt;</code> &amp; ` c d</p>\n<p>&lt;script&gt;e&lt;/script&gt;</p>\n");
        assert_eq!(Link("a.b\"<c").to_string(), "a.b--c");
    }
}
