//! Looking an element up by its offset: what `sectionOffset` leaves point at (spec 4).

use super::{At, RecordReader};
use crate::decode::{ContentRow, Decoding};
use crate::format::Interpretation;
use crate::state::State;
use crate::streams::{Piece, enter};
use metatf_container::{Error, ErrorKind, Result};

impl RecordReader<'_> {
    /// The interpretation now in force of a leaf of a record.
    #[must_use]
    pub fn interpretation(&self, at: At, leaf: u8) -> Option<Interpretation> {
        let position = self.format.sections.get(at.section)?.records.iter().position(|&r| r == at.record)?;
        let state = self.states.get(at.section)?;
        Some(state.encoding.interpretation(state.encoding.plans_of(position) + usize::from(leaf)))
    }

    /// Decodes the element at an offset into the content of a stream section (spec 4, sectionOffset): of the group in
    /// progress, or of a shared table as far as it was read.
    ///
    /// # Errors
    /// [`ErrorKind::NoOffset`] where no element starts; what `decode` returns.
    pub fn element_at<T>(
        &mut self,
        section: usize,
        offset: u64,
        decode: impl FnOnce(&mut ContentRow<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let none = Error::at(0, ErrorKind::NoOffset { section: number, offset });
        let pieces = self.streams.streams.get(section).map_or(&[][..], |s| &s.pieces);
        let record = self.format.sections.get(section).filter(|s| s.stream).and_then(|s| s.records.first());
        let record = record.and_then(|&r| self.format.records.get(usize::from(r))).ok_or(none)?;
        // Pieces lie in ascending order; an element may depend on those before it in its piece, and in earlier ones
        // back to a reset.
        let at = pieces.partition_point(|p| p.logical <= offset).checked_sub(1).ok_or(none)?;
        let piece = pieces.get(at).cloned().ok_or(none)?;
        let wanted = usize::try_from(offset - piece.logical).map_err(|_| none)?;
        let from =
            if record.is_stateless() { at } else { pieces.iter().take(at + 1).rposition(|p| p.reset).unwrap_or(0) };
        let pieces: Vec<Piece> = pieces.get(from..=at).unwrap_or_default().to_vec();
        let mut state = State::new(&self.format, section);
        let mut decode = Some(decode);
        for (i, piece) in pieces.iter().enumerate() {
            enter(&mut state, &self.format, piece);
            let last = i + 1 == pieces.len();
            let data = self.container.bytes(&piece.content);
            let mut position = if last && record.is_stateless() { wanted } else { 0 };
            while position < data.len() && !(last && position > wanted) {
                let found = last && position == wanted;
                let decoding = Decoding {
                    format: &self.format,
                    data,
                    origin: piece.origin,
                    order: self.order,
                    encoding: &state.encoding,
                    history: &mut state.history,
                    streams: &mut self.streams,
                    source: &self.container,
                    stopped: &mut self.stopped,
                };
                let mut row = ContentRow { decoding, record, start: position, position, first: 0, items: 0 };
                if let Some(decode) = decode.take_if(|_| found) {
                    return decode(&mut row).map_err(|error| row.decoding.stopped.take().unwrap_or(error));
                }
                row.walk(&mut ()).map_err(|stopped| row.decoding.stopped.take().unwrap_or(stopped.into()))?;
                position = row.position;
            }
        }
        Err(none)
    }
}
