//! The parts of a DTD that determine the encoding of numbers, and edits that change them.

use metatf::format::Interpretation;
use metatf_parser::index::{LaidOut, ResolvedField};
use metatf_parser::schema::Width;
use metatf_parser::{Label, Property, Suggestion};
use std::ops::Range;

/// The encoding of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Encoding {
    pub(super) interpretation: Interpretation,
    /// The width; `None` if the DTD sets no width because nothing is stored.
    pub(super) width: Option<u8>,
}

/// The fields set by one statement of a DTD, which all change together.
#[derive(Clone, Debug)]
pub(super) struct Declared<'i> {
    record: &'i LaidOut,
    field: &'i ResolvedField,
    /// The fields, as `RECORD.FIELD`.
    pub(super) fields: Vec<String>,
}

/// The offsets at which the width and the interpretation are set.
type Places = (Option<usize>, Option<usize>);

impl<'i> Declared<'i> {
    /// Creates the group without fields.
    pub(super) fn new(record: &'i LaidOut, field: &'i ResolvedField) -> Self {
        Self { record, field, fields: Vec::new() }
    }

    /// Returns a key that identifies the statements that set the width and the interpretation. If no statement sets the
    /// interpretation, the key includes the record and the leaf.
    pub(super) fn key(record: &LaidOut, leaf: usize, field: &ResolvedField) -> (Places, Option<(usize, usize)>) {
        let start = |property| field.set(property).and_then(|set| Some(set.span.as_ref()?.start));
        let places = (start(Property::Width), start(Property::Interpretation));
        (places, places.1.is_none().then_some((record.span.start, leaf)))
    }

    /// Returns the width that the DTD sets.
    pub(super) fn width(&self) -> Option<u8> {
        match self.field.leaf.width {
            Width::Number(width) => Some(width),
            _ => None,
        }
    }

    /// Returns the location that sets the property, or else the location that lists the field.
    pub(super) fn place(&self, property: Property) -> Range<usize> {
        let set = self.field.set(property).and_then(|set| set.span.clone());
        set.unwrap_or_else(|| self.field.site.clone())
    }

    /// Returns the edit that changes the encoding, or `None` if the text has no suitable location.
    pub(super) fn edit(&self, text: &str, old: Encoding, new: Encoding) -> Option<Suggestion> {
        let mut edits: Vec<(Range<usize>, String)> = Vec::new();
        let mut missing = String::new();
        let set = |property| self.field.set(property).and_then(|set| set.value_span.clone());
        if new.width != old.width
            && let Some(width) = new.width
        {
            match set(Property::Width) {
                Some(span) => edits.push((span, width.to_string())),
                None => missing = format!("{}.width = {width};", self.path(text)?),
            }
        }
        if new.interpretation != old.interpretation {
            let said = said(new.interpretation)?;
            match set(Property::Interpretation) {
                Some(span) => edits.push((span, said)),
                None => missing = format!("{missing} {}.interpretation = {said};", self.path(text)?),
            }
        }
        if !missing.is_empty() {
            let (place, added) = match set(Property::Interpretation) {
                // Insert the width after the semicolon of the statement that sets the interpretation.
                Some(span) => (span.end + text.get(span.end..)?.find(';')? + 1, format!(" {}", missing.trim())),
                None => (self.record.block?, format!(" {}", missing.trim())),
            };
            edits.push((place..place, added));
        }
        one(text, edits)
    }

    /// Returns the path that names the field in the record's block or in the existing statement.
    fn path(&self, text: &str) -> Option<String> {
        if let Some(span) = self.field.set(Property::Interpretation).and_then(|set| set.span.clone()) {
            return Some(text.get(span)?.rsplit_once('.')?.0.trim().to_owned());
        }
        let path = &self.field.leaf.path;
        // A name that occurs twice has no unique path.
        (path.last() == Some(&self.field.leaf.name)).then(|| path.join("."))
    }

    pub(super) fn label(text: &str, place: Range<usize>) -> Label {
        let before = text.get(..place.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Label { span: place, line: number(line), column: number(column), text: String::new() }
    }
}

/// Merges edits that do not overlap into a single edit.
pub(super) fn one(text: &str, mut edits: Vec<(Range<usize>, String)>) -> Option<Suggestion> {
    edits.sort_by_key(|(span, _)| (span.start, span.end));
    let span = edits.first()?.0.start..edits.iter().map(|(span, _)| span.end).max()?;
    let (mut out, mut at) = (String::new(), span.start);
    for (edit, new) in edits {
        out.push_str(text.get(at..edit.start)?);
        out.push_str(&new);
        at = edit.end;
    }
    // The result may not be better for other traces.
    Some(Suggestion { span, text: out, certain: false })
}

/// Returns the interpretation in DTD syntax, or `None` for interpretations that findings never contain.
pub(super) fn said(interpretation: Interpretation) -> Option<String> {
    // Small negative numbers are shorter with a sign, and denote the same 64 bits.
    let number = |bits: u64| {
        let signed = bits.cast_signed();
        if (i64::from(i32::MIN)..0).contains(&signed) { signed.to_string() } else { bits.to_string() }
    };
    Some(match interpretation {
        Interpretation::None => "none".to_owned(),
        Interpretation::Delta(initial) => format!("delta {}", number(initial)),
        Interpretation::Default(value) => format!("default {}", number(value)),
        Interpretation::Stride(initial, stride) => format!("stride {} {}", number(initial), number(stride)),
        Interpretation::BaseOffset(base) => format!("baseOffset {}", number(base)),
        _ => return None,
    })
}

/// Describes the interpretation and width in words.
pub(super) fn words(encoding: Encoding) -> String {
    let said = said(encoding.interpretation);
    let said = said.unwrap_or_else(|| "a base of another field".to_owned());
    match encoding.width {
        _ if !encoding.interpretation.stores() => said,
        Some(1) => format!("{said}, 1 byte"),
        Some(width) => format!("{said}, {width} bytes"),
        None => said,
    }
}
