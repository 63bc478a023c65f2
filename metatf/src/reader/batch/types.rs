//! The record types of a section, and the loop that finds their records.

use super::Batch;
use super::cursor::TypeCursor;
use super::layout::{Extent, Layout, Mode};
use crate::decode::{Run, tag};
use crate::format::{COMMENT, Format, METADATA, Record, SECTION};
use crate::formula::eight;
use crate::state::State;
use crate::streams::Streams;
use metatf_container::Order;

/// No position of a type in a section.
const NONE: u16 = u16::MAX;

/// After this many records of less common types the most common ones are looked for again.
const OFTEN: u32 = 1024;

/// The record types of a section.
#[derive(Debug, Default)]
pub(in crate::reader) struct Types {
    /// By position.
    pub(in crate::reader) types: Vec<Type>,
    /// The position of a data record by its tag, for tags under 256.
    by_tag: Vec<u16>,
    /// Positions of the types that come most often. Their tags are compared, where others are looked up: a branch can be predicted, so
    /// that the next record is found before the tag of this one is there.
    common: [u16; 3],
    /// How many records were of others since they were looked for.
    uncommon: u32,
}

/// The records of one type in a section.
#[derive(Debug)]
pub(in crate::reader) struct Type {
    pub(in crate::reader) layout: Layout,
    pub(super) cursor: TypeCursor,
    /// Its first slot in the places, and how many there are.
    first: usize,
    capacity: usize,
    /// How many records there were so far.
    total: u64,
    /// One that was noted has bytes at its end.
    pub(in crate::reader) has_bytes: bool,
    /// By leaf: the elements of streams that were taken for the records noted.
    pub(in crate::reader) elements: Vec<Vec<u64>>,
}

/// What noting a record needs besides its bytes.
pub(super) struct Rest<'s> {
    pub(super) types: &'s mut [Type],
    pub(super) streams: &'s mut Streams,
    /// Of byte arrays at the ends of records.
    pub(super) bytes: &'s mut usize,
    /// Positions of the types that there are records of.
    pub(super) met: &'s mut Vec<u16>,
    /// The position of the type whose record cannot be noted because of it.
    pub(super) stopped_by: Option<u16>,
}

impl Types {
    /// Lists the types of a section.
    pub(in crate::reader) fn new(format: &Format, section: usize) -> Self {
        let mut types = Self { by_tag: vec![NONE; 256], common: [NONE; 3], ..Self::default() };
        let listed = format.sections.get(section).map_or(&[][..], |section| &section.records);
        let mut other = NONE;
        for (position, &index) in (0..NONE).zip(listed) {
            let Some(record) = format.records.get(usize::from(index)) else { continue };
            types.types.push(Type::new(record, position, format.tag_width));
            match types.by_tag.get_mut(record.tag as usize).filter(|_| index > METADATA) {
                _ if record.is_catch_all() => other = position,
                Some(slot) => *slot = position,
                None => {}
            }
        }
        let predefined = [COMMENT, SECTION, METADATA].map(|record| format.tag(record));
        for (_, slot) in (0..).zip(&mut types.by_tag).filter(|(tag, slot)| **slot == NONE && !predefined.contains(tag))
        {
            *slot = other;
        }
        types
    }

    /// Notes the records that come next: `limit` of them, fewer where something else comes. Gives the position of the data record that
    /// comes next, if it cannot be noted because of its type. `ROWS` says which entries `order` gets.
    pub(in crate::reader) fn scan<const ROWS: bool>(
        &mut self,
        batch: &mut Batch,
        run: &mut Run<'_>,
        limit: usize,
    ) -> Option<u16> {
        if self.uncommon >= OFTEN || self.uncommon > 0 && self.common.contains(&NONE) {
            self.rank();
        }
        match usize::from(run.format.tag_width) {
            1 => self.pass::<1, ROWS>(1, batch, run, limit),
            width => self.pass::<0, ROWS>(width, batch, run, limit),
        }
    }

