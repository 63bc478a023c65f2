//! Finds elements by the offsets in `sectionOffset` leaves (spec 4).
//!
//! A table stores the contents of a stream section read so far, independently of the reader, so elements can be looked
//! up while a record borrows from the reader. If elements depend on earlier elements, the state is saved at regular
//! checkpoints. Otherwise, the places at which elements begin are noted, so that an offset into the middle of an element
//! is never decoded.

use super::{At, RecordReader};
use crate::decode::{ContentRow, Decoding};
use crate::format::{Format, FormatRef, Interpretation, Record};
use crate::state::State;
use crate::streams::{NoBytes, Piece, Streams, enter};
use metatf_container::{ContentBytes, Error, ErrorKind, Order, Result};
use std::sync::{Arc, Mutex, PoisonError};

/// The table of a stream section, shared by its reader and the element handles.
pub(crate) type SharedTable<'a> = Arc<Mutex<ElementTable<'a>>>;

/// The elements of a stream section that can be looked up: the elements of the current group, or the part of a shared
/// table read so far.
#[derive(Debug)]
pub(crate) struct ElementTable<'a> {
    format: FormatRef,
    order: Order,
    section: usize,
    /// The pieces in ascending order of offsets.
    pieces: Vec<(Piece, ContentBytes<'a>)>,
    /// For each piece, the places at which elements begin, if elements are independent.
    starts: Vec<Starts>,
    /// The state before the element at `place`.
    state: State,
    place: Place,
    /// A copy of the cells of `state` while an element is being decoded.
    saved: Vec<u64>,
    checkpoints: Checkpoints,
    /// Empty streams, because elements consume no values from other sections.
    streams: Streams,
}

/// The start of an element, as the index of its piece and the position in that piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    piece: usize,
    position: usize,
}

/// The positions in a piece at which elements begin, as far as they are known.
#[derive(Debug, Default)]
struct Starts {
    /// The position after the last known element.
    end: usize,
    /// A bit for each position before `end`.
    bits: Vec<u64>,
}

/// Saved histories from which decoding can resume.
#[derive(Debug)]
struct Checkpoints {
    /// The checkpoints in ascending order of places.
    kept: Vec<(Place, Box<[u64]>)>,
    /// Number of elements between checkpoints.
    spacing: usize,
    /// Number of elements decoded since the last checkpoint.
    behind: usize,
}

/// Maximum number of checkpoints.
const MOST: usize = 1 << 14;

/// Initial number of elements between checkpoints.
const SPACING: usize = 8;

impl<'a> RecordReader<'a> {
    /// Returns the current interpretation of a record's leaf.
    #[must_use]
    pub fn interpretation(&self, at: At, leaf: u8) -> Option<Interpretation> {
        let position = self.format.sections.get(at.section)?.records.iter().position(|&r| r == at.record)?;
        let state = self.states.get(at.section)?;
        Some(state.encoding.interpretation(state.encoding.plans_of(position) + usize::from(leaf)))
    }

    /// Decodes the element at an offset into the content of a stream section (spec 4, sectionOffset). The element may
    /// belong to the current group, or to the part of a shared table read so far.
    ///
    /// The first time, this also walks over the elements before the offset. If elements depend on each other, a few
    /// preceding elements are decoded each time.
    ///
    /// # Errors
    /// Returns [`ErrorKind::NoOffset`] if no element starts at the offset, or any error that `decode` returns.
    pub fn element_at<T>(
        &mut self,
        section: usize,
        offset: u64,
        decode: impl FnOnce(&mut ContentRow<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        lock(&self.table(section)).find(offset, decode)
    }

    /// Returns the table of a section, which is updated during reading.
    pub(crate) fn table(&mut self, section: usize) -> SharedTable<'a> {
        if self.tables.len() <= section {
            self.tables.resize_with(section + 1, || None);
        }
        let made = self.tables.get(section).and_then(Option::clone);
        made.unwrap_or_else(|| {
            let mut table = ElementTable::new(self.format.clone(), self.order, section);
            for piece in self.streams.streams.get(section).map_or(&[][..], |stream| &stream.pieces) {
                table.add(piece.clone(), self.container.keep(&piece.content));
            }
            let table = Arc::new(Mutex::new(table));
            if let Some(slot) = self.tables.get_mut(section) {
                *slot = Some(Arc::clone(&table));
            }
            table
        })
    }

    /// Adds a piece that was read to the section's table if the table is in use.
    pub(super) fn add_to_table(&self, section: usize, piece: Piece) {
        if let Some(table) = self.tables.get(section).and_then(Option::as_ref) {
            let bytes = self.container.keep(&piece.content);
            lock(table).add(piece, bytes);
        }
    }

    /// Empties the tables of sections for which `ends` returns true.
    pub(super) fn clear_tables(&self, ends: impl Fn(usize) -> bool) {
        for (_, table) in self.tables.iter().enumerate().filter(|&(section, _)| ends(section)) {
            table.as_deref().into_iter().for_each(|table| lock(table).clear());
        }
    }
}

