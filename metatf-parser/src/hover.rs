//! Describes the item at a position in the text, for hovers in an editor.

use std::ops::Range;

use crate::index::{Expansion, Index, LaidOut, ResolvedField, Symbol, SymbolId, SymbolKind};
use crate::parse::lex;
use crate::position::{Columns, Lines};
use crate::schema::{Format, InterpretationWord, Leaf, Width};
use crate::vocabulary::Property;

/// A description of the item at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The byte range of the item.
    pub span: Range<usize>,
    /// The description in Markdown.
    pub markdown: String,
    /// The record and key path of each field declared at the position; see [`Leaf::path`].
    pub fields: Vec<(String, Vec<String>)>,
}

/// An inlay hint after a field in a record's field list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The offset at which to insert the hint.
    pub offset: usize,
    /// The field's width, such as `:4`.
    pub label: String,
    /// The text of the tooltip: the field's width and interpretation, and its offset in the record if it is known.
    pub tip: String,
}

/// Maximum number of records to list. Further records are only counted.
const MOST_LISTED: usize = 8;

/// Returns a description of the item at an offset. `index` is the [index](crate::index()) of the text.
#[must_use]
pub fn hover(text: &[u8], index: &Index, offset: usize) -> Option<Hover> {
    let (text, lexed) = lex(text)?;
    if let Some(found) = index.expansions.iter().find(|found| found.word.contains(&offset)) {
        return Some(Hover { span: found.span.clone(), markdown: expansion(text, found), fields: Vec::new() });
    }
    if let Some(found) = index.use_at(offset) {
        let symbol = index.symbol(found.symbol)?;
        let describer = Describer { text, index, lines: Lines::new(text, Columns::Utf8) };
        let markdown = describer.symbol(found.symbol, symbol);
        let all = index.fields(found.symbol).take(MOST_LISTED);
        let fields = all.map(|(record, field)| (record.name.clone(), field.leaf.path.clone())).collect();
        return Some(Hover { span: found.span.clone(), markdown, fields });
    }
    let token = lexed.tokens.iter().find(|t| t.span.start() <= offset && offset < t.span.end())?;
    let word = text.get(token.span.range())?;
    let markdown = word_of_the_language(word)?;
    Some(Hover { span: token.span.range(), markdown, fields: Vec::new() })
}

/// Describes a type by the statements for which it is shorthand.
fn expansion(text: &str, expansion: &Expansion) -> String {
    let source = text.get(expansion.span.clone()).unwrap_or_default();
    let mut out = format!("type `{}`", source.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some(record) = &expansion.record {
        out += &format!("\n\nthe nested record `{record}`");
    }
    if !expansion.statements.is_empty() {
        out += &format!("\n\nthe same as\n\n```dtd\n{}\n```", expansion.statements.join("\n"));
    }
    out
}

fn word_of_the_language(word: &str) -> Option<String> {
    if let Some(property) = Property::named(word) {
        return Some(format!("property `{word}`\n\n{}\n\n```dtd\n{}\n```", property.doc(), property.example()));
    }
    if let Some(interpretation) = InterpretationWord::named(word) {
        return Some(format!("interpretation `{word}`\n\n{}", interpretation.doc()));
    }
    let format = Format::named(word.strip_prefix('"')?.strip_suffix('"')?)?;
    Some(format!("format {word}\n\n{}", format.doc()))
}

/// Returns the width as text, such as `4 bytes`.
#[must_use]
pub fn width_text(leaf: &Leaf) -> String {
    match leaf.width {
        _ if !leaf.interpretation.stores() => "no bytes".to_owned(),
        Width::Unset | Width::Number(0) => "no bytes".to_owned(),
        Width::Number(1) | Width::Array(1) => "1 byte".to_owned(),
        Width::Number(bytes) => format!("{bytes} bytes"),
        Width::Array(bytes) => format!("{bytes} bytes"),
        Width::Variable(_) => "computed number of bytes".to_owned(),
        Width::Until(end) => format!("bytes up to {end}"),
        Width::Rest => "rest of the bytes".to_owned(),
    }
}

struct Describer<'i> {
    text: &'i str,
    index: &'i Index,
    lines: Lines<'i>,
}

