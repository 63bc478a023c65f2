//! The remaining records of a part, and the context for decoding them.

use super::{ContentRow, Decoding, tag};
use crate::format::{Format, METADATA};
use crate::state::{Listed, State};
use crate::streams::{Bytes, Streams};
use metatf_container::{Error, Order, Origin};

/// The remaining records of a part.
pub(crate) struct Run<'r> {
    pub(crate) format: &'r Format,
    pub(crate) data: &'r [u8],
    pub(crate) position: usize,
    pub(crate) state: &'r mut State,
    pub(crate) streams: &'r mut Streams,
    pub(crate) source: &'r dyn Bytes,
    pub(crate) origin: Origin,
    /// The offset of the part in its section or in the file.
    pub(crate) base: u64,
    pub(crate) order: Order,
    /// Size of a metadata value that does not specify its own size, in bytes.
    pub(crate) word: usize,
    /// Number of records read.
    pub(crate) count: u64,
    pub(crate) stopped: &'r mut Option<Error>,
}

impl<'r> Run<'r> {
    /// Returns the index of the next record in the format and the index of its first plan, if it is a data record.
    pub(crate) fn listed(&self) -> Option<(u16, usize)> {
        let listed = self.next_listed().filter(|listed| listed.record > METADATA)?;
        Some((listed.record, listed.first as usize))
    }

    /// Returns the context for decoding the run's records.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn decoding(&mut self) -> Decoding<'_, 'r> {
        let Self { format, data, origin, order, source, .. } = *self;
        let State { encoding, history } = &mut *self.state;
        Decoding {
            format,
            data,
            origin,
            order,
            encoding,
            history,
            streams: self.streams,
            source,
            stopped: self.stopped,
        }
    }

    /// Creates a row for the record that begins at the run's position. Decoding continues with the byte at `at`; see
    /// [`Decoding::row`].
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn row(&mut self, record: (u16, usize), at: usize) -> Option<ContentRow<'_, 'r>> {
        let start = self.position;
        self.decoding().row(record, (start, at))
    }

    /// Returns the next record, whether or not it is a data record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next_listed(&self) -> Option<Listed> {
        self.state.encoding.listed(tag(self.data, self.position, usize::from(self.format.tag_width), self.order)?)
    }

    /// Returns whether an error has stopped the run.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }
}
