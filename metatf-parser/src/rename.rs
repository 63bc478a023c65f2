//! Renames declared items.

use crate::codes::Severity;
use crate::diagnostic::Suggestion;
use crate::index::{Index, SymbolKind};
use crate::parse::index;
use crate::schema::{Interpretation, InterpretationWord, Width};

/// Returns the edits that rename the item at an offset everywhere in the text. `index` is the [index](crate::index())
/// of the text. The name and the number of a section are renamed separately.
///
/// # Errors
/// Returns a message if there is nothing to rename at the offset, the name is invalid, or the new name would change the
/// meaning of the text.
pub fn rename(text: &[u8], of: &Index, offset: usize, name: &str) -> Result<Vec<Suggestion>, String> {
    let found = of.use_at(offset).ok_or("there is nothing to rename here")?;
    let symbol = of.symbol(found.symbol).ok_or("there is nothing to rename here")?;
    let predefined = of.symbols.iter().any(|other| other.family == symbol.family && other.predefined);
    if predefined {
        return Err(format!("`{}` is predefined and cannot be renamed", symbol.name));
    }
    if symbol.kind == SymbolKind::SectionNumber {
        if !name.parse::<u8>().is_ok_and(|number| number > 0) {
            return Err(format!("`{name}` is not a valid section number: expected 1 to 255"));
        }
    } else if !is_name(name) {
        return Err(format!(
            "`{name}` is not a valid name: expected letters, digits and `_`, and no interpretation word"
        ));
    }
    let edits: Vec<Suggestion> = of
        .references(found.symbol)
        .map(|u| Suggestion { span: u.span.clone(), text: name.to_owned(), certain: true })
        .collect();
    let mut changed = text.to_vec();
    for edit in edits.iter().rev() {
        changed = edit.apply(&changed).ok_or("the index does not belong to this text")?;
    }
    let after = index(&changed);
    if shape(of) == shape(&after) {
        return Ok(edits);
    }
    let errors = after.diagnostics.iter().filter(|d| d.severity == Severity::Error);
    let new = errors.map(|d| &d.message).find(|message| of.diagnostics.iter().all(|d| d.message != **message));
    Err(match new {
        Some(message) => format!("with the name `{name}`, {message}"),
        None => format!("the name `{name}` would change the meaning of the DTD"),
    })
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.starts_with(letter)
        && name.chars().all(|c| letter(c) || c.is_ascii_digit())
        && InterpretationWord::named(name).is_none()
}

/// A field's width, interpretation and offset in its record. The interpretation is `None` if it refers to a section,
/// because the section's number may change.
type Shape<'i> = (&'i Width, Option<Interpretation>, Option<u64>);

/// Returns the properties that do not depend on names, which are the number of errors and the fields of each record.
fn shape(of: &Index) -> (usize, Vec<Vec<Shape<'_>>>) {
    let errors = of.diagnostics.iter().filter(|d| d.severity == Severity::Error).count();
    let interpretation = |interpretation: Interpretation| match interpretation {
        Interpretation::SectionOffset(_) | Interpretation::SectionStride { .. } => None,
        other => Some(other),
    };
    let fields = of.records.iter().map(|record| {
        let fields = record.fields.iter();
        fields.map(|f| (&f.leaf.width, interpretation(f.leaf.interpretation), f.offset)).collect()
    });
    (errors, fields.collect())
}