    /// Does what [`scan`](Self::scan) does. `WIDTH` is that of a tag, where the compiler is to know it.
    #[inline(never)]
    fn pass<const WIDTH: usize, const ROWS: bool>(
        &mut self,
        width: usize,
        batch: &mut Batch,
        run: &mut Run<'_>,
        limit: usize,
    ) -> Option<u16> {
        let width = if WIDTH == 0 { width } else { WIDTH };
        let (data, mut at) = (run.data, run.position);
        // What follows a record may be loaded eight bytes at a time.
        let end = data.len().checked_sub(8)?;
        let common = self.common;
        let cursors =
            common.map(|position| self.types.get(usize::from(position)).map_or(TypeCursor::NONE, Type::cursor));
        let free = common.iter().filter_map(|&position| self.types.get(usize::from(position)));
        let limit = free.filter(|known| known.is_batched()).map(Type::free).fold(limit, usize::min);
        let Batch { order, len, places, met, bytes } = batch;
        if order.len() < *len + limit {
            order.resize(*len + limit, 0);
        }
        let mut rest = Rest { types: &mut self.types, streams: &mut *run.streams, bytes, met, stopped_by: None };
        let [mut a, mut b, mut c] = cursors;
        let mut count = 0;
        for slot in order.get_mut(*len..*len + limit)? {
            let Some(tag) = tag(data, at, width, Order::Little) else { break };
            let noted = if tag == a.tag {
                a.note::<ROWS>(data, end, at, places, &mut rest)
            } else if tag == b.tag {
                b.note::<ROWS>(data, end, at, places, &mut rest)
            } else if tag == c.tag {
                c.note::<ROWS>(data, end, at, places, &mut rest)
            } else {
                self.uncommon += 1;
                let position = match self.by_tag.get(tag as usize) {
                    Some(&position) => position,
                    None => position_of(tag, run.state),
                };
                rest.note_other::<ROWS>(position, data, end, at, places)
            };
            let Some((entry, next)) = noted else { break };
            *slot = entry;
            at = next;
            count += 1;
        }
        for cursor in [a, b, c] {
            rest.go_to(cursor);
        }
        let stopped_by = rest.stopped_by;
        *len += count;
        run.position = at;
        stopped_by
    }

    /// Finds the types that came most often so far.
    #[cold]
    fn rank(&mut self) {
        let mut best = [(0, NONE); 3];
        for (position, known) in (0..).zip(&self.types) {
            let least = best.iter_mut().min_by_key(|(total, _)| *total);
            if let Some(least) = least.filter(|(total, _)| known.total > *total) {
                *least = (known.total, position);
            }
        }
        best.sort_unstable_by_key(|&(total, _)| std::cmp::Reverse(total));
        self.common = best.map(|(_, position)| position);
        self.uncommon = 0;
    }
}

/// The position of the data record with this tag.
#[cold]
fn position_of(tag: u32, state: &State) -> u16 {
    state.encoding.listed(tag).filter(|listed| listed.record > METADATA).map_or(NONE, |listed| listed.position)
}

impl Rest<'_> {
    /// Notes a record of a less common type.
    #[inline(never)]
    fn note_other<const ROWS: bool>(
        &mut self,
        position: u16,
        data: &[u8],
        end: usize,
        at: usize,
        places: &mut [u64],
    ) -> Option<(u32, usize)> {
        let known = self.types.get(usize::from(position))?;
        if !known.is_batched() || known.free() == 0 {
            self.stopped_by = Some(position);
            return None;
        }
        let mut cursor = known.cursor;
        let noted = cursor.note::<ROWS>(data, end, at, places, self)?;
        self.go_to(cursor);
        Some(noted)
    }

    /// Records were noted with a cursor.
    fn go_to(&mut self, cursor: TypeCursor) {
        let Some(known) = self.types.get_mut(usize::from(cursor.position)) else { return };
        let count = (cursor.next - known.cursor.next) / cursor.step;
        if known.cursor.next == known.first && count > 0 {
            self.met.push(cursor.position);
        }
        known.cursor.next = cursor.next;
        known.total += count as u64;
    }
}

impl Type {
    fn new(record: &Record, position: u16, tag_width: u8) -> Self {
        Self {
            layout: Layout::new(record, tag_width),
            cursor: TypeCursor { tag: record.tag, position, ..TypeCursor::NONE },
            first: 0,
            capacity: 0,
            total: 0,
            has_bytes: false,
            elements: vec![Vec::new(); record.leaves.len()],
        }
    }

