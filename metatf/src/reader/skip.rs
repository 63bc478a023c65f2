//! Skipping records that are not decoded.

use super::{Pending, RecordReader};
use crate::format::Floor;
use crate::formula::{HISTORY, PREDICTED, PREVIOUS, REFERENCED, STRIDED, plain, stored};
use metatf_container::Result;

impl RecordReader<'_> {
    /// Skips the announced record if it has not been decoded. Its leaves are decoded only if later records may depend
    /// on them, or if the record is malformed.
    pub(super) fn skip(&mut self) -> Result<()> {
        let Some(pending) = self.pending else { return Ok(()) };
        match (self.end_of(pending), self.current.as_mut()) {
            (Some(end), Some(current)) => {
                current.position = end;
                self.pending = None;
                Ok(())
            }
            _ => self.decode(|row| Ok(row.walk(&mut ())?)),
        }
    }

    /// Returns the end of a record if the plans alone determine the end and it lies within this part. If so, also
    /// advances the stream cursors past the record's elements.
    fn end_of(&mut self, pending: Pending) -> Option<usize> {
        let current = self.current.as_ref().filter(|current| !current.is_element)?;
        let state = self.states.get(pending.section)?;
        // The tag, which comes first, has already been read.
        let leaves = self.format.records.get(usize::from(pending.record))?.leaves.len();
        let behind_tag = pending.first + 1..pending.first + leaves.max(1);
        let plans = state.encoding.plans.get(behind_tag.clone())?;
        let data = self.container.bytes(&current.content);
        let (mut at, mut before) = (current.position, None);
        for (plan, leaf) in plans.iter().zip(state.encoding.tiers.leaves(behind_tag)?) {
            match leaf.floor {
                Floor::Array(length) => at = at.checked_add(usize::try_from(length).ok()?)?,
                Floor::Counted => {
                    let (plan, at_length) = before?;
                    let length = plain(stored(data, at_length, plan, self.order)?, plan);
                    at = at.checked_add(usize::try_from(length).ok()?)?;
                }
                // The record must be decoded, because other leaves depend on this leaf's value or a model learns from
                // it.
                _ if plan.is(HISTORY | PREVIOUS | REFERENCED | PREDICTED) => return None,
                _ => {
                    before = (!plan.is(STRIDED)).then_some((plan, at));
                    at += plan.width.bytes();
                }
            }
        }
        if at > data.len() {
            return None;
        }
        let slots = plans.iter().filter(|plan| plan.is(STRIDED)).map(|plan| plan.base);
        self.streams.pass(slots).then_some(at)
    }
}
