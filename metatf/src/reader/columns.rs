//! Filling columns.
//!
//! Where records lie is found first, by their tags and the lengths that follow from the plans; then the leaves are taken, type by
//! type and leaf by leaf, each in a loop that has but one plan. Records whose leaves depend on others are read one by one.

use super::run::{Run, tag};
use super::{Event, RecordReader};
use crate::columns::{ArrayColumn, Column, Columns, NumberColumn, RECORDS, RecordColumns};
use crate::container::Order;
use crate::error::{Error, Result};
use crate::format::{Format, LeafKind, METADATA, Record};
use crate::grade::{Floor, bit, floor};
use crate::row::plain;
use crate::row_shaped::eight;
use crate::state::{HISTORY, LAST, PREVIOUS, Plan, State};

/// Places in a part are noted in 32 bits, from a base on.
const REACH: usize = 1 << 31;

/// What is known of the records of all sections, and those that were found and not yet taken.
#[derive(Debug, Default)]
pub(super) struct Filler {
    sections: Vec<Section>,
    /// Places are counted from here.
    base: usize,
}

#[derive(Debug, Default)]
struct Section {
    /// By tag, for tags under 256.
    entries: Vec<Entry>,
    /// By position.
    types: Vec<Type>,
    /// Positions of those that come most often.
    common: [u16; 3],
    /// Where records begin, from the base on: room for [`RECORDS`] of each type that was noted ever.
    starts: Vec<u32>,
}

/// What to do about a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Of the record in its section.
    position: u16,
    what: What,
    /// Bytes of a record but for a byte array at its end.
    fixed: u32,
    /// Where the length of that byte array is, and the mask to read it by; 0 where there is none.
    length: u32,
    mask: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum What {
    /// Nothing that columns take.
    #[default]
    Other,
    /// Its place is noted.
    Note,
    /// It is read by itself.
    Read,
}

/// The records of one type in a section.
#[derive(Debug, Default)]
struct Type {
    /// How its leaves are taken, where that can be done for many records at once.
    leaves: Vec<Take>,
    /// A leaf goes by the one before it.
    history: bool,
    tag: u32,
    /// Where its places begin in the section's, and how many of them there are.
    first: usize,
    count: usize,
    /// One of these has bytes at its end.
    bytes: bool,
    /// How many there were so far.
    total: u64,
}

/// How a leaf is taken.
#[derive(Clone, Copy, Debug)]
enum Take {
    /// The same number.
    Number(u64),
    /// From so many bytes on, by this plan.
    Stored(u32, Plan),
    /// Bytes of this length.
    Array(u32, u32),
    /// The bytes at the end: where they begin; where the length is, and its mask.
    Rest(u32, u32, u32),
    /// The tag, or the length of what follows.
    Implied,
}

/// Why there are no more records to note.
enum End {
    /// The columns are full.
    Full,
    /// Metadata comes next.
    Metadata,
    /// Something else.
    Other,
}

impl RecordReader<'_> {
    /// Fills columns with the data records that come next: at most [`RECORDS`], fewer where a record is
    /// very large, an error follows, or the trace ends. False where none is left. Records read one by one and by
    /// columns may alternate.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace, once the records before it were given.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        columns.begin(&self.format, self.records);
        let mut filler = self.filler.take().unwrap_or_default();
        let result = self.fill(columns, &mut filler);
        self.filler = Some(filler);
        match result {
            Ok(()) => Ok(!columns.is_empty()),
            Err(error) if columns.is_empty() => Err(error),
            Err(error) => {
                self.hold(error);
                Ok(true)
            }
        }
    }

    /// An error that is told next, after which nothing comes.
    pub(crate) fn hold(&mut self, error: Error) {
        self.finished = true;
        self.held = Some(error);
    }

    fn fill(&mut self, columns: &mut Columns, filler: &mut Filler) -> Result<()> {
        while columns.room() > 0 {
            match self.note(columns, filler)? {
                End::Full => continue,
                // What was noted can wait: the plans it is taken by are copies.
                End::Metadata => {}
                End::Other => self.take_noted(columns, filler),
            }
            match self.next_event() {
                Ok(Some(Event::Record(at))) => self.add(columns, at.section, at.record)?,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    self.take_noted(columns, filler);
                    return Err(error);
                }
            }
        }
        self.take_noted(columns, filler);
        Ok(())
    }

    /// A record that was announced.
    fn add(&mut self, columns: &mut Columns, section: usize, record: u16) -> Result<()> {
        let listed = self.format.sections.get(section).map(|s| &s.records);
        let position = listed.and_then(|records| records.iter().position(|&r| r == record)).unwrap_or(usize::MAX);
        let format = self.format.clone();
        self.decode(|row| Ok(columns.push(&format, section, position, row)?))
    }

    /// Notes the records that come next.
    fn note(&mut self, columns: &mut Columns, filler: &mut Filler) -> Result<End> {
        if self.finished || self.pending.is_some() || self.found.is_some() || !self.queue.is_empty() {
            return Ok(End::Other);
        }
        let Some((mut run, end)) = self.start_run() else { return Ok(End::Other) };
        if run.order == Order::Big {
            return Ok(End::Other);
        }
        let why = filler.note(end.section(), &mut run, columns);
        let (position, count) = (run.position, run.count);
        end.tell(position, count, why.is_err());
        match why {
            Ok(why) => Ok(why),
            Err(()) => {
                self.take_noted(columns, filler);
                self.stopped().map_or(Ok(End::Other), Err)
            }
        }
    }

    /// Takes what was noted of the part in hand.
    fn take_noted(&mut self, columns: &mut Columns, filler: &mut Filler) {
        let Some(current) = &self.current else { return };
        let data = self.container.bytes(&current.content);
        if let Some(state) = self.states.get_mut(current.section) {
            filler.take(current.section, data, state, columns);
        }
    }
}

