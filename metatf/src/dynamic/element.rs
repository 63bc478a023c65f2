//! Resolving offsets: returns the stream section element that a `sectionOffset` leaf refers to.

use super::json_print::print_members;
use super::{OwnedRecord, Trace};
use crate::format::Interpretation;
use crate::reader::At;
use metatf_container::{Error, ErrorKind, Result};
use metatf_parser::schema::LeafId;

impl Trace<'_> {
    /// Prints `{"offset":5,"element":{..}}` if the leaf is currently a `sectionOffset`; otherwise returns false. When
    /// salvaging, a lost element is printed as `null` (spec 5.2).
    ///
    /// # Errors
    /// Returns an error if no element starts at the offset.
    pub fn resolve(&mut self, at: At, leaf: LeafId, offset: u64, out: &mut Vec<u8>) -> Result<bool> {
        let Some(Interpretation::SectionOffset(number)) = self.reader.interpretation(at, leaf.0) else {
            return Ok(false);
        };
        let Some(section) = self.schema.format.section_index(number) else { return Ok(false) };
        out.extend_from_slice(format!("{{\"offset\":{offset},\"element\":").as_bytes());
        let mut owned = OwnedRecord::default();
        match self.reader.element_at(section, offset, |row| Ok(row.walk(&mut owned)?)) {
            Ok(()) => {
                let element = self.schema.section(section).and_then(|s| s.stream);
                let record = element.and_then(|id| self.schema.dtd.record(id));
                out.push(b'{');
                if let Some(record) = record {
                    print_members(out, (&self.schema, record), &owned, &mut self.nested)?;
                }
                out.push(b'}');
            }
            Err(error) if self.reader.salvages() && matches!(error.kind, ErrorKind::NoOffset { .. }) => {
                out.extend_from_slice(b"null");
            }
            Err(error) if matches!(error.kind, ErrorKind::NoOffset { .. }) => return Err(self.at_leaf(at, leaf, error)),
            Err(error) => return Err(error),
        }
        out.push(b'}');
        Ok(true)
    }

    /// Adds the position of a record that has already been read to an error.
    fn at_leaf(&self, at: At, leaf: LeafId, mut error: Error) -> Error {
        if let Some((place, _)) = self.reader.bytes_of(at) {
            error.place = place;
            error.place.record_start = Some(place.content.unwrap_or(place.offset));
        }
        error.place.section = self.schema.section(at.section).map(|s| s.number);
        error.place.tag = self.schema.record(at.record).and_then(|r| r.tag);
        error.place.leaf = Some(leaf.0);
        error
    }
}
