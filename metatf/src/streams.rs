//! Stream sections as seen by other sections, with pieces of content and the cursors that stride through them (spec 4).

use crate::format::{Format, streams};
use metatf_container::{Content, Error, ErrorKind, Order, Origin, Part, Place, Result};

use crate::formula::{PREVIOUS, Plan, eight, history, note, plain, stored, value};
use crate::state::State;

/// A part of a stream section's content.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
    /// Offset of the content: in the section's logical content (version 1) or in the file (version 0).
    pub(crate) base: u64,
    /// Offset in the section's content, in any version, as used by `sectionOffset`.
    pub(crate) logical: u64,
    pub(crate) reset: bool,
    /// Whether this is the first piece of its group. The state is then reset to the DTD's before the first element.
    pub(crate) first: bool,
    /// Stored width of the single leaf, or 0 for the DTD's width.
    pub(crate) width: u8,
    /// Number of elements declared by the chunk.
    pub(crate) records: Option<u32>,
    /// Whether elements after this piece are lost, which happens only while salvaging. No cursor advances past such a
    /// piece.
    pub(crate) cut: bool,
}

impl Piece {
    pub(crate) fn new(part: &Part, logical: u64) -> Self {
        Self {
            content: part.content.clone(),
            origin: part.origin,
            base: part.base,
            logical,
            reset: part.reset,
            first: false,
            width: part.width,
            records: part.records,
            cut: false,
        }
    }
}

/// A stream section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) shared: bool,
    /// Total length of the pieces.
    pub(crate) length: u64,
}

/// All stream sections of the current group, by index in `format.sections`, and the cursors into them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: Vec<Stream>,
    /// Cursors by [`slot`], up to the last one used in this group.
    cursors: Vec<Cursor>,
    /// For each section number, up to that of the last stream section, the position of its cursor among the slots of
    /// reader 0, counting from 1; 0 if the section is not a stream section.
    ordinals: Vec<u8>,
    /// Number of slots per reader.
    count: usize,
    /// Number of times that an element was requested but the cursor had no decoded element available.
    refills: u64,
}

/// A cursor into a stream section. Each pair of a reader (see [`slot`]) and a stream section has its own cursor.
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Elements decoded in one batch.
    ready: Vec<u64>,
    /// The index of the next element in `ready`.
    at: usize,
    /// Number of elements after the decoded ones that must be skipped before the next element can be consumed.
    skip: u64,
    walk: Option<Box<StreamWalk>>,
}

/// A decoder for the numbers of a stream, in sequence.
#[derive(Clone, Debug)]
struct StreamWalk {
    /// Index of the stream section.
    stream: usize,
    state: State,
    piece: usize,
    entered: bool,
    position: usize,
    /// Index of the element at `position`.
    next: u64,
}

/// Initial number of elements decoded in one batch.
const FEW: usize = 16;
/// Maximum number of elements decoded in one batch.
const MANY: usize = 512;

impl Streams {
    pub(crate) fn new(format: &Format) -> Self {
        let mut ordinals = Vec::new();
        for (ordinal, number) in (1..).zip(streams(format)) {
            let number = usize::from(number);
            ordinals.resize(ordinals.len().max(number + 1), 0);
            if let Some(slot) = ordinals.get_mut(number) {
                *slot = ordinal;
            }
        }
        let streams_here = vec![Stream::default(); format.sections.len()];
        Self { streams: streams_here, ordinals, count: streams(format).count(), ..Self::default() }
    }

    /// Starts a group: resets all cursors and drops the pieces of the old group.
    pub(crate) fn start_group(&mut self) {
        self.restart();
        for stream in &mut self.streams {
            if !stream.shared {
                stream.pieces.clear();
            }
        }
    }

    /// Resets all cursors but keeps the pieces (version 0).
    pub(crate) fn restart(&mut self) {
        for cursor in &mut self.cursors {
            cursor.ready.clear();
            (cursor.at, cursor.skip, cursor.walk) = (0, 0, None);
        }
    }

