//! Looking an element up by its offset: what `sectionOffset` leaves point at (spec 4).

use super::{At, RecordReader};
use crate::decode::{ContentRow, Decoding};
use crate::format::{Format, Interpretation};
use crate::state::State;
use crate::streams::enter;
use metatf_container::{Error, ErrorKind, Origin, Result};

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
    /// Where elements do not depend on others this is a jump. Else those before it are decoded, too: from the one that was found
    /// last, if that is among them.
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
        let wanted_piece = pieces.get(at).cloned().ok_or(none)?;
        let wanted = usize::try_from(offset - wanted_piece.logical).map_err(|_| none)?;
        let is_stateless = record.is_stateless();
        if self.places.len() <= section {
            self.places.resize_with(section + 1, || None);
        }
        let place = self.places.get_mut(section).ok_or(none)?;
        let place = place.get_or_insert_with(|| Box::new(ElementPlace::new(&self.format, section)));
        let piece_id = Some((wanted_piece.logical, wanted_piece.origin));
        // Until the element is found.
        let goes_on = std::mem::take(&mut place.piece) == piece_id && (is_stateless || place.next <= wanted);
        let mut before = Vec::new();
        if !goes_on {
            place.next = 0;
            place.state.reset(&self.format);
            if !is_stateless {
                let from = pieces.iter().take(at + 1).rposition(|p| p.reset).unwrap_or(0);
                before.extend_from_slice(pieces.get(from..at).unwrap_or_default());
            }
        }
        let mut decode = Some(decode);
        for piece in before.iter().chain([&wanted_piece]) {
            if !goes_on {
                enter(&mut place.state, &self.format, piece);
            }
            let last = std::ptr::eq(piece, &raw const wanted_piece);
            let data = self.container.bytes(&piece.content);
            let mut position = if is_stateless { wanted } else { place.next };
            while position < data.len() && !(last && position > wanted) {
                let found = last && position == wanted;
                let decoding = Decoding {
                    format: &self.format,
                    data,
                    origin: piece.origin,
                    order: self.order,
                    encoding: &place.state.encoding,
                    history: &mut place.state.history,
                    streams: &mut self.streams,
                    source: &self.container,
                    stopped: &mut self.stopped,
                };
                let mut row = ContentRow { decoding, record, start: position, position, first: 0, items: 0 };
                if let Some(decode) = decode.take_if(|_| found) {
                    // Whoever decodes it need not do so to its end: the next search begins with it again.
                    let cells = if is_stateless { Vec::new() } else { row.decoding.history.cells.clone() };
                    let decoded = decode(&mut row).map_err(|error| row.decoding.stopped.take().unwrap_or(error));
                    if !is_stateless {
                        place.state.history.cells = cells;
                    }
                    (place.piece, place.next) = (piece_id, position);
                    return decoded;
                }
                row.walk(&mut ()).map_err(|stopped| row.decoding.stopped.take().unwrap_or(stopped.into()))?;
                position = row.position;
            }
            place.next = 0;
        }
        Err(none)
    }
}

/// Where an element of a stream section was found, for the next that is looked for.
#[derive(Debug)]
pub(super) struct ElementPlace {
    /// Before the element at `next`.
    state: State,
    /// Where the piece begins in the section and in the file; `None` where nothing was found.
    piece: Option<(u64, Origin)>,
    /// Where the element begins in the piece.
    next: usize,
}

impl ElementPlace {
    fn new(format: &Format, section: usize) -> Self {
        Self { state: State::new(format, section), piece: None, next: 0 }
    }
}
