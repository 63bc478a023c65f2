//! The context for decoding the records of a part, without a position.

use crate::format::Format;
use crate::record::Stopped;
use crate::state::{Encoding, History};
use crate::streams::{Bytes, Streams};
use metatf_container::{Error, Order, Origin};

/// The context for decoding the records of a part: everything except the position. Decoding records changes the history
/// and consumes values from streams.
pub(crate) struct Decoding<'t, 'd> {
    pub(crate) format: &'t Format,
    pub(crate) data: &'d [u8],
    pub(crate) origin: Origin,
    pub(crate) order: Order,
    pub(crate) encoding: &'t Encoding,
    pub(crate) history: &'t mut History,
    pub(crate) streams: &'t mut Streams,
    pub(crate) source: &'t dyn Bytes,
    /// The error that stopped the last row.
    pub(crate) stopped: &'t mut Option<Error>,
}

impl<'t, 'd> Decoding<'t, 'd> {
    /// Reborrows the context.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reborrow(&mut self) -> Decoding<'_, 'd> {
        Decoding { history: self.history, streams: self.streams, stopped: self.stopped, ..*self }
    }

    /// Stops with an error.
    #[cold]
    pub(crate) fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }
}