    /// Returns a number that changes whenever an element is consumed or requested. Salvage uses it to detect whether a
    /// part strides through a stream section.
    pub(crate) fn taken(&self) -> u64 {
        self.cursors.iter().fold(self.refills, |taken, cursor| taken.wrapping_add(cursor.index()))
    }

    /// Returns the element at the cursor in a slot and advances the cursor by one, if the element has already been
    /// decoded.
    #[inline(always)]
    pub(crate) fn ready(&mut self, slot: u64) -> Option<u64> {
        let cursor = self.cursors.get_mut(usize::try_from(slot).ok()?)?;
        let &value = cursor.ready.get(cursor.at)?;
        cursor.at += 1;
        Some(value)
    }

    /// Undoes the consumption of an element. The element must be the last one consumed from this slot, by
    /// [`ready`](Self::ready).
    #[cold]
    pub(crate) fn give_back(&mut self, slot: u64) {
        if let Some(cursor) = usize::try_from(slot).ok().and_then(|slot| self.cursors.get_mut(slot)) {
            cursor.at = cursor.at.saturating_sub(1);
        }
    }

    /// Consumes an element of each of these slots. If an element is not [available](Self::ready), returns false and
    /// consumes nothing.
    pub(crate) fn pass(&mut self, slots: impl Iterator<Item = u64> + Clone) -> bool {
        for (taken, slot) in slots.clone().enumerate() {
            if self.ready(slot).is_none() {
                slots.take(taken).for_each(|slot| self.give_back(slot));
                return false;
            }
        }
        true
    }

    /// Returns the element at a reader's cursor (see [`slot`]) in stream section number `target`, and advances the
    /// cursor by `stride`.
    pub(crate) fn next(
        &mut self,
        format: &Format,
        source: &dyn Bytes,
        order: Order,
        (reader, target): (usize, u8),
        stride: u64,
    ) -> Result<u64> {
        let none = |index| Error::at(0, ErrorKind::NoElement { section: target, index });
        let ordinal = self.ordinals.get(usize::from(target)).filter(|&&ordinal| ordinal > 0).ok_or(none(0))?;
        let slot = reader * self.count + usize::from(*ordinal) - 1;
        if self.cursors.len() <= slot {
            self.cursors.resize_with(slot + 1, Cursor::default);
        }
        let Some(cursor) = self.cursors.get_mut(slot) else { return Err(none(0)) };
        if cursor.at >= cursor.ready.len() {
            self.refills += 1;
            let stream = format.section_index(target).ok_or(none(0))?;
            let Some(pieces) = self.streams.get(stream).filter(|s| !s.shared) else { return Err(none(0)) };
            let index = cursor.index();
            if !cursor.fill(format, source, order, stream, pieces)? {
                return Err(none(index));
            }
        }
        let &value = cursor.ready.get(cursor.at).ok_or(none(0))?;
        let next = (cursor.at as u64).saturating_add(stride);
        let decoded = cursor.ready.len() as u64;
        cursor.at = usize::try_from(next.min(decoded)).unwrap_or(cursor.ready.len());
        cursor.skip = next.saturating_sub(decoded);
        Ok(value)
    }
}

impl Cursor {
    /// Returns the index of the next element.
    fn index(&self) -> u64 {
        let decoded = self.walk.as_ref().map_or(0, |walk| walk.next);
        decoded.wrapping_sub((self.ready.len() - self.at) as u64).saturating_add(self.skip)
    }

    /// Decodes more elements, including at least the next one, after all decoded elements have been consumed. Returns
    /// false if there is no next element.
    fn fill(
        &mut self,
        format: &Format,
        source: &dyn Bytes,
        order: Order,
        index: usize,
        stream: &Stream,
    ) -> Result<bool> {
        let walk = self.walk.get_or_insert_with(|| Box::new(StreamWalk::new(format, index)));
        let most = (2 * self.ready.len()).clamp(FEW, MANY);
        loop {
            self.ready.clear();
            self.at = 0;
            if !walk.decode(format, source, order, stream, most, &mut self.ready)? {
                return Ok(false);
            }
            let decoded = self.ready.len() as u64;
            if self.skip < decoded {
                self.at = usize::try_from(std::mem::take(&mut self.skip)).unwrap_or(0);
                return Ok(true);
            }
            self.skip -= decoded;
        }
    }
}

