//! Where the records of each type begin.

use super::take::Type;
use crate::columns::{RECORDS, RecordColumns, Sequence};
use crate::container::Order;
use crate::decode::{Run, tag};
use crate::formula::eight;
use crate::streams::Streams;

/// Places in a part are noted in 32 bits, from a base on.
const REACH: usize = 1 << 31;

#[derive(Debug, Default)]
pub(super) struct Section {
    /// By tag, for tags under 256.
    pub(super) entries: Vec<Entry>,
    /// By position.
    pub(super) types: Vec<Type>,
    /// Positions of those that come most often.
    pub(super) common: [u16; 3],
    /// Where records begin, from the base on: room for [`RECORDS`] of each type that was noted ever.
    pub(super) starts: Vec<u32>,
    /// The types of records that were noted in one pass.
    noted: Vec<u32>,
}

/// What to do about a tag.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// Of the record in its section.
    pub(super) position: u16,
    pub(super) what: What,
    /// Bytes of a record but for a byte array at its end.
    pub(super) fixed: u32,
    /// Where the length of that byte array is, and the mask to read it by; 0 where there is none.
    pub(super) length: u32,
    pub(super) mask: u32,
    /// Leaves take values from stream sections.
    pub(super) strides: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing that columns take.
    #[default]
    Other,
    /// Its place is noted.
    Note,
    /// It is read by itself.
    Read,
}

impl Section {
    /// Notes records up to one that cannot be noted, and gives what is known of that; none where the part ends, or nearly.
    pub(super) fn pass(
        &mut self,
        run: &mut Run<'_>,
        base: usize,
        width: usize,
        room: usize,
        columns: (usize, &mut [RecordColumns], &mut Sequence, &mut usize),
    ) -> Option<Entry> {
        match width {
            1 => self.pass_tags::<1>(run, base, 1, room, columns),
            _ => self.pass_tags::<0>(run, base, width, room, columns),
        }
    }

    /// As [`pass`](Self::pass); `WIDTH` is that of a tag, where the compiler is to know it.
    #[inline(never)]
    fn pass_tags<const WIDTH: usize>(
        &mut self,
        run: &mut Run<'_>,
        base: usize,
        width: usize,
        room: usize,
        (first, _, order, weight): (usize, &mut [RecordColumns], &mut Sequence, &mut usize),
    ) -> Option<Entry> {
        let width = if WIDTH == 0 { width } else { WIDTH };
        let data = run.data.get(base..run.data.len().min(base.saturating_add(REACH)))?;
        // What follows a record may be loaded eight bytes at a time.
        let end = data.len().checked_sub(8)?;
        let first = u32::try_from(first).ok()?;
        let mut at = run.position - base;
        let mut stopped_by = None;
        // The three types that come most often are told by comparisons, which the processor foresees; to look others up takes
        // as long as all the rest.
        let [mut a, mut b, mut c] = self.common.map(|position| self.lane(position));
        let Self { noted, starts, types, entries, .. } = self;
        noted.resize(RECORDS, 0);
        let mut count = 0;
        let mut rest = (&mut **types, &mut *run.streams);
        // Copied to the columns afterwards: where a vector may have to grow, not much of a loop is in registers.
        for slot in noted.get_mut(..room.min(RECORDS))? {
            let Some(tag) = tag(data, at, width, Order::Little) else { break };
            let (next, position) = if tag == a.tag {
                (a.note(data, end, at, starts, &mut rest), a.position)
            } else if tag == b.tag {
                (b.note(data, end, at, starts, &mut rest), b.position)
            } else if tag == c.tag {
                (c.note(data, end, at, starts, &mut rest), c.position)
            } else {
                let entry = entries.get(tag as usize).copied();
                let known = entry.and_then(|entry| rest.0.get(usize::from(entry.position)));
                let Some((entry, known)) = entry.zip(known).filter(|(entry, _)| entry.what == What::Note) else {
                    stopped_by = entry;
                    break;
                };
                let mut lane = Lane::new(entry, known);
                let next = lane.note(data, end, at, starts, &mut rest);
                if let Some(known) = rest.0.get_mut(usize::from(entry.position)) {
                    known.learn_places(&lane);
                }
                *weight += lane.bytes;
                (next, lane.position)
            };
            let Some(next) = next else { break };
            at = next;
            *slot = first + position;
            count += 1;
        }
        for lane in [a, b, c] {
            *weight += lane.bytes;
            if let Some(known) = types.get_mut(lane.position as usize).filter(|_| lane.tag != NO_TAG) {
                known.learn_places(&lane);
            }
        }
        order.extend(noted.get(..count).unwrap_or_default());
        run.count += count as u64;
        run.position = base + at;
        stopped_by
    }

