//! The version bump required by a DTD change.

use metatf_parser::schema::Version;
use serde::Serialize;

/// The level of a change, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// An item was added; everything else is unchanged.
    Minor,
    /// An existing record changes its format or its meaning.
    Median,
    /// The entire file changes.
    Major,
}

impl Level {
    /// Returns the name of the level, as shown in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Level::Minor => "minor",
            Level::Median => "median",
            Level::Major => "major",
        }
    }

    /// Returns the meaning of the level and its effect on the version, as shown below the changes in reports.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Level::Minor => "a section, a record or a named value is added; increases the third number of the version",
            Level::Median => {
                "the format or the meaning of an existing record changes; increases the second number of the version"
            }
            Level::Major => "the format of the file as a whole changes; increases the first number of the version",
        }
    }
}

/// Returns the lowest version after a change of this level.
pub(super) fn after(version: Version, level: Option<Level>) -> Version {
    let Version([major, median, minor]) = version;
    match level {
        None => version,
        Some(Level::Minor) => Version([major, median, minor.saturating_add(1)]),
        Some(Level::Median) => Version([major, median.saturating_add(1), 0]),
        Some(Level::Major) => Version([major.saturating_add(1), 0, 0]),
    }
}

/// Returns the level of the step to a later version, or `None` if the version is equal or earlier.
pub(super) fn step(from: Version, to: Version) -> Option<Level> {
    let levels = [Level::Major, Level::Median, Level::Minor];
    let parts = from.0.iter().zip(&to.0).zip(levels);
    let first = parts.into_iter().find(|((old, new), _)| old != new);
    first.filter(|((old, new), _)| old < new).map(|(_, level)| level)
}
