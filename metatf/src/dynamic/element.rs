//! Resolving offsets: returns the stream section element that a `sectionOffset` leaf refers to.

use super::json_print::print_members;
use super::{OwnedRecord, Trace};
use crate::format::Interpretation;
use crate::reader::At;
use metatf_container::{ErrorKind, Result};
use metatf_parser::schema::LeafId;

impl Trace<'_> {
    /// Prints `{"offset":5,"element":{..}}` if the leaf is currently a `sectionOffset`; otherwise returns false. The
    /// element of a dangling reference is printed as `null` (spec 4).
    ///
    /// # Errors
    /// Returns an error if the element is corrupt.
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
            Err(error) if matches!(error.kind, ErrorKind::NoOffset { .. }) => out.extend_from_slice(b"null"),
            Err(error) => return Err(error),
        }
        out.push(b'}');
        Ok(true)
    }
}