    /// The lane of the type at a position.
    fn lane(&self, position: u16) -> Lane {
        let known = self.types.get(usize::from(position));
        let entry = known.and_then(|known| self.entries.get(known.tag as usize));
        match known.zip(entry) {
            Some((known, &entry)) if entry.what == What::Note && entry.position == position => Lane::new(entry, known),
            // Should that stand in a trace all the same: no record is so long.
            _ => Lane { tag: NO_TAG, fixed: usize::MAX >> 1, ..Lane::default() },
        }
    }

    /// Nothing is noted that was not taken.
    pub(super) fn is_taken(&self) -> bool {
        self.types.iter().all(|known| known.count == 0)
    }

    /// Finds the types that came most often so far.
    pub(super) fn rank(&mut self) {
        let mut best = [(0, u16::MAX); 3];
        for (position, known) in (0..).zip(&self.types) {
            let least = best.iter_mut().min_by_key(|(total, _)| *total);
            if let Some(least) = least.filter(|(total, _)| known.total > *total) {
                *least = (known.total, position);
            }
        }
        best.sort_unstable_by_key(|&(total, _)| std::cmp::Reverse(total));
        self.common = best.map(|(_, position)| position);
    }
}

/// No tag of a record that is noted: tags from 256 on are not.
const NO_TAG: u32 = u32::MAX;

/// A type whose places are being noted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    pub(super) tag: u32,
    pub(super) position: u32,
    pub(super) fixed: usize,
    pub(super) length: usize,
    pub(super) mask: u64,
    /// Where the next place is noted.
    pub(super) next: usize,
    /// Of arrays at the end of those that were.
    pub(super) bytes: usize,
    /// Not 0: leaves take values from stream sections.
    strides: u64,
}

impl Lane {
    fn new(entry: Entry, known: &Type) -> Self {
        Self {
            tag: known.tag,
            position: entry.position.into(),
            fixed: entry.fixed as usize,
            length: entry.length as usize,
            mask: entry.mask.into(),
            next: known.first + known.count,
            bytes: 0,
            strides: entry.strides.into(),
        }
    }

    /// Notes the record at a place, and gives where the next is; none where it is too near to the end, or elements of streams are
    /// not at hand.
    #[inline(always)]
    fn note(
        &mut self,
        data: &[u8],
        end: usize,
        at: usize,
        starts: &mut [u32],
        rest: &mut (&mut [Type], &mut Streams),
    ) -> Option<usize> {
        let mut next = at + self.fixed;
        if next > end {
            return None;
        }
        let start = starts.get_mut(self.next)?;
        let length = u64::from_le_bytes(eight(data, at + self.length)?) & self.mask;
        if length | self.strides != 0 {
            let strides = (self.strides != 0).then_some(self.position);
            let length = pass_rest(length, end - next, strides, rest)?;
            self.bytes += length;
            next += length;
        }
        #[allow(clippy::cast_possible_truncation, reason = "places are counted in 32 bits")]
        {
            *start = at as u32;
        }
        self.next += 1;
        Some(next)
    }
}

/// Goes over what a record has besides: bytes at its end, of which there may be `most`, and elements of streams, if it is of a type
/// that takes some. Gives how many bytes there are.
#[inline(never)]
fn pass_rest(
    length: u64,
    most: usize,
    strides: Option<u32>,
    (types, streams): &mut (&mut [Type], &mut Streams),
) -> Option<usize> {
    let length = usize::try_from(length).ok().filter(|&length| length <= most)?;
    match strides {
        Some(position) if !types.get_mut(position as usize)?.take_elements(streams) => None,
        _ => Some(length),
    }
}
