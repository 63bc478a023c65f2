//! What decoding the records of a part needs, except for where it is.

use super::ContentRow;
use crate::format::Format;
use crate::record::{Row, Stopped};
use crate::state::{Encoding, History};
use crate::streams::{Bytes, Streams};
use metatf_container::{Error, Order, Origin};

/// What decoding the records of a part needs, except for where it is. Records change the history and take from streams.
pub(crate) struct Decoding<'t, 'd> {
    pub(crate) format: &'t Format,
    pub(crate) data: &'d [u8],
    pub(crate) origin: Origin,
    pub(crate) order: Order,
    pub(crate) encoding: &'t Encoding,
    pub(crate) history: &'t mut History,
    pub(crate) streams: &'t mut Streams,
    pub(crate) source: &'t dyn Bytes,
    /// Why the last row stopped.
    pub(crate) stopped: &'t mut Option<Error>,
}

impl<'t, 'd> Decoding<'t, 'd> {
    /// The same for a while.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reborrow(&mut self) -> Decoding<'_, 'd> {
        Decoding { history: self.history, streams: self.streams, stopped: self.stopped, ..*self }
    }

    /// The rest of the record that begins at `start`, from the byte at `at` on. It is given by its index and that of its first plan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn row(
        self,
        (record, first): (u16, usize),
        (start, position): (usize, usize),
    ) -> Option<ContentRow<'t, 'd>> {
        let record = self.format.records.get(usize::from(record))?;
        Some(ContentRow { decoding: self, record, position, start, first, items: 0 })
    }

    /// A numeric leaf of such a record, whatever it takes: its value, and where the leaf after it begins.
    #[cold]
    #[inline(never)]
    pub(super) fn number(
        &mut self,
        record: (u16, usize),
        place: (usize, usize),
        leaf: u8,
    ) -> Result<(u64, usize), Stopped> {
        let mut row = self.reborrow().row(record, place).ok_or(Stopped(()))?;
        let value = row.number(leaf)?;
        Ok((value, row.position))
    }

    /// A byte array of such a record, and where the leaf after it begins.
    #[cold]
    #[inline(never)]
    pub(super) fn bytes(
        &mut self,
        record: (u16, usize),
        place: (usize, usize),
        leaf: u8,
    ) -> Result<(&'d [u8], usize), Stopped> {
        let mut row = self.reborrow().row(record, place).ok_or(Stopped(()))?;
        let bytes = row.bytes(leaf)?;
        Ok((bytes, row.position))
    }

    /// Stops with an error.
    #[cold]
    pub(crate) fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }
}
