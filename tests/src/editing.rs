//! Operations of editors on a text while it is being edited: index, edits, completion and highlighting.

use metatf_parser::index::{Index, SymbolKind};
use metatf_parser::{Columns, Lines, Severity};
use std::path::Path;

/// Typed strings: tokens that begin or end a construct.
const TYPED: [&str; 24] = [
    "",
    ";",
    "{",
    "}",
    "(",
    ")",
    ".",
    ",",
    "*",
    "=",
    "\"",
    "/*",
    "//",
    "\n",
    " ",
    "tag",
    "section s 9 {",
    "delta 0",
    "predicted 1 heap ",
    "baseOffset ",
    "x.width = ",
    "r: (tag, x",
    "\u{1f600}",
    "sectionOffset 2",
];

/// Applies edits to a text. The input is the number of edits, four bytes per edit (position, removed bytes, typed
/// string), and the text. Each intermediate state is checked, as a language server would see it. The checks that index
/// or parse the text again are omitted for intermediate states with mistakes, because searching repairs takes long.
///
/// # Panics
/// Panics if a position is outside the text, if the index contradicts the parser, or if a rename loses something.
pub fn edit_dtd(input: &[u8]) {
    let Some((count, rest)) = input.split_first() else { return };
    let count = usize::from(*count % 5);
    let Some((edits, text)) = rest.split_at_checked(count * 4) else { return };
    let mut text = text.to_vec();
    look(&text, count == 0);
    for (left, edit) in (0..count).rev().zip(edits.chunks_exact(4)) {
        let start = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (text.len() + 1);
        let end = (start + usize::from(edit[2] % 16)).min(text.len());
        let typed = TYPED[usize::from(edit[3]) % TYPED.len()];
        text.splice(start..end, typed.bytes());
        look(&text, left == 0);
    }
}

/// Returns DTDs, some with edits.
pub(crate) fn seeds(path: &Path, bytes: &[u8]) -> Vec<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "dtd") {
        return Vec::new();
    }
    let place = |part: usize| u16::try_from(bytes.len() * part / 7).unwrap_or(u16::MAX).to_le_bytes();
    let edit = |part: usize| {
        let [low, high] = place(part);
        let typed = (bytes.len() * 5 + part * 11) % TYPED.len();
        [low, high, u8::try_from(part * 2).unwrap_or(0), u8::try_from(typed).unwrap_or(0)]
    };
    let edits: Vec<u8> = (1..5).flat_map(edit).collect();
    vec![[&[0], bytes].concat(), [&[4], edits.as_slice(), bytes].concat()]
}