impl Filler {
    /// Notes the records that come next, or reads them. Where one cannot be read, the run's row knows why.
    fn note(&mut self, index: usize, run: &mut Run<'_>, columns: &mut Columns) -> Result<End, ()> {
        self.refresh(index, run, columns);
        let Self { sections, base } = self;
        let (Some(section), format) = (sections.get_mut(index), run.format) else { return Ok(End::Other) };
        let width = usize::from(format.tag_width);
        if section.types.iter().all(|t| t.count == 0) {
            *base = run.position;
        }
        loop {
            let room = columns.room();
            if room == 0 {
                return Ok(End::Full);
            }
            let entry = section.pass(run, *base, width, room, columns.split(index));
            match entry.map_or(What::Other, |entry| entry.what) {
                What::Note => {}
                What::Read => {
                    let position = entry.map_or(0, |entry| entry.position.into());
                    let record = format.sections.get(index).and_then(|s| s.records.get(position)).copied().ok_or(())?;
                    let first = run.state.plans_of(position);
                    let mut row = run.row(record, first, run.position + width).ok_or(())?;
                    let pushed = columns.push(format, index, position, &mut row);
                    run.position = row.position;
                    run.count += 1;
                    pushed.map_err(|_| ())?;
                }
                What::Other => {
                    let tag = tag(run.data, run.position, width, Order::Little);
                    let listed = tag.and_then(|tag| run.state.listed(tag));
                    // Where leaves go by those before them, metadata may set what they go by.
                    let waits = section.types.iter().all(|t| !t.history || t.count == 0);
                    let metadata = listed.is_some_and(|listed| listed.record == METADATA);
                    return Ok(if metadata && waits { End::Metadata } else { End::Other });
                }
            }
        }
    }

    /// Learns the plans that have changed, once what was noted by the old ones is taken.
    fn refresh(&mut self, index: usize, run: &mut Run<'_>, columns: &mut Columns) {
        let format = run.format;
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), Section::default);
        }
        let (Some(section), Some(listed)) = (self.sections.get_mut(index), format.sections.get(index)) else { return };
        let mut changed = run.state.grades.take_changed();
        if section.types.is_empty() {
            section.entries = vec![Entry::default(); 256];
            section.types.resize_with(listed.records.len(), || Type { first: usize::MAX, ..Type::default() });
            changed = u64::MAX;
        }
        if changed == 0 {
            return;
        }
        let (first, records, ..) = columns.split(index);
        for (position, &record) in listed.records.iter().enumerate() {
            let is_changed = position >= 64 && changed == u64::MAX || changed & bit(position) != 0;
            let found = section.types.get_mut(position).zip(format.records.get(usize::from(record)));
            let Some((known, record)) = found.filter(|_| is_changed && listed.records.get(position) > Some(&METADATA))
            else {
                continue;
            };
            if let Some(columns) = records.get_mut(first + position) {
                known.take(&section.starts, run.data, self.base, run.state, columns);
            }
            let entry = known.learn(format, record, run.state, position);
            if entry.what == What::Note && known.first == usize::MAX {
                known.first = section.starts.len();
                section.starts.resize(known.first + RECORDS, 0);
            }
            if let Some(slot) = section.entries.get_mut(record.tag as usize) {
                *slot = entry;
            }
        }
    }

    fn take(&mut self, index: usize, data: &[u8], state: &mut State, columns: &mut Columns) {
        let Some(section) = self.sections.get_mut(index) else { return };
        let (first, records, ..) = columns.split(index);
        for (known, columns) in section.types.iter_mut().zip(records.get_mut(first..).unwrap_or_default()) {
            known.take(&section.starts, data, self.base, state, columns);
        }
        section.rank();
    }
}

