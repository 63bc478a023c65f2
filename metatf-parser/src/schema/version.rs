//! The version of a DTD, as set by `tag.version = "1.2.0";` at the top level.

use super::{Dtd, METADATA};
use std::collections::BTreeSet;
use std::fmt;

/// A version `major.median.minor`, ordered by its parts.
///
/// # Examples
///
/// ```
/// use metatf_parser::schema::Version;
///
/// let reader = Version::parse("1.2.0")?;
/// assert_eq!(reader, Version([1, 2, 0]));
/// assert!(reader.understands(Version([1, 2, 7])));
/// assert!(!reader.understands(Version([1, 3, 0])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub [u32; 3]);

impl Version {
    /// Parses a version such as `1.2.0`.
    ///
    /// # Errors
    /// Returns a message with the expected format.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
        let parts: Option<Vec<u32>> = text.split('.').map(number).collect();
        let parts = parts.and_then(|parts| <[u32; 3]>::try_from(parts).ok());
        parts.map(Self).ok_or_else(|| "expected a version of three numbers, such as 1.2.0".to_owned())
    }

    /// Checks whether a program built for this version can read traces of another version. This requires the same major
    /// and median numbers. A newer minor version only adds records and fields, which the program skips.
    #[must_use]
    pub fn understands(self, other: Self) -> bool {
        self.0[..2] == other.0[..2]
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, median, minor]) = self;
        write!(f, "{major}.{median}.{minor}")
    }
}

impl Dtd {
    /// Returns the version, which is the annotation `version` of all tags, or `None` if no tag has this annotation.
    ///
    /// # Errors
    /// Returns a message if the version is malformed or differs between tags.
    pub fn version(&self) -> Result<Option<Version>, String> {
        let tags = self.records.iter().skip(METADATA.0 as usize + 1).filter(|record| record.tag.is_some());
        let texts: BTreeSet<_> =
            tags.map(|r| r.leaves.first().and_then(|tag| tag.annotations.get("version"))).collect();
        let mut texts = texts.into_iter();
        match (texts.next().flatten(), texts.next()) {
            (Some(text), None) => {
                let text = text.trim_matches('"');
                Version::parse(text).map(Some).map_err(|error| format!("tag.version = {text:?}: {error}"))
            }
            (None, None) => Ok(None),
            _ => Err("its records differ in `tag.version`; set it once, at the top level".to_owned()),
        }
    }
}
