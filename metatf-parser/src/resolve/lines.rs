//! Lines to write in place of a mistake: parts of a record as the text contains them, changed or in another order.

use std::ops::Range;

use crate::ast::{Record, Setting, Typed};
use crate::span::{Source, Span};

/// Maximum number of bytes in a line, because nobody would read a longer one.
const MOST_BYTES: usize = 200;

/// Returns the text at a location on one line, unless it contains a comment or is long.
pub(super) fn flat(source: &Source, span: Span) -> Option<String> {
    let text = source.text(span).filter(|text| text.len() <= 2 * MOST_BYTES)?;
    let is_plain = !text.contains("//") && !text.contains("/*");
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(").replace(" )", ")");
    (is_plain && line.len() <= MOST_BYTES).then_some(line)
}

/// Returns the name and the field list of a record.
fn head(record: &Record) -> Span {
    let end = record.brace.map_or(record.extent.end(), Span::start);
    Span::new(record.name.span.start(), end)
}

/// Returns the locations of the items of a record's list.
fn items(source: &Source, record: &Record) -> Option<Vec<Range<usize>>> {
    let head = head(record);
    let text = source.text(head).filter(|text| text.len() <= 2 * MOST_BYTES)?;
    let open = text.find('(')?;
    let (mut out, mut depth, mut start) = (Vec::new(), 0_usize, open + 1);
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.checked_sub(1)?,
            b',' if depth == 1 => {}
            _ => continue,
        }
        if depth == 0 || byte == b',' {
            out.push(head.start() + start..head.start() + at);
            start = at + 1;
        }
        if depth == 0 {
            return Some(out);
        }
    }
    None
}

/// Returns the definition of a record without its block.
pub(super) fn definition(source: &Source, record: &Record) -> Option<String> {
    let line = flat(source, head(record))?;
    Some(line.trim_end_matches([';', ' ']).to_owned())
}

/// Returns the definition of a record with the item at `from` moved to the position of the item at `to`.
pub(super) fn moved(source: &Source, record: &Record, from: Span, to: Span) -> Option<String> {
    let items = items(source, record)?;
    let place = |span: Span| items.iter().position(|item| item.contains(&span.start()));
    let (from, to) = (place(from)?, place(to)?);
    let mut texts: Vec<String> =
        items.iter().map(|i| flat(source, Span::new(i.start, i.end))).collect::<Option<_>>()?;
    if from == to || texts.iter().any(String::is_empty) {
        return None;
    }
    let item = texts.remove(from);
    texts.insert(to, item);
    let line = format!("{}: ({})", record.name.text, texts.join(", "));
    (line.len() <= MOST_BYTES).then_some(line)
}

/// Returns the item of the record's list, or the statement in its block, that contains a location.
pub(super) fn around(source: &Source, record: &Record, place: Span) -> Option<Span> {
    let contains = |span: &Span| span.start() <= place.start() && place.end() <= span.end();
    let statement = |setting: &Setting| Span::new(setting.target().start(), setting.value_span.end());
    record.block.iter().filter(|s| !s.value_span.is_predefined()).map(statement).find(contains).or_else(|| {
        let items = items(source, record)?;
        items.into_iter().map(|item| Span::new(item.start, item.end)).find(contains)
    })
}

/// Returns a line of the text with another text at a location.
pub(super) fn replaced(source: &Source, line: Span, place: Span, text: &str) -> Option<String> {
    let before = source.text(Span::new(line.start(), place.start()))?;
    let after = source.text(Span::new(place.end(), line.end()))?;
    let whole = format!("{before}{text}{after}");
    let is_plain = !whole.contains("//") && !whole.contains("/*") && whole.len() <= MOST_BYTES;
    is_plain.then(|| whole.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the field or the statement that sets an interpretation, with another interpretation.
pub(super) fn interpreted(setting: &Setting, typed: Option<&Typed>, interpretation: &str) -> Option<String> {
    match typed {
        Some(typed) if typed.has_length => None,
        Some(typed) => {
            let word = typed.word.map_or_else(String::new, |word| format!("{} ", word.text));
            Some(format!("{}: {word}{interpretation}", typed.name.text))
        }
        None => Some(format!("{}.interpretation = {interpretation};", setting.path_text())),
    }
}
