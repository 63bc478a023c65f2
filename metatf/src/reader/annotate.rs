//! Records together with the bytes they were read from, for annotated dumps and for statistics.

use super::{At, RecordReader};
use crate::decode::ContentRow;
use crate::format::Steps;
use crate::record::Row;
use crate::streams::place;
use metatf_container::{Error, Place, Result};

/// A function that receives a leaf's index, its stored bytes (empty for `default`, `stride` and `sectionStride`), and
/// its value if it is a number.
pub type VisitField<'v, 't> = &'v mut dyn FnMut(u8, &'t [u8], Option<u64>);

impl RecordReader<'_> {
    /// Returns the location of the most recent record and its bytes read so far: all bytes of a metadata record, and
    /// all bytes of any other record once it is decoded. Returns `None` if the bytes are not available (the `section`
    /// records of a version 0 file with a table).
    #[must_use]
    pub fn bytes_of(&self, at: At) -> Option<(Place, &[u8])> {
        let current = self.current.as_ref()?;
        let start = usize::try_from(at.offset.checked_sub(current.base)?).ok()?;
        let bytes =
            self.container.bytes(&current.content).get(start..self.position_ahead().unwrap_or(current.position))?;
        Some((place(current.origin, start), bytes))
    }
}

impl<'t> ContentRow<'t, 't> {
    /// Visits all leaves except a constant tag, in the order of their bytes and together with these bytes.
    ///
    /// # Errors
    /// As for [`Row::number`] and [`Row::bytes`].
    pub fn walk_fields(&mut self, visit: VisitField<'_, 't>) -> Result<()> {
        self.record.walk(self.record.first_value(), &mut Annotating { row: self, visit })
    }
}

/// A row whose fields are being visited.
struct Annotating<'w, 'v, 't> {
    row: &'w mut ContentRow<'t, 't>,
    visit: VisitField<'v, 't>,
}

impl Steps for Annotating<'_, '_, '_> {
    type Error = Error;

    fn number(&mut self, leaf: u8) -> Result<()> {
        // For a catch-all record, whose tag is also a value, the position is already after the tag.
        let is_tag = leaf == 0 && self.row.record.is_catch_all();
        let start = if is_tag { self.row.start } else { self.row.position };
        let value = self.row.number(leaf)?;
        (self.visit)(leaf, self.row.decoding.data.get(start..self.row.position).unwrap_or_default(), Some(value));
        Ok(())
    }

    fn bytes(&mut self, leaf: u8) -> Result<()> {
        (self.visit)(leaf, self.row.bytes(leaf)?, None);
        Ok(())
    }

    fn items(&mut self, count: u8) -> Result<u64> {
        Ok(self.row.items(self.row.last(count))? as u64)
    }
}