    /// Gives it slots in the places, from `first` on and `step` apart. Places go by 32 bits.
    pub(in crate::reader) fn allot(&mut self, first: usize, step: usize, capacity: usize) -> Option<()> {
        u32::try_from(first.checked_add(step.checked_mul(capacity)?)?).ok()?;
        (self.first, self.capacity) = (first, capacity);
        (self.cursor.next, self.cursor.step) = (first, step);
        Some(())
    }

    /// Whether it has slots.
    pub(in crate::reader) fn is_allotted(&self) -> bool {
        self.capacity > 0
    }

    /// Whether its records are noted.
    pub(in crate::reader) fn is_batched(&self) -> bool {
        self.layout.mode == Mode::Batched
    }

    /// Goes by this extent from now on, if it has one.
    pub(in crate::reader) fn set_extent(&mut self, extent: Option<Extent>) {
        self.cursor.extent = extent.unwrap_or(TypeCursor::NONE.extent);
    }

    /// The slots of the records that were noted.
    pub(in crate::reader) fn slots(&self) -> std::ops::Range<usize> {
        self.first..self.cursor.next
    }

    /// How many records were noted.
    pub(in crate::reader) fn count(&self) -> usize {
        (self.cursor.next - self.first) / self.cursor.step
    }

    /// How many more can be.
    fn free(&self) -> usize {
        self.capacity - self.count()
    }

    /// Its cursor, while records are noted with it.
    fn cursor(&self) -> TypeCursor {
        if self.is_batched() { self.cursor } else { TypeCursor::NONE }
    }

    /// Forgets the records that were noted.
    pub(in crate::reader) fn clear(&mut self) {
        self.cursor.next = self.first;
        self.has_bytes = false;
        if self.cursor.extent.streamed != 0 {
            self.elements.iter_mut().for_each(Vec::clear);
        }
    }

    /// Takes elements of streams for the leaves of one record that have such. False where one is not at hand; then none is taken.
    pub(super) fn take_elements(&mut self, streams: &mut Streams) -> bool {
        let Self { layout, elements, .. } = self;
        for (index, (leaf, slot)) in layout.streamed().enumerate() {
            let Some((value, elements)) = streams.ready(slot).zip(elements.get_mut(leaf)) else {
                for (leaf, slot) in layout.streamed().take(index) {
                    elements.get_mut(leaf).map(Vec::pop);
                    streams.give_back(slot);
                }
                return false;
            };
            elements.push(value);
        }
        true
    }

    /// Gives back the elements of streams that were taken.
    pub(in crate::reader) fn give_back(&self, streams: &mut Streams) {
        for (leaf, slot) in self.layout.streamed() {
            let taken = self.elements.get(leaf).map_or(0, Vec::len);
            (0..taken).for_each(|_| streams.give_back(slot));
        }
    }
}

impl TypeCursor {
    /// Notes the record at a place. Gives its entry in the order, and where the next one is; none where that is too near to the end,
    /// which is eight bytes before the data's, or elements of streams are not at hand.
    #[allow(clippy::cast_possible_truncation, reason = "slots are allotted up to 32 bits")]
    #[inline(always)]
    pub(super) fn note<const ROWS: bool>(
        &mut self,
        data: &[u8],
        end: usize,
        at: usize,
        places: &mut [u64],
        rest: &mut Rest<'_>,
    ) -> Option<(u32, usize)> {
        let Extent { fixed, length, mask, streamed } = self.extent;
        let (slot, mut next) = (self.next, at + fixed);
        if next > end {
            return None;
        }
        let place = places.get_mut(slot)?;
        let length = u64::from_le_bytes(eight(data, at + length)?) & mask;
        // A branch that is predicted well: most often there is nothing.
        if length | streamed != 0 {
            next += rest.pass(self.position, length, end - next)?;
        }
        *place = at as u64;
        self.next = slot + self.step;
        Some((if ROWS { slot as u32 } else { self.position.into() }, next))
    }
}

impl Rest<'_> {
    /// Goes over what a record has besides: bytes at its end, `most` at most, and elements of streams. Gives how many bytes there
    /// are.
    #[inline(never)]
    fn pass(&mut self, position: u16, length: u64, most: usize) -> Option<usize> {
        let length = usize::try_from(length).ok().filter(|&length| length <= most)?;
        let known = self.types.get_mut(usize::from(position))?;
        if !known.take_elements(self.streams) {
            return None;
        }
        known.has_bytes |= length > 0;
        *self.bytes += length;
        Some(length)
    }
}
