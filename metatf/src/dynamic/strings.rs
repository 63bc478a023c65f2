//! Strings in place of the offsets of their elements (spec 8).

use super::json_print::{print_bytes, text};
use super::{Item, OwnedRecord, Schema, Trace};
use crate::format::Interpretation as Current;
use crate::reader::At;
use metatf_container::{ErrorKind, Result};
use metatf_parser::schema::{Format, Interpretation, Item as Declared, Leaf, LeafId, Width};

impl Schema {
    /// Returns the leaf of the string if each element of a section consists of exactly one string.
    ///
    /// # Examples
    ///
    /// ```
    /// use metatf::dynamic::Schema;
    ///
    /// let dtd = b"section paths 1 { path: vfield { vfield.data.format = \"utf8\"; } }
    ///     section points 2 { point: (x, y) { x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none; } }";
    /// let schema = Schema::parse("paths.dtd", dtd)?;
    /// assert!(schema.string_leaf(1).is_some()); // Section 0 is global.
    /// assert!(schema.string_leaf(2).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn string_leaf(&self, section: usize) -> Option<LeafId> {
        let element = self.section(section).and_then(|section| self.dtd.record(section.stream?))?;
        let id = match element.items.as_slice() {
            [Declared::Leaf(id)] => *id,
            [Declared::Nested { record, items, .. }] if record == "vfield" => match items.as_slice() {
                [Declared::Leaf(_), Declared::Leaf(data)] => *data,
                _ => return None,
            },
            // The element itself may be the predefined record.
            [Declared::Leaf(_), Declared::Leaf(data)] if element.name == "vfield" => *data,
            _ => return None,
        };
        let leaf = element.leaf(id)?;
        (!leaf.is_numeric() && matches!(leaf.format, Format::Utf8 | Format::CString)).then_some(id)
    }

    /// Returns whether a line may contain a string in place of the value of a leaf, which is a reference (spec 8).
    #[doc(hidden)]
    #[must_use]
    pub fn refers_to_strings(&self, leaf: &Leaf) -> bool {
        self.strings_of(leaf).is_some()
    }

    /// Returns the section of the strings that a leaf refers to. Returns `None` if strings could be confused with names
    /// of the leaf's values.
    pub(super) fn strings_of(&self, leaf: &Leaf) -> Option<usize> {
        let Interpretation::SectionOffset(number) = leaf.interpretation else { return None };
        let section = self.format.section_index(number).filter(|_| !has_words(leaf))?;
        self.string_leaf(section).map(|_| section)
    }

    /// Returns whether any leaf refers to strings.
    pub(super) fn has_strings(&self) -> bool {
        self.dtd.records.iter().flat_map(|record| &record.leaves).any(|leaf| self.strings_of(leaf).is_some())
    }

    /// Returns the element of a section that consists of this string.
    pub(super) fn string_element(&self, section: usize, bytes: &[u8]) -> OwnedRecord {
        let element = self.section(section).and_then(|section| self.dtd.record(section.stream?));
        let mut owned = OwnedRecord::default();
        if element.is_none_or(|element| element.leaves.len() > 1) {
            owned.push_number(bytes.len() as u64);
        }
        owned.push_bytes(bytes);
        owned
    }

    /// Returns the leaf that contains the strings of a section.
    pub(super) fn leaf_of_strings(&self, section: usize) -> Option<&Leaf> {
        let element = self.section(section).and_then(|section| self.dtd.record(section.stream?))?;
        element.leaf(self.string_leaf(section)?)
    }
}

/// Returns the bytes of a string in its array. A zero-terminated string fills an array of fixed length with zeros.
pub(super) fn bytes_of_string(leaf: &Leaf, text: &str) -> std::result::Result<Vec<u8>, String> {
    match (leaf.format, &leaf.width) {
        (Format::CString, Width::Until(_)) => c_string(text, &[]),
        (Format::CString, Width::Array(length)) => {
            let length = usize::try_from(*length).unwrap_or(usize::MAX);
            let zeros = length.checked_sub(text.len()).ok_or_else(|| {
                format!("expected a string of at most {length} bytes, found one of {} bytes", text.len())
            })?;
            c_string(text, &vec![0; zeros])
        }
        (Format::CString, _) => c_string(text, &[0]),
        _ => Ok(text.as_bytes().to_vec()),
    }
}

/// Joins a string and the bytes that follow it in the array, which must start with a 0.
pub(super) fn c_string(text: &str, tail: &[u8]) -> std::result::Result<Vec<u8>, String> {
    if text.contains('\0') {
        return Err("\"text\" contains a 0 character, but a 0 may occur only in \"tail\"".to_owned());
    }
    if tail.first().is_some_and(|&byte| byte != 0) {
        return Err("\"tail\" must begin with \"00\"".to_owned());
    }
    Ok([text.as_bytes(), tail].concat())
}

/// Returns whether values of the leaf can also be written as words.
pub(super) fn has_words(leaf: &Leaf) -> bool {
    !leaf.names.list().is_empty() || leaf.format.has_words()
}

impl Trace<'_> {
    /// Prints the string that a leaf refers to. Returns false without printing anything if the leaf does not refer to a
    /// string, or if the reference is dangling.
    pub(super) fn print_string(&mut self, at: At, id: LeafId, offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        let Self { schema, reader, .. } = self;
        let leaf = schema.record(at.record).and_then(|record| record.leaf(id));
        let Some(section) = leaf.and_then(|leaf| schema.strings_of(leaf)) else { return Ok(false) };
        let Some(Current::SectionOffset(number)) = reader.interpretation(at, id.0) else { return Ok(false) };
        if schema.format.section_index(number) != Some(section) {
            return Ok(false);
        }
        let mut owned = OwnedRecord::default();
        match reader.element_at(section, offset, |row| owned.decode(row)) {
            Ok(()) => {}
            Err(error) if matches!(error.kind, ErrorKind::NoOffset { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        let bytes = owned.iter().next_back().map_or(&[][..], Item::bytes);
        let Some(leaf) = schema.leaf_of_strings(section) else { return Ok(false) };
        match leaf.format.text_of_bytes(bytes) {
            Some(string) if bytes_of_string(leaf, string).is_ok_and(|same| same == bytes) => text(out, Some(string)),
            _ => {
                out.extend_from_slice(b"{\"hex\":");
                print_bytes(out, bytes, Format::Bytes);
                out.push(b'}');
            }
        }
        Ok(true)
    }
}
