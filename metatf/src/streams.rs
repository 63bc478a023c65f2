//! Stream sections as other sections see them: pieces of content, and the cursors that stride through them (spec 4).

use crate::format::{Format, streams};
use metatf_container::{Content, Error, ErrorKind, Order, Origin, Part, Place, Result};

use crate::formula::{PREVIOUS, Plan, eight, history, note, plain, stored, value};
use crate::state::State;

/// A part of a stream section's content.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) content: Content,
    pub(crate) origin: Origin,
    /// Offset of the content: logical (version 1) or in the file (version 0).
    pub(crate) base: u64,
    /// Offset in the section's content, whatever the version: what sectionOffset counts.
    pub(crate) logical: u64,
    pub(crate) reset: bool,
    /// The first piece of its group: elements start from the DTD's state.
    pub(crate) first: bool,
    /// Stored width of the single leaf; 0: the DTD's.
    pub(crate) width: u8,
    /// Elements the chunk declares.
    pub(crate) records: Option<u32>,
    /// Salvage: elements are lost behind it. No cursor goes on to the next piece.
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

/// One stream section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) shared: bool,
    /// Total length of the pieces.
    pub(crate) length: u64,
}

/// All stream sections of the group in use, by index in `format.sections`, and the cursors into them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: Vec<Stream>,
    /// By [`slot`], as far as they were used in this group.
    cursors: Vec<Cursor>,
    /// By number of a section, up to the last stream section: its cursor in the slots of reader 0, from 1 on; 0: it is none.
    ordinals: Vec<u8>,
    /// How many slots each reader has.
    count: usize,
    /// How often a cursor had no element at hand.
    refills: u64,
}

/// A cursor belongs to a pair (section of the record, target section).
#[derive(Clone, Debug, Default)]
struct Cursor {
    /// Elements that were decoded in one go, and the one that comes next.
    ready: Vec<u64>,
    at: usize,
    /// Elements behind those that are gone over before the next is taken.
    skip: u64,
    walk: Option<Box<StreamWalk>>,
}

/// Decodes the numbers of a stream one after the other.
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

/// Elements that are decoded in one go: at first, and at most.
const FEW: usize = 16;
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

    /// A new group: cursors start over, and what belongs to the old group goes.
    pub(crate) fn start_group(&mut self) {
        self.restart();
        for stream in &mut self.streams {
            if !stream.shared {
                stream.pieces.clear();
            }
        }
    }

    /// Cursors start over, the pieces stay (version 0).
    pub(crate) fn restart(&mut self) {
        for cursor in &mut self.cursors {
            cursor.ready.clear();
            (cursor.at, cursor.skip, cursor.walk) = (0, 0, None);
        }
    }

    /// Changes whenever an element is taken, or asked for: tells salvage whether a part strides at all.
    pub(crate) fn taken(&self) -> u64 {
        self.cursors.iter().fold(self.refills, |taken, cursor| taken.wrapping_add(cursor.index()))
    }

    /// The element at the cursor in a slot, which moves on by one, where it was decoded already.
    #[inline(always)]
    pub(crate) fn ready(&mut self, slot: u64) -> Option<u64> {
        let cursor = self.cursors.get_mut(usize::try_from(slot).ok()?)?;
        let &value = cursor.ready.get(cursor.at)?;
        cursor.at += 1;
        Some(value)
    }

    /// Takes back that an element of a slot was taken, which was [`ready`](Self::ready) when nothing else was taken from there
    /// since.
    #[cold]
    pub(crate) fn give_back(&mut self, slot: u64) {
        if let Some(cursor) = usize::try_from(slot).ok().and_then(|slot| self.cursors.get_mut(slot)) {
            cursor.at = cursor.at.saturating_sub(1);
        }
    }

    /// Takes an element of each of these slots. False where one is not [at hand](Self::ready); then none is taken.
    pub(crate) fn pass(&mut self, slots: impl Iterator<Item = u64> + Clone) -> bool {
        for (taken, slot) in slots.clone().enumerate() {
            if self.ready(slot).is_none() {
                slots.take(taken).for_each(|slot| self.give_back(slot));
                return false;
            }
        }
        true
    }

    /// The element at the cursor of a reader (see [`slot`]) in the stream section number `target`; the cursor moves by
    /// `stride`.
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
    /// Index of the element that comes next.
    fn index(&self) -> u64 {
        let decoded = self.walk.as_ref().map_or(0, |walk| walk.next);
        decoded.wrapping_sub((self.ready.len() - self.at) as u64).saturating_add(self.skip)
    }

    /// Decodes elements when none is left that was, up to the one that comes next at least. False where there is none.
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

    /// Decodes the elements that come next: at least one and at most `most`; false at the end of the stream.
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

/// The first `count` numbers in the data, by a plan that stores bytes. All of them are there.
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

/// Takes over what a piece of a stream section says of the state.
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

/// Gives the bytes behind a [`Content`].
pub(crate) trait Bytes {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8];
}

/// No stream sections: there is nothing to be read.
pub(crate) struct NoBytes;

impl Bytes for NoBytes {
    fn bytes<'c>(&'c self, _: &'c Content) -> &'c [u8] {
        &[]
    }
}

/// How a position in a content is named in an error (spec 7).
pub(crate) fn place(origin: Origin, position: usize) -> Place {
    match origin {
        Origin::Stored(offset) => Place { offset: offset + position as u64, ..Place::default() },
        Origin::Packed(offset) => Place { offset, content: Some(position as u64), ..Place::default() },
    }
}
