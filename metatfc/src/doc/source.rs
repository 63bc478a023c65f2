//! The text of the DTD, with an anchor for each line.

use super::html::{Doc, markup};
use crate::failure::Result;
use std::fmt::Write as _;

pub(super) fn lines(doc: &mut Doc, text: &str) -> Result<()> {
    doc.text.push_str("<p><a href=\"index.html\">All sections</a></p>\n<pre>\n");
    for (number, line) in (1_u64..).zip(text.lines()) {
        // Keep tabs here as spaces; elsewhere, tabs are escaped to keep text within its column.
        let line = line.replace('\t', "    ");
        let _ = writeln!(doc.text, "<span id=\"L{number}\"><i>{number}</i>{}</span>", markup(&line));
        doc.spill()?;
    }
    doc.text.push_str("</pre>\n");
    Ok(())
}
