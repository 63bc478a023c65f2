//! Conversion between byte offsets and protocol positions.

use metatf_parser::Lines;
use serde_json::{Value, json};
use std::ops::Range;

/// Converts a byte range to a protocol range.
pub(super) fn range(lines: &Lines<'_>, bytes: &Range<usize>) -> Value {
    json!({ "start": position(lines, bytes.start), "end": position(lines, bytes.end) })
}

pub(super) fn position(lines: &Lines<'_>, offset: usize) -> Value {
    let (line, character) = lines.position(offset);
    json!({ "line": line, "character": character })
}

/// Returns the offset of a position, or `None` if the position is invalid.
pub(super) fn offset(lines: &Lines<'_>, position: &Value) -> Option<usize> {
    let number = |name: &str| Some(u32::try_from(position.get(name)?.as_u64()?).unwrap_or(u32::MAX));
    Some(lines.offset(number("line")?, number("character")?))
}

/// Returns the byte range of a protocol range, or `None` if the range is invalid.
pub(super) fn bytes(lines: &Lines<'_>, range: &Value) -> Option<Range<usize>> {
    let (start, end) = (offset(lines, range.get("start")?)?, offset(lines, range.get("end")?)?);
    Some(start.min(end)..start.max(end))
}

/// Returns a text edit.
pub(super) fn edit(lines: &Lines<'_>, bytes: &Range<usize>, text: &str) -> Value {
    json!({ "range": range(lines, bytes), "newText": text })
}