impl StreamWalk {
    fn new(format: &Format, stream: usize) -> Self {
        Self { stream, state: State::new(format, stream), piece: 0, entered: false, position: 0, next: 0 }
    }

    /// Decodes the next elements, at least one and at most `most`. Returns false at the end of the stream.
    fn decode(
        &mut self,
        format: &Format,
        source: &dyn Bytes,
        order: Order,
        stream: &Stream,
        most: usize,
        elements: &mut Vec<u64>,
    ) -> Result<bool> {
        loop {
            let Some(piece) = stream.pieces.get(self.piece) else { return Ok(false) };
            if !self.entered {
                enter(&mut self.state, format, piece);
                self.entered = true;
            }
            let data = source.bytes(&piece.content);
            if self.position >= data.len() {
                if piece.cut {
                    return Ok(false);
                }
                self.piece += 1;
                self.position = 0;
                self.entered = false;
                continue;
            }
            let rest = data.get(self.position..).unwrap_or_default();
            let Some(plan) = self.state.encoding.plans.first().filter(|plan| !plan.width.is_zero()) else {
                return Ok(false);
            };
            let whole = (rest.len() / plan.width.bytes()).min(most);
            if whole == 0 {
                let mut place = place(piece.origin, self.position);
                place.section = format.sections.get(self.stream).map(|s| s.number);
                place.leaf = Some(0);
                return Err(Error { kind: ErrorKind::Truncated("an element"), place });
            }
            numbers(rest, plan, order, whole, &mut self.state.history.cells, elements);
            self.position += whole * plan.width.bytes();
            self.next += whole as u64;
            return Ok(true);
        }
    }
}

/// Decodes the first `count` numbers in the data by a plan that stores bytes. The data must contain all of them.
fn numbers(data: &[u8], plan: &Plan, order: Order, count: usize, cells: &mut [u64], numbers: &mut Vec<u64>) {
    let width = plan.width.bytes();
    let raw = |i: usize| match (eight(data, i * width), order) {
        (Some(eight), Order::Little) => u64::from_le_bytes(eight) & plan.mask,
        _ => stored(data, i * width, plan, order).unwrap_or(0),
    };
    if plan.history == 0 {
        numbers.extend((0..count).map(|i| plain(raw(i), plan)));
    } else if plan.read == plan.write && plan.is(PREVIOUS) {
        let mut previous = history(plan, cells);
        numbers.extend((0..count).map(|i| {
            previous = previous.wrapping_add(plain(raw(i), plan));
            previous
        }));
    } else {
        numbers.extend((0..count).map(|i| value(raw(i), plan, cells)));
    }
    if let Some(&last) = numbers.last() {
        note(last, plan, cells);
    }
}

/// Applies the state settings of a stream section piece.
pub(crate) fn enter(state: &mut State, format: &Format, piece: &Piece) {
    if piece.reset {
        state.reset(format);
    }
    let record = format.sections.get(state.encoding.section).and_then(|s| s.records.first());
    let record = record.and_then(|&r| format.records.get(usize::from(r)));
    if let Some(leaf) = record.and_then(|r| r.single_number()) {
        let width = if piece.width == 0 { leaf.width() } else { piece.width };
        state.set_chunk_width(format, leaf, width);
    }
}

/// Provides the bytes of a [`Content`].
pub(crate) trait Bytes {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8];
}

/// A source without bytes, for sections that read nothing from stream sections.
pub(crate) struct NoBytes;

impl Bytes for NoBytes {
    fn bytes<'c>(&'c self, _: &'c Content) -> &'c [u8] {
        &[]
    }
}

/// Converts a position in content to a location for errors (spec 7).
pub(crate) fn place(origin: Origin, position: usize) -> Place {
    match origin {
        Origin::Stored(offset) => Place { offset: offset + position as u64, ..Place::default() },
        Origin::Packed(offset) => Place { offset, content: Some(position as u64), ..Place::default() },
    }
}
