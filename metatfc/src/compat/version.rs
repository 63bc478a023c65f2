//! How far one version of a DTD must be from another.

use metatf_parser::schema::Version;
use serde::Serialize;

/// How much a change asks of a version, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// Something is new; what was there is as it was.
    Minor,
    /// An existing record changes its form or its meaning.
    Median,
    /// The file as a whole changes.
    Major,
}

impl Level {
    /// Returns the word that people read.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Minor => "minor",
            Level::Median => "median",
            Level::Major => "major",
        }
    }
}

/// Returns the least version after a change of this level.
pub(super) fn after(version: Version, level: Option<Level>) -> Version {
    let Version([major, median, minor]) = version;
    match level {
        None => version,
        Some(Level::Minor) => Version([major, median, minor.saturating_add(1)]),
        Some(Level::Median) => Version([major, median.saturating_add(1), 0]),
        Some(Level::Major) => Version([major.saturating_add(1), 0, 0]),
    }
}

/// Returns the level of the step to a later version; `None` for the same, and for an earlier one.
pub(super) fn step(from: Version, to: Version) -> Option<Level> {
    let levels = [Level::Major, Level::Median, Level::Minor];
    let parts = from.0.iter().zip(&to.0).zip(levels);
    let first = parts.into_iter().find(|((old, new), _)| old != new);
    first.filter(|((old, new), _)| old < new).map(|(_, level)| level)
}