/// Locks a table. If another thread panicked while holding the lock, the table is still intact, because a search only
/// changes the position from which the next search resumes.
pub(crate) fn lock<'l, 'a>(table: &'l Mutex<ElementTable<'a>>) -> std::sync::MutexGuard<'l, ElementTable<'a>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> ElementTable<'a> {
    fn new(format: FormatRef, order: Order, section: usize) -> Self {
        Self {
            state: State::new(&format, section),
            streams: Streams::new(&format),
            format,
            order,
            section,
            pieces: Vec::new(),
            starts: Vec::new(),
            place: Place::NONE,
            saved: Vec::new(),
            checkpoints: Checkpoints::new(),
        }
    }

    fn add(&mut self, piece: Piece, bytes: ContentBytes<'a>) {
        self.pieces.push((piece, bytes));
        self.starts.push(Starts::default());
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.starts.clear();
        self.place = Place::NONE;
        self.checkpoints = Checkpoints::new();
    }

    /// Decodes the element at an offset. See [`RecordReader::element_at`].
    pub(crate) fn find<T>(
        &mut self,
        offset: u64,
        decode: impl FnOnce(&mut ContentRow<'_, '_>) -> Result<T>,
    ) -> Result<T> {
        let format = self.format.clone();
        let section = format.sections.get(self.section);
        let none = Error::at(0, ErrorKind::NoOffset { section: section.map_or(0, |s| s.number), offset });
        let record = section.filter(|s| s.stream).and_then(|s| s.records.first());
        let record = record.and_then(|&r| format.records.get(usize::from(r))).ok_or(none)?;
        let piece = self.pieces.partition_point(|(p, _)| p.logical <= offset).checked_sub(1).ok_or(none)?;
        let (found, bytes) = self.pieces.get(piece).ok_or(none)?;
        let wanted = Place { piece, position: usize::try_from(offset - found.logical).map_err(|_| none)? };
        if wanted.position >= bytes.len() {
            return Err(none);
        }
        if record.is_stateless() {
            if self.place.piece != piece {
                enter(&mut self.state, &format, found);
            }
            // The state is that of this piece, even if no element begins at the offset.
            self.place = wanted;
            if !self.begins_at(&format, record, wanted)? {
                return Err(none);
            }
            self.place = wanted;
            return self.element(&format, record, decode).0;
        }
        if !self.walk_to(&format, record, wanted)? {
            return Err(none);
        }
        // The caller may not decode the element completely, so save the cells from which the next search starts at this
        // element again.
        self.saved.clone_from(&self.state.history.cells);
        let (element, _) = self.element(&format, record, decode);
        std::mem::swap(&mut self.saved, &mut self.state.history.cells);
        element
    }

    /// Returns whether an independent element begins at a place in the current piece.
    fn begins_at(&mut self, format: &Format, record: &Record, wanted: Place) -> Result<bool> {
        while let Some(end) = self.starts.get(wanted.piece).map(|starts| starts.end)
            && end <= wanted.position
        {
            self.place = Place { position: end, ..wanted };
            let (walked, next) = self.element(format, record, |row| Ok(row.walk(&mut ())?));
            walked?;
            if let Some(starts) = self.starts.get_mut(wanted.piece) {
                starts.add(end, next);
            }
        }
        Ok(self.starts.get(wanted.piece).is_some_and(|starts| starts.has(wanted.position)))
    }

    /// Moves to the element at a place. Returns false if no element begins there.
    fn walk_to(&mut self, format: &Format, record: &Record, wanted: Place) -> Result<bool> {
        // An element may depend on earlier elements of its piece, and on the elements of earlier pieces back to a
        // reset.
        let before = self.pieces.get(..=wanted.piece).unwrap_or_default();
        let reset = Place { piece: before.iter().rposition(|(p, _)| p.reset).unwrap_or(0), position: 0 };
        let kept = self.checkpoints.before(wanted).filter(|(place, _)| *place > reset);
        let from = kept.map_or(reset, |(place, _)| *place);
        // Resume from the end of the last search if that is closer.
        if self.place > wanted || self.place < from {
            self.state.reset(format);
            if let Some((piece, _)) = self.pieces.get(from.piece) {
                enter(&mut self.state, format, piece);
            }
            if let Some((_, cells)) = kept {
                self.state.history.cells.clone_from_slice(cells);
            }
            self.place = from;
        }
        while self.place < wanted {
            let position = self.place.position;
            if self.pieces.get(self.place.piece).is_none_or(|(_, bytes)| position >= bytes.len()) {
                self.place = Place { piece: self.place.piece + 1, position: 0 };
                if let Some((piece, _)) = self.pieces.get(self.place.piece) {
                    enter(&mut self.state, format, piece);
                }
                continue;
            }
            self.checkpoints.pass(self.place, &self.state.history.cells);
            let (walked, end) = self.element(format, record, |row| Ok(row.walk(&mut ())?));
            if let Err(error) = walked {
                self.place = Place::NONE;
                return Err(error);
            }
            self.place.position = end;
        }
        Ok(self.place == wanted)
    }

    /// Decodes the element at the current place. Also returns the position that `decode` reached.
    fn element<T>(
        &mut self,
        format: &Format,
        record: &Record,
        decode: impl FnOnce(&mut ContentRow<'_, '_>) -> Result<T>,
    ) -> (Result<T>, usize) {
        let none = Error::at(0, ErrorKind::Usage("the section has no element"));
        let Some((piece, bytes)) = self.pieces.get(self.place.piece) else { return (Err(none), 0) };
        let mut stopped = None;
        let position = self.place.position;
        let decoding = Decoding {
            format,
            data: bytes,
            origin: piece.origin,
            order: self.order,
            encoding: &self.state.encoding,
            history: &mut self.state.history,
            streams: &mut self.streams,
            source: &NoBytes,
            stopped: &mut stopped,
        };
        let mut row = ContentRow { decoding, record, start: position, position, first: 0, items: 0 };
        let decoded = decode(&mut row);
        let end = row.position;
        (decoded.map_err(|error| stopped.unwrap_or(error)), end)
    }
}

