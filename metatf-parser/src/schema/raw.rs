//! Files without a header (spec 5.4): which records they begin with, and where their content is. Roles of fields say it.

use super::{Dtd, Leaf, LeafId, Names, Record, RecordId, Section, SectionId};

/// A field that tells a file by its value, and by its byte order.
pub const MAGIC: &str = "magic";
/// A field with how many bytes of records follow.
pub const RECORDS_SIZE: &str = "records_size";
/// A field of what stands behind the records.
pub const TRAILER: &str = "trailer";

/// What a DTD says of files without a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// What a file may begin with, in the order of the DTD.
    pub starts: Vec<RawStart>,
    /// The section that has the records.
    pub records: SectionId,
    /// The stream section of what stands behind the records.
    pub trailer: Option<SectionId>,
}

/// A record that a file may begin with: the element of a stream section of its own, or the first of the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStart {
    /// The section that lists it.
    pub section: SectionId,
    /// The record.
    pub record: RecordId,
    /// Fields that tell the file, and the values that each may have.
    pub magic: Vec<(LeafId, Vec<u64>)>,
    /// The field with how many bytes of records follow; `None`: all.
    pub records_size: Option<LeafId>,
}

impl Dtd {
    /// Returns what the DTD says of files without a header; `None`: nothing.
    #[must_use]
    pub fn raw_file(&self) -> Option<RawFile> {
        let ids = || (0..=u16::MAX).map(SectionId).zip(&self.sections).skip(1);
        let starts: Vec<RawStart> = ids().flat_map(|(id, section)| self.starts(id, section)).collect();
        let trailer = ids().find(|(_, section)| self.is_trailer(section)).map(|(id, _)| id);
        let is_records = |id: &SectionId, section: &Section| {
            let is_prologue = section.stream.is_some() && starts.iter().any(|start| start.section == *id);
            Some(*id) != trailer && !is_prologue && !self.is_of_arrays(section.number)
        };
        let (records, _) = ids().find(|(id, section)| is_records(id, section))?;
        (!starts.is_empty()).then_some(RawFile { starts, records, trailer })
    }

    /// Returns whether the bytes of arrays are records of the section of this number (spec 3.7).
    #[must_use]
    pub fn is_of_arrays(&self, section: u8) -> bool {
        self.records.iter().flat_map(|record| &record.leaves).any(|leaf| leaf.section == Some(section))
    }

    fn starts(&self, id: SectionId, section: &Section) -> impl Iterator<Item = RawStart> {
        let own = section.records.iter().filter_map(|r| Some((*r, self.record(*r)?)));
        own.filter(move |(_, record)| record.section == Some(id)).filter_map(move |(number, record)| {
            let magic: Vec<_> = record.of_role(MAGIC).map(|leaf| (leaf, record.magic(leaf))).collect();
            let records_size = record.of_role(RECORDS_SIZE).next();
            (!magic.is_empty()).then_some(RawStart { section: id, record: number, magic, records_size })
        })
    }

    fn is_trailer(&self, section: &Section) -> bool {
        section.stream.and_then(|id| self.record(id)).is_some_and(|element| element.of_role(TRAILER).next().is_some())
    }
}

impl Leaf {
    /// Returns the role that the DTD gives the field.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.annotations.get("role").map(|text| text.trim_matches('"'))
    }
}

impl Record {
    fn of_role(&self, role: &str) -> impl Iterator<Item = LeafId> {
        (0..=u8::MAX).map(LeafId).zip(&self.leaves).filter(move |(_, leaf)| leaf.role() == Some(role)).map(|(id, _)| id)
    }

    /// Returns the values that a magic field may have.
    fn magic(&self, id: LeafId) -> Vec<u64> {
        let Some(leaf) = self.leaf(id) else { return Vec::new() };
        match (leaf.constant, &leaf.names) {
            (Some(value), _) => vec![value],
            (None, Names::Values(list)) => list.iter().map(|(value, _)| *value).collect(),
            (None, _) => Vec::new(),
        }
    }
}
