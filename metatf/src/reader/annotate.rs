//! Records with the bytes they were read from: for annotated dumps and for counting.

use super::{At, RecordReader};
use crate::error::{Place, Result};
use crate::format::Step;
use crate::row::{ContentRow, Row, place};

/// Takes a leaf's index, the bytes it stores (none for `default`, `stride` and `sectionStride`), and its value where
/// it is a number.
pub type VisitField<'v, 't> = &'v mut dyn FnMut(u8, &'t [u8], Option<u64>);

impl RecordReader<'_> {
    /// The place of the record announced last, and the bytes of it that were read so far: all of a metadata record,
    /// and of any other once it is decoded. `None` where they are not at hand (the `section` records of a version 0
    /// file with a table).
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
    /// Visits all leaves but the tag, in the order of their bytes, with the bytes.
    ///
    /// # Errors
    /// As [`Row::number`] and [`Row::bytes`].
    pub fn walk_fields(&mut self, visit: VisitField<'_, 't>) -> Result<()> {
        let first = usize::from(!self.format.sections.get(self.state.section).is_some_and(|s| s.stream));
        let steps = self.record.steps.get(first..).unwrap_or_default();
        self.walk_field_steps(steps, first, visit)
    }

    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn walk_field_steps(&mut self, steps: &'t [Step], offset: usize, visit: VisitField<'_, 't>) -> Result<()> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => {
                    let start = self.position;
                    let value = self.number(leaf)?;
                    visit(leaf, self.data.get(start..self.position).unwrap_or_default(), Some(value));
                }
                Step::Bytes(leaf) => visit(leaf, self.bytes(leaf)?, None),
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    for _ in 0..self.items(self.last(count))? {
                        self.walk_field_steps(body, offset + at, visit)?;
                    }
                    at = end;
                }
            }
        }
        Ok(())
    }
}
