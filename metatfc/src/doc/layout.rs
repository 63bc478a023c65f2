//! Draws the bytes of a record, with a box for each stored field in order, on as many lines as needed.

use super::html::markup;
use metatf_parser::schema::{Leaf, Occurrence, Width};
use std::fmt::Write as _;

/// Width of a line in pixels.
const LINE: usize = 900;
/// Width of a byte in pixels.
const BYTE: usize = 26;
/// Width of the smallest box in pixels.
const LEAST: usize = 44;
/// Width of a letter in pixels.
const LETTER: usize = 8;
/// Height of a box in pixels.
const BOX: usize = 30;
/// Height of a line in pixels.
const STEP: usize = 72;
/// Maximum number of bytes drawn to scale. A longer field gets a box of this width.
const MOST_BYTES: usize = 8;
/// Maximum number of letters of a name to draw.
const MOST_LETTERS: usize = 40;
/// Maximum number of boxes; a record has at most 255 fields.
const MOST_BOXES: usize = 256;

/// A field to draw.
pub(super) struct Part<'d> {
    pub(super) name: &'d str,
    pub(super) leaf: &'d Leaf,
    pub(super) occurrence: Occurrence,
    pub(super) offset: Option<u64>,
    /// The width in bytes to use for the tag, whose leaf does not set a width.
    pub(super) tag_width: u8,
}

impl Part<'_> {
    /// Returns the number of bytes, their label, and whether the box is open-ended, or `None` if the field stores no
    /// bytes.
    fn size(&self) -> Option<(usize, String, bool)> {
        let bytes =
            |n: u64| (usize::try_from(n).unwrap_or(MOST_BYTES), n.to_string(), self.occurrence != Occurrence::Once);
        if self.leaf.is_tag() {
            return Some(bytes(self.tag_width.into()));
        }
        if self.leaf.computed.is_some() || !self.leaf.interpretation.stores() {
            return None;
        }
        match self.leaf.width {
            Width::Unset | Width::Number(0) => None,
            Width::Number(n) => Some(bytes(n.into())),
            Width::Array(n) => Some(bytes(n.into())),
            Width::Variable(_) | Width::Until(_) | Width::Rest => Some((MOST_BYTES, "…".to_owned(), true)),
        }
    }
}

/// Draws the fields that store bytes. Draws nothing if there are no such fields.
pub(super) fn draw(out: &mut String, record: &str, parts: &[Part<'_>]) {
    let mut boxes = String::new();
    let (mut x, mut y, mut widest) = (0, 0, 0);
    for (part, (bytes, size, open)) in parts.iter().filter_map(|p| Some((p, p.size()?))).take(MOST_BOXES) {
        let name: String = part.name.chars().take(MOST_LETTERS).collect();
        let wide = (bytes.min(MOST_BYTES) * BYTE).max(name.chars().count() * LETTER + 12).max(LEAST);
        if x > 0 && x + wide > LINE {
            (x, y) = (0, y + STEP);
        }
        let class = if open { " class=\"open\"" } else { "" };
        let repeated = match part.occurrence {
            Occurrence::Once => "",
            Occurrence::Optional => " or none",
            Occurrence::Repeated => " × n",
        };
        let offset = part.offset.map_or_else(|| "·".to_owned(), |offset| offset.to_string());
        let _ = writeln!(
            boxes,
            "<rect{class} x=\"{}\" y=\"{}\" width=\"{wide}\" height=\"{BOX}\"/>\
             <text x=\"{}\" y=\"{}\">{offset}</text>\
             <text x=\"{}\" y=\"{}\">{}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{size} B{repeated}</text>",
            x + 1,
            y + 16,
            x + 2,
            y + 12,
            x + 7,
            y + 35,
            markup(&name),
            x + wide / 2,
            y + 61,
        );
        x += wide;
        widest = widest.max(x);
    }
    if boxes.is_empty() {
        return;
    }
    let _ = write!(
        out,
        "<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"bytes of {2}\">\n{boxes}</svg>\n",
        widest + 2,
        y + STEP - 8,
        markup(record),
    );
}
