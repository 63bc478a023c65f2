//! Renames declared items.

use crate::codes::Severity;
use crate::diagnostic::{Reporter, Suggestion};
use crate::index::{Index, LaidOut, ResolvedField, Set, SymbolId, SymbolKind};
use crate::lexer;
use crate::parse::index;
use crate::schema::{Interpretation, InterpretationWord, Width};
use crate::span::Source;
use crate::vocabulary::Property;
use std::ops::Range;

/// Returns the edits that rename the item at an offset everywhere in the text, sorted by position. `index` is the
/// [index](crate::index()) of the text. The name and the number of a section are renamed separately.
///
/// The edits also add the old name of a field or of a tagged record to its `was`, so that readers with the new DTD find
/// the values in traces with the old DTD. Sections and nested records cannot have earlier names.
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
    let renamed = |edits: &[Suggestion]| {
        let mut changed = text.to_vec();
        for edit in edits.iter().rev() {
            changed = edit.apply(&changed).ok_or("the index does not belong to this text")?;
        }
        Ok::<_, String>(index(&changed))
    };
    // If the old name cannot be an earlier name, rename the item without it.
    let keeping = [earlier_names(text, of, found.symbol, name), edits.clone()].concat();
    let keeping = sorted(keeping);
    if shape(of) == shape(&renamed(&keeping)?) {
        return Ok(keeping);
    }
    let after = renamed(&edits)?;
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

fn sorted(mut edits: Vec<Suggestion>) -> Vec<Suggestion> {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    edits
}

/// Returns the edits that make the current name of a symbol an earlier name.
fn earlier_names(text: &[u8], of: &Index, symbol: SymbolId, name: &str) -> Vec<Suggestion> {
    let (Ok(text), Some(symbol)) = (std::str::from_utf8(text), of.symbol(symbol)) else { return Vec::new() };
    let family = (0..).zip(&of.symbols).filter(|(_, other)| other.family == symbol.family);
    let mut edits: Vec<Suggestion> = Vec::new();
    for (id, member) in family {
        let old = member.name.as_str();
        let found: Vec<_> = match member.kind {
            SymbolKind::Field => of.fields(id).filter_map(|(_, field)| earlier(text, of, field, old, name)).collect(),
            SymbolKind::Record => {
                let declared = of.records.iter().filter(|record| member.definitions.contains(&record.span));
                declared.filter_map(|record| earlier_record(text, record, old, name)).collect()
            }
            SymbolKind::Section | SymbolKind::SectionNumber => Vec::new(),
        };
        for edit in found {
            // One statement can set the properties of several fields.
            if edits.iter().all(|known| known.span != edit.span) {
                edits.push(edit);
            }
        }
    }
    edits
}

/// Returns the edit that adds an earlier name to a field.
fn earlier(text: &str, of: &Index, field: &ResolvedField, old: &str, new: &str) -> Option<Suggestion> {
    if let Some(list) = field.set(Property::Was).and_then(|set| set.value_span.clone()) {
        return extended(text, list, old, new);
    }
    let set = field.set(Property::Interpretation).filter(|set| set.span.is_some());
    let set = set.or_else(|| field.set(Property::Width))?;
    let target = set.span.clone().and_then(|span| text.get(span)).filter(|target| !target.contains(':'));
    let Some(target) = target else { return earlier_typed(text, of, &field.site, old, new) };
    let path = target.rsplit_once('.')?.0.trim_end();
    let before = path.strip_suffix(old).filter(|before| before.is_empty() || before.ends_with('.'))?;
    statement_after(text, set, &format!("{before}{new}.was = \"{old}\";"))
}

/// Returns the edit that adds an earlier name to a field with a type: in the block of the record, or if the field list
/// contains only the name, in the block of the type with this name. Adds the block if there is none.
fn earlier_typed(text: &str, of: &Index, field: &Range<usize>, old: &str, new: &str) -> Option<Suggestion> {
    let has_type = |name: &Range<usize>| text.get(name.end..).is_some_and(|rest| rest.trim_start().starts_with(':'));
    let (statement, at) = if has_type(field) {
        let mut records = of.outline.iter().flat_map(|item| std::iter::once(item).chain(&item.children));
        let record = records.find(|item| item.kind == SymbolKind::Record && item.extent.contains(&field.start))?;
        (format!("{new}.was = \"{old}\";"), end_of_list(text, record.span.end)?)
    } else {
        let mut definitions = of.symbols.iter().filter(|symbol| symbol.name == old).flat_map(|s| &s.definitions);
        let defines = |name: &&Range<usize>| {
            has_type(name) && text.get(..name.start).is_some_and(|t| t.trim_end().ends_with("type"))
        };
        let name = definitions.find(defines)?;
        (format!("was = \"{old}\";"), name.end + text.get(name.end..)?.find(['{', ';'])?)
    };
    let rest = text.get(at..)?;
    let next = at + rest.len() - rest.trim_start().len();
    let (span, text) = match text.as_bytes().get(next) {
        Some(b'{') => (next + 1..next + 1, format!(" {statement}")),
        Some(b';') => (at..next + 1, format!(" {{ {statement} }}")),
        _ => (at..at, format!(" {{ {statement} }}")),
    };
    Some(Suggestion { span, text, certain: true })
}

/// Returns the end of the field list of the record whose name ends at an offset.
fn end_of_list(text: &str, name_end: usize) -> Option<usize> {
    let source = Source::new(text.as_bytes());
    let lexed = lexer::lex(text, source.start, &mut Reporter::new(&source))?;
    let colon = lexed.tokens.partition_point(|token| token.span.start() < name_end);
    let last = lexed.fields_end(colon + 1).checked_sub(1)?;
    lexed.tokens.get(last).map(|token| token.span.end())
}

/// Returns the edit that adds an earlier name to a tagged record.
fn earlier_record(text: &str, record: &LaidOut, old: &str, new: &str) -> Option<Suggestion> {
    let tag = record.fields.first().filter(|_| record.tag.is_some())?;
    if let Some(list) = tag.set(Property::Was).and_then(|set| set.value_span.clone()) {
        return extended(text, list, old, new);
    }
    statement_after(text, tag.set(Property::Value)?, &format!("tag.was = \"{old}\";"))
}

/// Returns the edit that puts a name at the front of a list of earlier names, which does not contain the new name.
fn extended(text: &str, list: Range<usize>, old: &str, new: &str) -> Option<Suggestion> {
    let names = text.get(list.clone())?.trim_matches('"').split(',').map(str::trim);
    let kept = names.filter(|name| !name.is_empty() && ![old, new].contains(name));
    let names: Vec<&str> = std::iter::once(old).chain(kept).collect();
    Some(Suggestion { span: list, text: format!("\"{}\"", names.join(", ")), certain: true })
}

/// Returns the edit that inserts a statement after another one, on its own line if the other one has its own line.
fn statement_after(text: &str, set: &Set, statement: &str) -> Option<Suggestion> {
    let end = set.value_span.as_ref()?.end;
    let at = end + text.get(end..)?.find(';')? + 1;
    let line = text.get(..set.span.as_ref()?.start)?.rsplit('\n').next()?;
    let own_line = line.trim().is_empty() && text.get(at..)?.lines().next().is_none_or(|rest| rest.trim().is_empty());
    let gap = if own_line { format!("\n{line}") } else { " ".to_owned() };
    Some(Suggestion { span: at..at, text: format!("{gap}{statement}"), certain: true })
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