impl Place {
    /// A place that compares greater than every valid place.
    const NONE: Self = Self { piece: usize::MAX, position: 0 };
}

impl Starts {
    /// Adds the next element, from one position to another.
    fn add(&mut self, from: usize, to: usize) {
        self.bits.resize(from / 64 + 1, 0);
        if let Some(word) = self.bits.last_mut() {
            *word |= 1 << (from % 64);
        }
        // An element stores at least one byte (spec 3.5).
        self.end = to.max(from + 1);
    }

    fn has(&self, position: usize) -> bool {
        self.bits.get(position / 64).is_some_and(|word| word & 1 << (position % 64) != 0)
    }
}

impl Checkpoints {
    fn new() -> Self {
        Self { kept: Vec::new(), spacing: SPACING, behind: 0 }
    }

    /// Returns the last checkpoint at or before a place.
    fn before(&self, place: Place) -> Option<&(Place, Box<[u64]>)> {
        self.kept.get(self.kept.partition_point(|(kept, _)| *kept <= place).checked_sub(1)?)
    }

    /// Counts a decoded element, and saves a checkpoint if one is due. If there are too many checkpoints, every second
    /// one is dropped.
    fn pass(&mut self, place: Place, cells: &[u64]) {
        if self.kept.last().is_some_and(|(last, _)| place <= *last) {
            return;
        }
        self.behind += 1;
        if self.behind < self.spacing {
            return;
        }
        self.behind = 0;
        if self.kept.len() >= MOST {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.spacing *= 2;
        }
        self.kept.push((place, cells.into()));
    }
}

#[cfg(test)]
#[cfg(feature = "dynamic")]
mod tests {
    use super::{MOST, SPACING, lock};
    use crate::dynamic::{OwnedRecord, Schema, Trace, Writer};
    use crate::record::Row as _;
    use metatf_container::WriteOptions;

    /// Finds the nth element of a table with dependent elements, regardless of the previous search.
    #[test]
    fn elements_that_depend_on_others_are_found_in_any_order() {
        const COUNT: u64 = 140_000;
        let dtd = "section s 1 { r: (at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 2; } }
            section t 2 { e: (x) { x.width = 2; x.interpretation = delta 0; } }";
        let schema = Schema::parse("t.dtd", dtd.as_bytes()).unwrap();
        let options = WriteOptions { flush: metatf_container::FlushEvery::NEVER, ..WriteOptions::default() };
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &options).unwrap();
        let mut owned = OwnedRecord::default();
        for n in 0..COUNT {
            let line = format!(r#"{{"@section":"t","@record":"e","x":{}}}"#, n * n % 30_011);
            let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        }
        let line = schema.read_json(br#"{"@section":"s","@record":"r","at":0}"#, &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
        let bytes = writer.finish().unwrap().into_inner();
        let mut trace = Trace::from_slice(&bytes).unwrap();
        assert!(trace.reader_mut().next_event().unwrap().is_some());
        let section = schema.dtd.sections.iter().position(|s| s.number == 2).unwrap();
        let table = trace.reader_mut().table(section);
        let mut table = lock(&table);
        let mut n = 1;
        for _ in 0..3_000 {
            n = n * 48_271 % 0x7fff_ffff;
            let at = n % COUNT;
            let found = table.find(2 * at, |row| Ok(row.number(0)?)).unwrap();
            assert_eq!(found, at * at % 30_011, "element {at}");
            assert!(at == 0 || table.find(2 * at - 1, |row| Ok(row.number(0)?)).is_err());
        }
        assert!(table.checkpoints.kept.len() <= MOST);
        assert!(table.checkpoints.spacing > SPACING, "thinned out");
        assert!(table.find(2 * COUNT, |row| Ok(row.number(0)?)).is_err());
    }
}
