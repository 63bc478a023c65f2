//! Decodes a byte array that contains records of a section (spec 3.7).

use super::{ContentRow, Decoding, tag};
use crate::format::{FormatRef, METADATA};
use crate::state::State;
use crate::streams::{NoBytes, Streams};
use metatf_container::{Error, ErrorKind, Order, Origin, Result};

/// A reader for records of one section in byte arrays. Memory is reused from array to array.
#[derive(Debug)]
pub(crate) struct ArrayReader {
    format: FormatRef,
    order: Order,
    section: usize,
    state: State,
    /// Always empty, because records in byte arrays consume no values from stream sections.
    streams: Streams,
}

impl ArrayReader {
    /// Creates a reader for the section with this index in the format.
    pub(crate) fn new(format: FormatRef, section: usize, order: Order) -> Self {
        let (state, streams) = (State::new(&format, section), Streams::new(&format));
        Self { format, order, section, state, streams }
    }

    /// Reads the records of an array, passing each to `each` with its index in the format. The state is reset first, as
    /// at the beginning of the section.
    ///
    /// # Errors
    /// Returns an error if the bytes do not consist of complete records or a tag belongs to no data record, or any
    /// error that `each` returns. Locations are relative to the array.
    pub(crate) fn read<'d>(
        &mut self,
        bytes: &'d [u8],
        each: &mut dyn FnMut(u16, &mut ContentRow<'_, 'd>) -> Result<()>,
    ) -> Result<()> {
        let Self { format, order, section, state, streams } = self;
        let format = &**format;
        let Some(declared) = format.sections.get(*section) else { return Ok(()) };
        state.reset(format);
        let mut start = 0;
        while start < bytes.len() {
            let error = |kind| Error::at(start as u64, kind);
            let (record, first, position) = if declared.stream {
                let element = declared.records.first().copied().unwrap_or_default();
                (element, state.encoding.first_plan(0).unwrap_or_default(), start)
            } else {
                let width = usize::from(format.tag_width);
                let tag = tag(bytes, start, width, *order).ok_or(error(ErrorKind::Truncated("a record")))?;
                let listed = state.encoding.listed(tag).filter(|listed| listed.record > METADATA);
                let listed = listed.ok_or(error(ErrorKind::UnknownTag(tag)))?;
                (listed.record, listed.first as usize, start + width)
            };
            let mut stopped = None;
            let decoding = Decoding {
                format,
                data: bytes,
                origin: Origin::Stored(0),
                order: *order,
                encoding: &state.encoding,
                history: &mut state.history,
                streams,
                source: &NoBytes,
                stopped: &mut stopped,
            };
            let Some(mut row) = decoding.row((record, first), (start, position)) else { return Ok(()) };
            let read = each(record, &mut row).and_then(|()| Ok(row.finish()?));
            let end = row.position;
            read.map_err(|error| stopped.unwrap_or(error))?;
            // Advance by at least one byte, the minimum size of an element (spec 3.4).
            start = end.max(start + 1);
        }
        Ok(())
    }
}
