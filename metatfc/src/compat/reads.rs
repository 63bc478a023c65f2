//! Determines how a reader built from one DTD reads traces of another DTD (spec 5.3).

use super::change::{Change, Place};
use metatf::format::Format;
use metatf::typed::unmatched;
use metatf_parser::schema::{Dtd, METADATA};
use serde::Serialize;
use std::collections::HashSet;

/// Problems that a reader has with traces of another version.
#[derive(Debug, Default, Serialize)]
pub(super) struct Reads {
    /// Whether the reader returns no values or incorrect values.
    #[serde(rename = "break")]
    pub(super) is_break: bool,
    /// The reason why the reader rejects the trace.
    pub(super) refused: Option<String>,
    /// Fields that are missing from the traces and have no default, so the reader returns 0 or nothing.
    pub(super) lacking: Vec<String>,
    /// Fields whose values the reader misinterprets.
    pub(super) misread: Vec<String>,
}

impl Reads {
    pub(super) fn new(reader: &Dtd, trace: &Dtd, changes: &[Change]) -> Self {
        let mut misread: Vec<String> = changes.iter().filter(|c| c.misread).map(|c| c.place.text()).collect();
        misread.dedup();
        match unmatched(&Format::from_dtd(reader), &Format::from_dtd(trace)) {
            Err(refused) => Self { is_break: true, refused: Some(refused), ..Self::default() },
            Ok(unmatched) => {
                // List only missing fields. If a record type is missing, the reader just returns no records of this
                // type.
                let (records, fields) = places(reader);
                let is_field = |place: &String| fields.contains(place) || !records.contains(place);
                let lacking: Vec<_> = unmatched.absent.into_iter().filter(is_field).collect();
                Self { is_break: !lacking.is_empty() || !misread.is_empty(), refused: None, lacking, misread }
            }
        }
    }

    /// Returns the problems, with one sentence for each.
    pub(super) fn problems(self) -> Vec<String> {
        let list =
            |what: &str, fields: &[String]| (!fields.is_empty()).then(|| format!("{what} {}", fields.join(", ")));
        let lacking = list("no value for", &self.lacking);
        // A change implied only by the version has no location.
        let named = |place: &String| if place.is_empty() { "its records".to_owned() } else { place.clone() };
        let misread = list("different meaning of", &self.misread.iter().map(named).collect::<Vec<_>>());
        self.refused.into_iter().chain(lacking).chain(misread).collect()
    }
}

/// Returns the locations of all records, and the locations of their fields.
fn places(dtd: &Dtd) -> (HashSet<String>, HashSet<String>) {
    let (mut records, mut fields) = (HashSet::new(), HashSet::new());
    for record in dtd.records.iter().skip(METADATA.0 as usize + 1) {
        let section = dtd.sections.get(record.section.map_or(0, |id| usize::from(id.0)));
        let place = section.map(|section| Place::record(section, record)).unwrap_or_default();
        fields.extend(record.leaves.iter().map(|leaf| place.field(leaf.path.join(".")).text()));
        records.insert(place.text());
    }
    (records, fields)
}
