//! Versions of a DTD: `major.median.minor`, and how far one must be from another.

use metatf_parser::schema::{Dtd, METADATA};
use std::collections::BTreeSet;
use std::fmt;

/// How much a change asks of a version, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Something is new; what was there is as it was.
    Minor,
    /// An existing record changes its form or its meaning.
    Median,
    /// The file as a whole changes.
    Major,
}

impl Level {
    /// Returns the word that tools print.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Minor => "minor",
            Level::Median => "median",
            Level::Major => "major",
        }
    }
}

/// A version, ordered by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u32; 3]);

impl Version {
    /// Parses `1.2.0`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        let parts = parts.and_then(|parts| <[u32; 3]>::try_from(parts).ok());
        parts.map(Self).ok_or_else(|| "expected a version of three numbers, like 1.2.0".to_owned())
    }

    /// Returns the version of a DTD: the annotation `version` that all its tags have, `None` where none has it.
    pub(super) fn of(dtd: &Dtd) -> Result<Option<Self>, String> {
        let tags = dtd.records.iter().skip(METADATA.0 as usize + 1).filter(|record| record.tag.is_some());
        let texts: BTreeSet<_> =
            tags.map(|r| r.leaves.first().and_then(|tag| tag.annotations.get("version"))).collect();
        let mut texts = texts.into_iter();
        match (texts.next().flatten(), texts.next()) {
            (Some(text), None) => {
                let text = text.trim_matches('"');
                Self::parse(text).map(Some).map_err(|error| format!("tag.version = {text:?}: {error}"))
            }
            (None, None) => Ok(None),
            _ => Err("its records differ in `tag.version`; set it once, at the top level".to_owned()),
        }
    }

    /// Returns the least version after a change of this level.
    pub(super) fn after(self, level: Option<Level>) -> Self {
        let Self([major, median, minor]) = self;
        match level {
            None => self,
            Some(Level::Minor) => Self([major, median, minor.saturating_add(1)]),
            Some(Level::Median) => Self([major, median.saturating_add(1), 0]),
            Some(Level::Major) => Self([major.saturating_add(1), 0, 0]),
        }
    }

    /// Returns the level of the step to a later version; `None` for the same, and for an earlier one.
    pub(super) fn step_to(self, later: Self) -> Option<Level> {
        let levels = [Level::Major, Level::Median, Level::Minor];
        let parts = self.0.iter().zip(&later.0).zip(levels);
        let first = parts.into_iter().find(|((old, new), _)| old != new);
        first.filter(|((old, new), _)| old < new).map(|(_, level)| level)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, median, minor]) = self;
        write!(f, "{major}.{median}.{minor}")
    }
}
