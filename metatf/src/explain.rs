//! Formats errors with the names of sections, records and leaves instead of their numbers.

use crate::format::{Format, Record, Section};
use metatf_container::Error;
use std::fmt;

/// An error that is printed with the names of a format. See [`explain`].
#[derive(Clone, Copy, Debug)]
pub struct Explained<'e> {
    format: &'e Format,
    error: &'e Error,
}

/// Replaces the numbers in an error with a format's names, as in `offset 52: the value is 3, expected the constant 4
/// (section heap, record alloc, leaf size, record begins at 44)`.
#[must_use]
pub fn explain<'e>(format: &'e Format, error: &'e Error) -> Explained<'e> {
    Explained { format, error }
}

impl Explained<'_> {
    fn section(&self) -> Option<&Section> {
        let number = self.error.place.section?;
        self.format.sections.iter().find(|s| s.number == number)
    }

    fn record(&self) -> Option<&Record> {
        let section = self.section()?;
        let mut listed = section.records.iter().filter_map(|&r| self.format.records.get(usize::from(r)));
        let tag = self.error.place.tag;
        let found = listed.clone().find(|r| if section.stream { tag.is_none() } else { tag == Some(r.tag) });
        found.or_else(|| listed.find(|r| tag.is_some() && r.is_catch_all()))
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.error.place;
        if self.error.has_offset() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.error.kind)?;
        let Some(section) = self.section() else { return Ok(()) };
        match (section.number, &*section.name) {
            (0, _) => write!(f, " (global section")?,
            (_, name) => write!(f, " (section {name}")?,
        }
        match (self.record(), place.tag) {
            (Some(record), _) => write!(f, ", record {}", record.name)?,
            (None, Some(tag)) => write!(f, ", record with tag {tag}")?,
            (None, None) => {}
        }
        if let Some(leaf) = place.leaf {
            match self.record().and_then(|r| r.leaves.get(usize::from(leaf))) {
                Some(known) => write!(f, ", leaf {}", known.path)?,
                None => write!(f, ", leaf {leaf}")?,
            }
        }
        if let Some(start) = place.record_start {
            write!(f, ", record begins at {start}")?;
        }
        write!(f, ")")
    }
}

#[cfg(test)]
mod tests {
    use super::explain;
    use crate::format::{Format, Leaf, LeafKind, Record, Section};
    use metatf_container::{Error, ErrorKind, Place};
    use std::borrow::Cow;

    fn format() -> Format {
        let leaf = |path| Leaf {
            field: Cow::Borrowed(path),
            path: Cow::Borrowed(path),
            was: Cow::default(),
            kind: LeafKind::Tag,
            constant: None,
            header: None,
        };
        let record = |name, tag| Record {
            name: Cow::Borrowed(name),
            was: Cow::default(),
            tag,
            leaves: vec![leaf("tag"), leaf("box.x")].into(),
            steps: Cow::Borrowed(&[]),
            time: None,
        };
        let section = |number, name, stream, records| Section {
            number,
            name: Cow::Borrowed(name),
            stream,
            records: Cow::Borrowed(records),
            cells: Cow::Borrowed(&[]),
            initials: Cow::Borrowed(&[]),
        };
        Format {
            dtd: Cow::Borrowed(""),
            fingerprint: 0,
            tag_width: 1,
            sections: vec![
                section(0, "", false, &[]),
                section(5, "heap", false, &[0]),
                section(6, "names", true, &[1]),
            ]
            .into(),
            records: vec![record("alloc", 4), record("name", 0)].into(),
            models: Cow::Borrowed(&[]),
            expected: Cow::Borrowed(&[]),
            raw: None,
        }
    }

    #[test]
    fn names_where_there_are_names() {
        let place = Place { offset: 9, section: Some(5), tag: Some(4), leaf: Some(1), ..Place::default() };
        let show = |place| explain(&format(), &Error { kind: ErrorKind::Expression, place }).to_string();
        let at = |place: Place| show(place).split_once('(').map(|(_, text)| text.to_owned()).unwrap_or_default();
        assert_eq!(at(place), "section heap, record alloc, leaf box.x)");
        assert_eq!(at(Place { tag: Some(7), ..place }), "section heap, record with tag 7, leaf 1)");
        assert_eq!(at(Place { section: Some(6), tag: None, ..place }), "section names, record name, leaf box.x)");
        assert_eq!(at(Place { section: Some(0), tag: None, leaf: None, ..place }), "global section)");
        assert_eq!(at(Place { section: None, ..place }), "");
    }
}