fn look(bytes: &[u8], is_last: bool) {
    let index = metatf_parser::index(bytes);
    let is_read_again = is_last || index.diagnostics.iter().all(|found| found.severity != Severity::Error);
    let parsed = is_read_again.then(|| metatf_parser::parse("", bytes));
    if let Some(parsed) = &parsed {
        assert_eq!(index.diagnostics, parsed.diagnostics, "the index reports what the parser does");
    }
    for suggestion in index.diagnostics.iter().filter_map(|d| d.suggestion.as_ref()) {
        suggestion.apply(bytes).expect("a suggestion is in the text");
    }
    for finding in metatf_parser::lint(bytes, &index, |_| true) {
        assert!(bytes.get(finding.primary.span.clone()).is_some(), "a finding is in the text: {finding:?}");
        let Some(edited) = finding.suggestion.as_ref().map(|edit| edit.apply(bytes).expect("an edit is in the text"))
        else {
            continue;
        };
        let old = parsed.as_ref().and_then(|parsed| parsed.dtd.as_ref());
        let new = metatf_parser::parse("", &edited).dtd.expect("an edit leaves a DTD that checks");
        let same = old.is_some_and(|old| old.fingerprint() == new.fingerprint());
        assert!(
            finding.code != metatf_parser::Code::Lint(metatf_parser::Rule::OverriddenProperty) || same,
            "what is taken out had no effect: {finding:?}"
        );
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let inside = |place: &std::ops::Range<usize>| {
        assert!(place.start <= place.end && text.get(place.clone()).is_some(), "{place:?} is no place of the text");
    };
    for columns in [Columns::Utf8, Columns::Utf16] {
        let lines = Lines::new(text, columns);
        for found in index.uses.iter().take(50) {
            let (line, column) = lines.position(found.span.start);
            assert_eq!(lines.offset(line, column), found.span.start);
        }
    }
    names(text, &index);
    let mut end = 0;
    for (place, _) in metatf_parser::tokens(bytes, &index) {
        inside(&place);
        assert!(end <= place.start && !place.is_empty(), "pieces do not overlap");
        end = place.end;
    }
    for hint in metatf_parser::hints(text, &index) {
        inside(&(hint.offset..hint.offset));
    }
    let step = (text.len() / 40).max(1);
    for offset in (0..=text.len()).step_by(step).filter(|at| text.is_char_boundary(*at)) {
        for completion in metatf_parser::complete(bytes, &index, offset) {
            inside(&completion.replace);
            assert!(completion.replace.start <= offset && offset <= completion.replace.end, "it is at the place");
        }
        if let Some(hover) = metatf_parser::hover(bytes, &index, offset) {
            inside(&hover.span);
            assert!(!hover.markdown.is_empty());
        }
    }
    for found in index.uses.iter().step_by(index.uses.len() / 3 + 1).filter(|_| is_read_again) {
        rename(bytes, &index, found.span.start);
    }
}

/// Checks that uses are in order, and that the text of each use is the name of its symbol.
fn names(text: &str, index: &Index) {
    let mut end = 0;
    for found in &index.uses {
        let symbol = index.symbol(found.symbol).expect("a use is of a symbol");
        assert!(end <= found.span.start, "uses do not overlap");
        end = found.span.end;
        let word = text.get(found.span.clone()).expect("a use is in the text");
        assert!(symbol.kind == SymbolKind::SectionNumber || word == symbol.name, "`{word}` is `{}`", symbol.name);
        for place in &symbol.definitions {
            assert!(text.get(place.clone()).is_some(), "a definition is in the text");
        }
    }
}

/// Removes the name from the properties `was` of a text, the properties that contain no other name, and whitespace,
/// empty blocks and semicolons. A rename adds the previous name to such a property, in a new block if necessary.
fn without_earlier_name(text: &str, name: &str) -> String {
    let mut text = text.replace(&format!(", {name}\""), "\"").replace(&format!("\"{name}, "), "\"");
    let property = format!("was = \"{name}\";");
    while let Some(at) = text.find(&property) {
        let path = text.split_at(at).0.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "_.".contains(c));
        text.replace_range(path.len()..at + property.len(), "");
    }
    text.retain(|c| !c.is_whitespace() && c != ';');
    text.replace("{}", "")
}

/// Checks that renaming a symbol and renaming it back restores the text, apart from the earlier name and its block.
fn rename(text: &[u8], index: &Index, offset: usize) {
    let symbol = index.use_at(offset).and_then(|u| index.symbol(u.symbol)).expect("a use is found at its start");
    let other = if symbol.kind == SymbolKind::SectionNumber { "251" } else { "renamed_z" };
    let Ok(edits) = metatf_parser::rename(text, index, offset, other) else { return };
    let mut changed = text.to_vec();
    let mut moved = offset;
    for edit in edits.iter().rev() {
        changed = edit.apply(&changed).expect("an edit is in the text");
        if edit.span.end <= offset {
            moved = moved + edit.text.len() - edit.span.len();
        }
    }
    let after = metatf_parser::index(&changed);
    let errors = |index: &Index| index.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    assert_eq!(errors(index), errors(&after), "a rename makes no mistake");
    // Skipped for numbers, which may be written in another base, and for texts with mistakes, whose names may hide each
    // other.
    if errors(index) == 0 && symbol.kind != SymbolKind::SectionNumber {
        let back = metatf_parser::rename(&changed, &after, moved, &symbol.name).expect("it can be renamed back");
        for edit in back.iter().rev() {
            changed = edit.apply(&changed).expect("an edit is in the text");
        }
        let [before, after] = [text, &changed].map(|text| without_earlier_name(&String::from_utf8_lossy(text), other));
        assert_eq!(after, before, "renamed back");
    }
}
