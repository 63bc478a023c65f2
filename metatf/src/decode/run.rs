//! The records of a part from its next on, and what decoding them needs.

use super::ContentRow;
use crate::format::{Format, METADATA};
use crate::record::{Row, Stopped};
use crate::state::{Listed, State};
use crate::streams::{Bytes, Streams};
use metatf_container::{Error, Order, Origin};

/// The records of a part from its next on.
pub(crate) struct Run<'r> {
    pub(crate) format: &'r Format,
    pub(crate) data: &'r [u8],
    pub(crate) position: usize,
    pub(crate) state: &'r mut State,
    pub(crate) streams: &'r mut Streams,
    pub(crate) source: &'r dyn Bytes,
    pub(crate) origin: Origin,
    /// What stands before the part in its section, or in the file.
    pub(crate) base: u64,
    pub(crate) order: Order,
    /// Bytes of a metadata value that does not say how many it has.
    pub(crate) word: usize,
    /// Records read.
    pub(crate) count: u64,
    pub(crate) stopped: &'r mut Option<Error>,
}

impl<'r> Run<'r> {
    /// The data record that comes next, by its index in the format, and its first plan.
    pub(crate) fn listed(&self) -> Option<(u16, usize)> {
        let listed = self.next_listed().filter(|listed| listed.record > METADATA)?;
        Some((listed.record, listed.first as usize))
    }

    /// The rest of the record that begins at `start`, from the byte at `at` on. It is given by its index and that of its first plan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn row(&mut self, (record, first): (u16, usize), start: usize, at: usize) -> Option<ContentRow<'_, 'r>> {
        Some(ContentRow {
            format: self.format,
            record: self.format.records.get(usize::from(record))?,
            data: self.data,
            position: at,
            start,
            origin: self.origin,
            order: self.order,
            first,
            state: self.state,
            streams: self.streams,
            source: self.source,
            items: 0,
            stopped: self.stopped,
        })
    }

    /// A numeric leaf of such a record, whatever it takes: its value, and where the leaf after it begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn number(
        &mut self,
        record: (u16, usize),
        (start, at): (usize, usize),
        leaf: u8,
    ) -> Result<(u64, usize), Stopped> {
        let mut row = self.row(record, start, at).ok_or(Stopped(()))?;
        let value = row.number(leaf)?;
        Ok((value, row.position))
    }

    /// A byte array of such a record, and where the leaf after it begins.
    #[cold]
    #[inline(never)]
    pub(crate) fn bytes(
        &mut self,
        record: (u16, usize),
        (start, at): (usize, usize),
        leaf: u8,
    ) -> Result<(&'r [u8], usize), Stopped> {
        let mut row = self.row(record, start, at).ok_or(Stopped(()))?;
        let bytes = row.bytes(leaf)?;
        Ok((bytes, row.position))
    }

    /// Stops with an error of the caller's.
    #[cold]
    pub(crate) fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }

    /// The record that comes next, data or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next_listed(&self) -> Option<Listed> {
        self.state.listed(tag(self.data, self.position, usize::from(self.format.tag_width), self.order)?)
    }

    /// It has an error to tell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a tag has at most 4 bytes")]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn tag(data: &[u8], position: usize, width: usize, order: Order) -> Option<u32> {
    let rest = data.get(position..)?;
    match width {
        1 => rest.first().map(|&tag| tag.into()),
        _ => rest.get(..width).map(|tag| order.read(tag) as u32),
    }
}
