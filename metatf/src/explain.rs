//! Errors in the words of a format: the names of section, record and leaf in the place of numbers.

use crate::error::Error;
use crate::format::{Format, Record, Section};
use std::fmt;

/// An error with the names of a format. See [`explain`].
#[derive(Clone, Copy, Debug)]
pub struct Explained<'e> {
    format: &'e Format,
    error: &'e Error,
}

/// Puts a format's names to the numbers of an error: `offset 52: the value is 3, the constant is 4 (section heap,
/// record alloc, leaf size, record begins at 44)`.
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
        listed.find(|r| if section.stream { tag.is_none() } else { tag == Some(r.tag) })
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.error.place;
        write!(f, "{place}: {}", self.error.kind)?;
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
