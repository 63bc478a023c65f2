//! Places of a text as the protocol has them.

use metatf_parser::Lines;
use serde_json::{Value, json};
use std::ops::Range;

/// Returns the range of some bytes.
pub(super) fn range(lines: &Lines<'_>, bytes: &Range<usize>) -> Value {
    json!({ "start": position(lines, bytes.start), "end": position(lines, bytes.end) })
}

pub(super) fn position(lines: &Lines<'_>, offset: usize) -> Value {
    let (line, character) = lines.position(offset);
    json!({ "line": line, "character": character })
}

/// Returns the offset of a position. `None`: it is none.
pub(super) fn offset(lines: &Lines<'_>, position: &Value) -> Option<usize> {
    let number = |name: &str| Some(u32::try_from(position.get(name)?.as_u64()?).unwrap_or(u32::MAX));
    Some(lines.offset(number("line")?, number("character")?))
}

/// Returns the bytes of a range. `None`: it is none.
pub(super) fn bytes(lines: &Lines<'_>, range: &Value) -> Option<Range<usize>> {
    let (start, end) = (offset(lines, range.get("start")?)?, offset(lines, range.get("end")?)?);
    Some(start.min(end)..start.max(end))
}

/// Returns an edit of the text.
pub(super) fn edit(lines: &Lines<'_>, bytes: &Range<usize>, text: &str) -> Value {
    json!({ "range": range(lines, bytes), "newText": text })
}