impl Describer<'_> {
    fn symbol(&self, id: SymbolId, symbol: &Symbol) -> String {
        let head = match symbol.kind {
            SymbolKind::Section | SymbolKind::SectionNumber => self.section(symbol),
            SymbolKind::Record => self.record(symbol),
            SymbolKind::Field => self.field(id, symbol),
        };
        match symbol.doc.as_deref().filter(|doc| !doc.is_empty()) {
            Some(doc) => format!("{head}\n\n{doc}"),
            None => head,
        }
    }

    fn section(&self, symbol: &Symbol) -> String {
        let place = symbol.definitions.first().map_or(0, |place| place.start);
        let mut sections = self.index.outline.iter();
        let section = sections.find(|d| d.kind == SymbolKind::Section && d.extent.contains(&place));
        section.map_or_else(
            || format!("section `{}`", symbol.name),
            |s| {
                let count = s.children.len();
                let plural = if count == 1 { "" } else { "s" };
                format!("section `{}`, number {}: {count} record{plural}", s.name, s.detail)
            },
        )
    }

    /// Describes a record and its bytes.
    fn record(&self, symbol: &Symbol) -> String {
        let found = symbol.definitions.first().and_then(|place| self.index.records.iter().find(|r| r.span == *place));
        let Some(record) = found else { return format!("record `{}`, nested in other records", symbol.name) };
        let tag = record.tag.map(|tag| format!(", tag {tag}")).unwrap_or_default();
        let mut out =
            format!("record `{}`{tag}\n\n| byte | field | width | interpretation |\n|---|---|---|---|", record.name);
        for field in &record.fields {
            let offset = field.offset.map_or_else(|| "…".to_owned(), |offset| offset.to_string());
            let (path, width) = (field.leaf.path.join("."), self.width(field));
            out += &format!("\n| {offset} | `{path}` | {width} | {} |", interpretation(self.text, field));
        }
        out
    }

    fn width(&self, field: &ResolvedField) -> String {
        let repeated = if field.leaf.repeated { ", repeated" } else { "" };
        match field.leaf.width {
            _ if field.broken => "unknown".to_owned(),
            Width::Variable(_) => match value(self.text, field, Property::Width) {
                Some(value) => format!("`{value}`{repeated}"),
                None => format!("number of bytes given by its length{repeated}"),
            },
            _ => format!("{}{repeated}", width_text(&field.leaf)),
        }
    }

    /// Describes a field in each record that contains it. Records with the same description of the field are combined.
    fn field(&self, id: SymbolId, symbol: &Symbol) -> String {
        let mut kinds: Vec<(String, Vec<&LaidOut>)> = Vec::new();
        for (record, field) in self.index.fields(id) {
            let text = self.properties(field);
            let full = kinds.len() == MOST_LISTED;
            match kinds.iter_mut().find(|(known, _)| *known == text) {
                Some((_, records)) => records.push(record),
                None if !full => kinds.push((text, vec![record])),
                None => {}
            }
        }
        let mut out = format!("field `{}`", symbol.name);
        for (text, records) in &kinds {
            let names: Vec<String> = records.iter().take(MOST_LISTED).map(|r| format!("`{}`", r.name)).collect();
            let more = records.len().checked_sub(MOST_LISTED).filter(|more| *more > 0);
            let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
            out += &format!("\n\nin {}{more}: {text}", names.join(", "));
        }
        out
    }

    fn properties(&self, field: &ResolvedField) -> String {
        let mut out = format!("{}, {}", self.width(field), interpretation(self.text, field));
        if let Some(offset) = field.offset {
            out += &format!(", at byte {offset}");
        }
        if let Some(doc) = field.leaf.doc.as_deref().filter(|doc| !doc.is_empty()) {
            out += &format!("\n\n{doc}");
        }
        if !field.settings.is_empty() {
            out += "\n\n| property | value | set by |\n|---|---|---|";
        }
        for set in &field.settings {
            let place = match &set.span {
                Some(span) => {
                    format!("{}, line {}", self.index.scope(set), self.lines.position(span.start).0.saturating_add(1))
                }
                None => "the language".to_owned(),
            };
            let value = value(self.text, field, set.property).map_or("-".to_owned(), |value| format!("`{value}`"));
            out += &format!("\n| {} | {value} | {place} |", set.property.name());
        }
        out
    }
}

/// Returns a property value of a field as written, formatted for a table cell. An interpretation that the language
/// sets, rather than the DTD, is returned as `none`.
fn value(text: &str, field: &ResolvedField, property: Property) -> Option<String> {
    let value = match &field.set(property)?.value_span {
        Some(span) => text.get(span.clone())?.split_whitespace().collect::<Vec<_>>().join(" "),
        None if property == Property::Interpretation => InterpretationWord::None.name().to_owned(),
        None => return None,
    };
    Some(value.replace('|', "\\|").replace('`', "'")).filter(|value| !value.is_empty())
}

/// Describes the interpretation as written. A computed count is described as `computed`, and a tag by its fixed value.
fn interpretation(text: &str, field: &ResolvedField) -> String {
    match value(text, field, Property::Interpretation) {
        _ if field.leaf.computed.is_some() => "computed".to_owned(),
        Some(value) => format!("`{value}`"),
        None => match field.leaf.constant {
            Some(value) => format!("always {value}"),
            None => "none".to_owned(),
        },
    }
}

/// Returns a hint with the width of each field in a field list, if the field has no type and the width is the same in all
/// records. `index` is the [index](crate::index()) of the text.
#[must_use]
pub fn hints(text: &str, index: &Index) -> Vec<Hint> {
    let mut out: Vec<Hint> = Vec::new();
    let mut fields: Vec<&ResolvedField> = index.records.iter().flat_map(|record| &record.fields).collect();
    // A type says more than a hint.
    let is_typed = |end: usize| text.get(end..).is_some_and(|rest| rest.trim_start().starts_with(':'));
    fields.retain(|field| !field.broken && field.leaf.computed.is_none() && !field.leaf.is_tag());
    fields.retain(|field| !is_typed(field.site.end));
    fields.sort_by_key(|field| field.site.start);
    for same in fields.chunk_by(|a, b| a.site == b.site) {
        let Some((first, others)) = same.split_first() else { continue };
        // Different fields can share a location, because the fields of a predefined record are located where the record
        // is nested.
        let one = |other: &ResolvedField| other.leaf.width == first.leaf.width && other.leaf.name == first.leaf.name;
        if !others.iter().all(|other| one(other)) {
            continue;
        }
        let label = match first.leaf.width {
            _ if !first.leaf.interpretation.stores() => "0".to_owned(),
            Width::Unset => "0".to_owned(),
            Width::Number(bytes) => bytes.to_string(),
            Width::Array(bytes) => format!("[{bytes}]"),
            Width::Variable(_) => "[..]".to_owned(),
            Width::Until(end) => format!("[..{end}]"),
            Width::Rest => "[rest]".to_owned(),
        };
        let offset = match first.offset.filter(|_| others.iter().all(|other| other.offset == first.offset)) {
            Some(offset) => format!(", at byte {offset}"),
            None => String::new(),
        };
        let tip = format!("{}, {}{offset}", width_text(&first.leaf), interpretation(text, first));
        out.push(Hint { offset: first.site.end, label: format!(":{label}"), tip });
    }
    out
}