impl Section {
    /// Notes records up to one that cannot be noted, and gives what is known of that; none where the part ends, or nearly.
    #[inline(never)]
    fn pass(
        &mut self,
        run: &mut Run<'_>,
        base: usize,
        width: usize,
        room: usize,
        (first, _, order, weight): (usize, &mut [RecordColumns], &mut Vec<u32>, &mut usize),
    ) -> Option<Entry> {
        let data = run.data.get(base..run.data.len().min(base.saturating_add(REACH)))?;
        // What follows a record may be loaded eight bytes at a time.
        let end = data.len().checked_sub(8)?;
        let begin = order.len();
        order.reserve(room);
        let first = u32::try_from(first).ok()?;
        let mut at = run.position - base;
        let mut stopped_by = None;
        // The three types that come most often are told by comparisons, which the processor foresees; to look others up takes
        // as long as all the rest.
        let [mut a, mut b, mut c] = self.common.map(|position| self.lane(position));
        let starts = &mut *self.starts;
        while order.len() - begin < room {
            let Some(tag) = tag(data, at, width, Order::Little) else { break };
            let (noted, position) = if tag == a.tag {
                (a.note(data, end, &mut at, starts), a.position)
            } else if tag == b.tag {
                (b.note(data, end, &mut at, starts), b.position)
            } else if tag == c.tag {
                (c.note(data, end, &mut at, starts), c.position)
            } else {
                let entry = self.entries.get(tag as usize).copied();
                let known = entry.and_then(|entry| self.types.get_mut(usize::from(entry.position)));
                let Some((entry, known)) = entry.zip(known).filter(|(entry, _)| entry.what == What::Note) else {
                    stopped_by = entry;
                    break;
                };
                let mut lane = Lane::new(entry, known);
                let noted = lane.note(data, end, &mut at, starts);
                known.learn_places(&lane);
                *weight += lane.bytes;
                (noted, lane.position)
            };
            if !noted {
                break;
            }
            order.push(first + position);
        }
        for lane in [a, b, c] {
            *weight += lane.bytes;
            if let Some(known) = self.types.get_mut(lane.position as usize).filter(|_| lane.tag != NO_TAG) {
                known.learn_places(&lane);
            }
        }
        run.count += (order.len() - begin) as u64;
        run.position = base + at;
        stopped_by
    }

    /// The lane of the type at a position.
    fn lane(&self, position: u16) -> Lane {
        let known = self.types.get(usize::from(position));
        let entry = known.and_then(|known| self.entries.get(known.tag as usize));
        match known.zip(entry) {
            Some((known, &entry)) if entry.what == What::Note && entry.position == position => Lane::new(entry, known),
            _ => Lane { tag: NO_TAG, ..Lane::default() },
        }
    }

    /// Finds the types that came most often so far.
    fn rank(&mut self) {
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
struct Lane {
    tag: u32,
    position: u32,
    fixed: usize,
    length: usize,
    mask: u64,
    /// Where the next place is noted.
    next: usize,
    /// Of arrays at the end of those that were.
    bytes: usize,
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
        }
    }

    /// Notes the record at a place. False where it is too near to the end.
    #[inline(always)]
    fn note(&mut self, data: &[u8], end: usize, at: &mut usize, starts: &mut [u32]) -> bool {
        let next = *at + self.fixed;
        let (Some(eight), Some(start)) = (eight(data, *at + self.length), starts.get_mut(self.next)) else {
            return false;
        };
        if next > end {
            return false;
        }
        let more = usize::try_from(u64::from_le_bytes(eight) & self.mask).unwrap_or(usize::MAX);
        if more > 0 {
            if more > end - next {
                return false;
            }
            self.bytes += more;
        }
        #[allow(clippy::cast_possible_truncation, reason = "places are counted in 32 bits")]
        {
            *start = *at as u32;
        }
        self.next += 1;
        *at = next + more;
        true
    }
}

