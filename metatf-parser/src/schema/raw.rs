//! Files without a header (spec 5.4). Field roles define the records at the start of a file, and the location of its
//! content.

use super::{Dtd, Leaf, LeafId, Names, Record, RecordId, Section, SectionId};

/// Role of a field whose value identifies the file format and its byte order.
pub const MAGIC: &str = "magic";
/// Role of a field with the size in bytes of the records that follow.
pub const RECORDS_SIZE: &str = "records_size";
/// Role of a field in the data after the records.
pub const TRAILER: &str = "trailer";

/// A DTD's description of files without a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFile {
    /// The records that a file may start with, in DTD order.
    pub starts: Vec<RawStart>,
    /// The section that contains the records.
    pub records: SectionId,
    /// The stream section that contains the data after the records.
    pub trailer: Option<SectionId>,
}

/// A record with which a file may start. This is either the only element of a separate stream section or the first of
/// the file's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawStart {
    /// The section that lists the record.
    pub section: SectionId,
    /// The record.
    pub record: RecordId,
    /// The fields that identify the file format, each with its allowed values.
    pub magic: Vec<(LeafId, Vec<u64>)>,
    /// The field with the size in bytes of the records that follow; `None` if they extend to the end of the file.
    pub records_size: Option<LeafId>,
}

impl Dtd {
    /// Returns the description of files without a header, or `None` if the DTD does not describe such files.
    #[must_use]
    pub fn raw_file(&self) -> Option<RawFile> {
        let ids = || (0..=u16::MAX).map(SectionId).zip(&self.sections).skip(1);
        let starts: Vec<RawStart> = ids().flat_map(|(id, section)| self.starts(id, section)).collect();
        let trailer = ids().find(|(_, section)| self.is_trailer(section)).map(|(id, _)| id);
        let is_records = |id: &SectionId, section: &Section| {
            let is_prologue = section.stream.is_some() && starts.iter().any(|start| start.section == *id);
            Some(*id) != trailer && !is_prologue && !self.is_of_arrays(section.number)
        };
        let records = ids().find(|(id, section)| is_records(id, section)).map(|(id, _)| id);
        // Without another section, the file consists of the elements of its only start.
        let records = records.or_else(|| starts.first().map(|start| start.section))?;
        (!starts.is_empty()).then_some(RawFile { starts, records, trailer })
    }

    /// Returns whether byte arrays contain records of the section with this number (spec 3.7).
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
    /// Returns the role of the field in the DTD.
    #[must_use]
    pub fn role(&self) -> Option<&str> {
        self.annotations.get("role").map(|text| text.trim_matches('"'))
    }
}

impl Record {
    fn of_role(&self, role: &str) -> impl Iterator<Item = LeafId> {
        (0..=u8::MAX).map(LeafId).zip(&self.leaves).filter(move |(_, leaf)| leaf.role() == Some(role)).map(|(id, _)| id)
    }

    /// Returns the allowed values of a magic field.
    fn magic(&self, id: LeafId) -> Vec<u64> {
        let Some(leaf) = self.leaf(id) else { return Vec::new() };
        match (leaf.constant, &leaf.names) {
            (Some(value), _) => vec![value],
            (None, Names::Values(list)) => list.iter().map(|(value, _)| *value).collect(),
            (None, _) => Vec::new(),
        }
    }
}
