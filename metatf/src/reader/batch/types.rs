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

/// The position of a record type that does not exist.
const NONE: u16 = u16::MAX;

/// Number of records of less common types after which the most common types are determined again.
const OFTEN: u32 = 1024;

/// The record types of a section.
#[derive(Debug, Default)]
pub(in crate::reader) struct Types {
    /// The types by position.
    pub(in crate::reader) types: Vec<Type>,
    /// The position of a data record by its tag, for tags less than 256.
    by_tag: Vec<u16>,
    /// Positions of the most frequent types. Their tags are compared rather than looked up. Since the CPU can predict
    /// these comparisons, it can locate the next record before this record's tag has been loaded.
    common: [u16; 3],
    /// Number of records of less common types since the common types were last determined.
    uncommon: u32,
}

/// The records of one type in a section.
#[derive(Debug)]
pub(in crate::reader) struct Type {
    pub(in crate::reader) layout: Layout,
    pub(super) cursor: TypeCursor,
    /// The first slot of the type in the places.
    first: usize,
    /// The number of slots of the type.
    capacity: usize,
    /// Number of records so far.
    total: u64,
    /// Whether any stored record has bytes at its end.
    pub(in crate::reader) has_bytes: bool,
    /// For each leaf, the stream elements consumed for the stored records.
    pub(in crate::reader) elements: Vec<Vec<u64>>,
}

/// The data, apart from the content, that is needed to store a record's position.
pub(super) struct Rest<'s> {
    pub(super) types: &'s mut [Type],
    pub(super) streams: &'s mut Streams,
    /// Number of bytes in byte arrays at the ends of records.
    pub(super) bytes: &'s mut usize,
    /// Positions of the record types encountered.
    pub(super) met: &'s mut Vec<u16>,
    /// The position of the type whose record stopped the scan.
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

    /// Finds the next records, up to `limit`, and stores their positions. Stops at any other event. If the scan stops
    /// at a data record of a type that cannot be handled, returns the position of this type. `ROWS` selects the entries
    /// that `order` receives.
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

    /// Implements [`scan`](Self::scan). `WIDTH` is the tag width if it is to be a compile-time constant.
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
        // Stop eight bytes before the end of the data, because the loop loads eight bytes at a time and may read past
        // the end of a record.
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

    /// Determines the most frequent types so far.
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

/// Returns the position of the data record with this tag.
#[cold]
fn position_of(tag: u32, state: &State) -> u16 {
    state.encoding.listed(tag).filter(|listed| listed.record > METADATA).map_or(NONE, |listed| listed.position)
}

impl Rest<'_> {
    /// Stores a record of a less common type.
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

    /// Updates a type after records were stored through `cursor`, a copy of the type's cursor.
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

    /// Assigns slots in the places, starting at `first` and `step` apart. Slots are addressed with 32 bits.
    pub(in crate::reader) fn allot(&mut self, first: usize, step: usize, capacity: usize) -> Option<()> {
        u32::try_from(first.checked_add(step.checked_mul(capacity)?)?).ok()?;
        (self.first, self.capacity) = (first, capacity);
        (self.cursor.next, self.cursor.step) = (first, step);
        Some(())
    }

    /// Returns whether the type has slots.
    pub(in crate::reader) fn is_allotted(&self) -> bool {
        self.capacity > 0
    }

    /// Returns whether the type's records are decoded in batches.
    pub(in crate::reader) fn is_batched(&self) -> bool {
        self.layout.mode == Mode::Batched
    }

    /// Uses this extent, if any, from now on.
    pub(in crate::reader) fn set_extent(&mut self, extent: Option<Extent>) {
        self.cursor.extent = extent.unwrap_or(TypeCursor::NONE.extent);
    }

    /// Returns the slots of the stored records.
    pub(in crate::reader) fn slots(&self) -> std::ops::Range<usize> {
        self.first..self.cursor.next
    }

    /// Returns the number of stored records.
    pub(in crate::reader) fn count(&self) -> usize {
        (self.cursor.next - self.first) / self.cursor.step
    }

    /// Returns the number of free slots.
    fn free(&self) -> usize {
        self.capacity - self.count()
    }

    /// Returns a copy of the type's cursor for storing records.
    fn cursor(&self) -> TypeCursor {
        if self.is_batched() { self.cursor } else { TypeCursor::NONE }
    }

    /// Discards the stored records.
    pub(in crate::reader) fn clear(&mut self) {
        self.cursor.next = self.first;
        self.has_bytes = false;
        if self.cursor.extent.streamed != 0 {
            self.elements.iter_mut().for_each(Vec::clear);
        }
    }

    /// Consumes stream elements for the leaves of one record. If an element is not available, returns false and
    /// consumes no elements.
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

    /// Returns the consumed elements to their streams.
    pub(in crate::reader) fn give_back(&self, streams: &mut Streams) {
        for (leaf, slot) in self.layout.streamed() {
            let taken = self.elements.get(leaf).map_or(0, Vec::len);
            (0..taken).for_each(|_| streams.give_back(slot));
        }
    }
}

impl TypeCursor {
    /// Stores the record at an offset. Returns the record's entry in the order, and the offset of the next record.
    /// Returns `None` if the next record would start less than eight bytes before the end of the data, or if stream
    /// elements are not available.
    #[allow(clippy::cast_possible_truncation, reason = "slots are addressed with 32 bits")]
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
        // The CPU predicts this branch well, because both values are usually 0.
        if length | streamed != 0 {
            next += rest.pass(self.position, length, end - next)?;
        }
        *place = at as u64;
        self.next = slot + self.step;
        Some((if ROWS { slot as u32 } else { self.position.into() }, next))
    }
}

impl Rest<'_> {
    /// Skips the remaining data of a record: up to `most` bytes at its end, and stream elements. Returns the number of
    /// skipped bytes.
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