impl Type {
    /// Learns how the leaves are taken by the plans in force.
    fn learn(&mut self, format: &Format, record: &Record, state: &State, position: usize) -> Entry {
        let position_16 = u16::try_from(position).unwrap_or(u16::MAX);
        self.history = false;
        self.tag = record.tag;
        self.leaves.clear();
        let read = Entry { position: position_16, what: What::Read, ..Entry::default() };
        let first = state.plans_of(position);
        let mut entry = Entry { what: What::Note, fixed: format.tag_width.into(), ..read };
        for leaf in 0..record.leaves.len() {
            let Some(plan) = state.plan(first + leaf).copied() else { return read };
            // Nothing stands behind a byte array whose length is not known before.
            let is_last = entry.mask == 0;
            let take = match floor(record, leaf) {
                Floor::General => return read,
                Floor::Fixed(value) if plan.flags == 0 && plan.mask == 0 && plan.base == value => Take::Number(value),
                Floor::Array(length) if is_last && length < 1 << 16 => {
                    entry.fixed += length;
                    Take::Array(entry.fixed - length, length)
                }
                Floor::Counted if is_last => match state.plan(first + leaf - 1) {
                    Some(length)
                        if length.width <= 4 && length.flags & !LAST == 0 && length.sign | length.base == 0 =>
                    {
                        entry.length = entry.fixed - u32::from(length.width);
                        entry.mask = u32::try_from(length.mask).unwrap_or(0);
                        Take::Rest(entry.fixed, entry.length, entry.mask)
                    }
                    _ => return read,
                },
                Floor::Fixed(_) | Floor::Stored if plan.flags & !(LAST | HISTORY | PREVIOUS) == 0 => {
                    let alone = plan.flags & (HISTORY | PREVIOUS) == 0
                        || plan.read == plan.write && state.is_alone(first + leaf);
                    if !alone || !is_last && plan.width > 0 {
                        return read;
                    }
                    self.history |= plan.history != 0;
                    entry.fixed += u32::from(plan.width);
                    match &record.leaves.get(leaf).map(|leaf| &leaf.kind) {
                        // The tag was counted already.
                        Some(LeafKind::Tag) => {
                            entry.fixed -= u32::from(plan.width);
                            Take::Implied
                        }
                        _ if plan.mask == 0 && plan.history == 0 => Take::Number(plan.base),
                        _ => Take::Stored(entry.fixed - u32::from(plan.width), plan),
                    }
                }
                _ => return read,
            };
            self.leaves.push(take);
        }
        entry
    }

    fn learn_places(&mut self, lane: &Lane) {
        let count = lane.next - self.first;
        self.total += (count - self.count) as u64;
        self.count = count;
        self.bytes |= lane.bytes > 0;
    }

    /// Takes the leaves of the records that were noted.
    fn take(&mut self, starts: &[u32], data: &[u8], base: usize, state: &mut State, columns: &mut RecordColumns) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        let starts = starts.get(self.first..self.first + count).unwrap_or_default();
        let data = data.get(base..).unwrap_or_default();
        for (leaf, take) in self.leaves.iter().enumerate() {
            match (take, columns.leaf(leaf)) {
                (Take::Number(value), Some(Column::Numbers(column))) => column.extend_uniform(*value, count),
                (Take::Stored(at, plan), Some(Column::Numbers(column))) => {
                    stored(data.get(*at as usize..).unwrap_or_default(), starts, plan, state, column);
                }
                (Take::Array(at, length), Some(Column::Arrays(column))) => {
                    starts.iter().for_each(|&start| column.push(array(data, start, *at, *length)));
                }
                (Take::Rest(..), Some(Column::Arrays(column))) if !self.bytes => column.extend_empty(count),
                (Take::Rest(at, length, mask), Some(Column::Arrays(column))) => {
                    rest(data, starts, (*at, *length, *mask), column)
                }
                _ => {}
            }
        }
        columns.add(count);
        self.bytes = false;
    }
}

/// A numeric leaf of many records.
fn stored(data: &[u8], starts: &[u32], plan: &Plan, state: &mut State, column: &mut NumberColumn) {
    let raw = |&start: &u32| {
        let eight = eight(data, start as usize);
        plain(eight.map_or(0, u64::from_le_bytes) & plan.mask, plan)
    };
    if plan.history == 0 {
        column.extend(starts.iter().map(raw));
        return;
    }
    let Some(previous) = state.cells.get_mut(plan.write as usize) else { return };
    let mut last = *previous;
    column.extend(starts.iter().map(|start| {
        last = last.wrapping_add(raw(start));
        last
    }));
    *previous = last;
}

/// The byte arrays at the end of many records.
fn rest(data: &[u8], starts: &[u32], (at, length, mask): (u32, u32, u32), column: &mut ArrayColumn) {
    for &start in starts {
        let length = four(data, start as usize + length as usize) & mask;
        column.push(array(data, start, at, length));
    }
}

fn array(data: &[u8], start: u32, at: u32, length: u32) -> &[u8] {
    let at = start as usize + at as usize;
    data.get(at..at + length as usize).unwrap_or_default()
}

/// The four bytes at a place, at least that many before the end of the data.
#[inline(always)]
fn four(data: &[u8], at: usize) -> u32 {
    data.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |&four| u32::from_le_bytes(four))
}
