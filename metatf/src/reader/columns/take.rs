//! Taking the leaves of the records whose places are known.
//!
//! A leaf is taken in one way until a metadata record changes it, which need not end what is noted: for each leaf it is
//! known from which of the noted records on it is taken in which way.

use super::News;
use super::note::{Entry, Lane, What};
use crate::columns::{ArrayColumn, Column, NumberColumn, RecordColumns};
use crate::format::{Floor, Format, LeafKind, Record, floor};
use crate::formula::{HISTORY, LAST, PREVIOUS, Plan, SPECIAL, STRIDED, eight, plain};
use crate::state::State;
use crate::streams::Streams;

/// The records of one type in a section.
#[derive(Debug, Default)]
pub(super) struct Type {
    /// By leaf, where leaves are taken for many records at once.
    leaves: Vec<Leaf>,
    /// By leaf: what it can be at best.
    floors: Vec<Floor>,
    /// By leaf: how it is taken from now on, and how many bytes of the record are before it.
    takes: Vec<(Take, u32)>,
    /// What is known of the tag.
    entry: Entry,
    /// A leaf goes by the one before it.
    history: bool,
    pub(super) tag: u32,
    tag_width: u32,
    /// Where its places begin in the section's, and how many of them there are.
    pub(super) first: usize,
    pub(super) count: usize,
    /// One of these has bytes at its end.
    bytes: bool,
    /// How many there were so far.
    pub(super) total: u64,
}

/// How a leaf is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Take {
    /// The same number.
    Number(u64),
    /// From so many bytes on, by this plan.
    Stored(u32, Plan),
    /// Bytes of this length.
    Array(u32, u32),
    /// The bytes at the end: where they begin; where the length is, and its mask.
    Rest(u32, u32, u32),
    /// The next element of a stream section each, by the slot of its cursor.
    Element(u64),
    /// The tag, or the length of what follows.
    Implied,
}

impl Take {
    /// The cell of the previous value, where that is added.
    fn cell(&self) -> Option<usize> {
        match self {
            Self::Stored(_, plan) if plan.history != 0 => Some(plan.write as usize),
            _ => None,
        }
    }
}

/// How a leaf is taken, one way after the other: at least one.
#[derive(Debug, Default)]
struct Leaf {
    ways: Vec<Way>,
    /// The elements of streams that were taken for noted records.
    elements: Vec<u64>,
}

/// One of them.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// From which of the noted records on.
    from: usize,
    take: Take,
    /// The previous value there, where it is not what it was before, or in the cell.
    previous: Option<u64>,
}

impl Type {
    pub(super) fn new(format: &Format, position: usize, record: u16) -> Self {
        let record = format.records.get(usize::from(record));
        let floors = |record: &Record| (0..record.leaves.len()).map(|leaf| floor(record, leaf)).collect();
        Self {
            first: usize::MAX,
            tag: record.map_or(0, |record| record.tag),
            tag_width: format.tag_width.into(),
            entry: Entry { position: u16::try_from(position).unwrap_or(u16::MAX), ..Entry::default() },
            floors: record.map(floors).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// Learns how leaves are taken by the plans in force. Where records can no longer be noted, those that were have to be
    /// taken then.
    pub(super) fn learn(&mut self, record: &Record, state: &State, plans: usize, news: News<'_>) -> Entry {
        let from = news.first();
        let is_known = self.entry.what == What::Note && from <= self.rest();
        let from = if is_known { from } else { 0 };
        self.takes.resize(self.floors.len(), (Take::Implied, 0));
        self.leaves.resize_with(self.floors.len(), Leaf::default);
        self.history &= from > 0;
        self.entry =
            self.learn_takes(record, state, plans, from, news).unwrap_or(Entry { what: What::Read, ..self.entry });
        self.entry
    }

    /// How the leaves are taken from one on. None where records cannot be noted.
    fn learn_takes(
        &mut self,
        record: &Record,
        state: &State,
        plans: usize,
        from: usize,
        news: News<'_>,
    ) -> Option<Entry> {
        let start = self.takes.get(from).filter(|_| from > 0).map_or(self.tag_width, |&(_, start)| start);
        let strides = self.takes.iter().take(from).any(|(take, _)| matches!(take, Take::Element(_)));
        let mut entry = Entry { what: What::Note, fixed: start, length: 0, mask: 0, strides, ..self.entry };
        let leaves = self.floors.iter().zip(&mut self.takes).zip(&mut self.leaves);
        for (leaf, ((&floor, slot), ways)) in (0..=u8::MAX).zip(leaves).skip(from) {
            let start = entry.fixed;
            if from > 0 && !news.is_changed(leaf) {
                match slot.0 {
                    Take::Number(_) | Take::Implied => {
                        slot.1 = start;
                        continue;
                    }
                    Take::Stored(at, plan) if at == start => {
                        entry.fixed += u32::from(plan.width);
                        continue;
                    }
                    _ => {}
                }
            }
            let index = plans + usize::from(leaf);
            let plan = state.plan(index)?;
            // Nothing stands behind a byte array whose length is not known before.
            let is_last = entry.mask == 0;
            let take = match floor {
                Floor::General => return None,
                Floor::Fixed(value) if plan.flags == 0 && plan.mask == 0 && plan.base == value => Take::Number(value),
                Floor::Array(length) if is_last && length < 1 << 16 => {
                    entry.fixed += length;
                    Take::Array(start, length)
                }
                Floor::Counted if is_last => match state.plan(index - 1) {
                    Some(length)
                        if length.width <= 4 && length.flags & !LAST == 0 && length.sign | length.base == 0 =>
                    {
                        entry.length = start - u32::from(length.width);
                        entry.mask = u32::try_from(length.mask).unwrap_or(0);
                        Take::Rest(start, entry.length, entry.mask)
                    }
                    _ => return None,
                },
                Floor::Fixed(_) | Floor::Stored if plan.flags & !LAST == SPECIAL | STRIDED => {
                    entry.strides = true;
                    Take::Element(plan.base)
                }
                Floor::Fixed(_) | Floor::Stored if plan.flags & !(LAST | HISTORY | PREVIOUS) == 0 => {
                    let alone =
                        plan.flags & (HISTORY | PREVIOUS) == 0 || plan.read == plan.write && state.is_alone(index);
                    if !alone || !is_last && plan.width > 0 {
                        return None;
                    }
                    match record.leaves.get(usize::from(leaf)).map(|leaf| &leaf.kind) {
                        // Counted already.
                        Some(LeafKind::Tag) => Take::Implied,
                        _ if plan.mask == 0 && plan.history == 0 => Take::Number(plan.base),
                        _ => {
                            entry.fixed += u32::from(plan.width);
                            Take::Stored(start, *plan)
                        }
                    }
                }
                _ => return None,
            };
            let cell = take.cell();
            self.history |= cell.is_some();
            let cell = cell.filter(|_| self.count > 0 && news.is_set(leaf));
            ways.goes_on(self.count, take, cell.and_then(|cell| state.cells.get(cell)).copied());
            *slot = (take, start);
        }
        Some(entry)
    }

    /// The leaf that is a byte array at the end of unknown length.
    fn rest(&self) -> usize {
        let is_rest = |(take, _): &(Take, u32)| matches!(take, Take::Rest(_, _, mask) if *mask > 0);
        self.takes.iter().position(is_rest).unwrap_or(usize::MAX)
    }

    /// Keeps the previous values that noted records begin with, as metadata may give others.
    pub(super) fn keep_previous(&mut self, state: &State) {
        if self.count == 0 || !self.history {
            return;
        }
        for way in self.leaves.iter_mut().filter_map(|leaf| leaf.ways.first_mut()) {
            if let Some(cell) = way.take.cell()
                && way.previous.is_none()
            {
                way.previous = state.cells.get(cell).copied();
            }
        }
    }

    /// Takes elements of streams for the leaves of one record that has such. False where one is not at hand; then none is taken.
    pub(super) fn take_elements(&mut self, streams: &mut Streams) -> bool {
        for (index, &(take, _)) in self.takes.iter().enumerate() {
            let Take::Element(slot) = take else { continue };
            let Some(value) = streams.ready(slot) else {
                self.give_back(index, streams);
                return false;
            };
            if let Some(leaf) = self.leaves.get_mut(index) {
                leaf.elements.push(value);
            }
        }
        true
    }

    /// Gives back what the leaves before one took for a record.
    #[cold]
    fn give_back(&mut self, index: usize, streams: &mut Streams) {
        for (&(take, _), leaf) in self.takes.iter().zip(&mut self.leaves).take(index) {
            if let Take::Element(slot) = take {
                leaf.elements.pop();
                streams.give_back(slot);
            }
        }
    }

    pub(super) fn learn_places(&mut self, lane: &Lane) {
        let count = lane.next - self.first;
        self.total += (count - self.count) as u64;
        self.count = count;
        self.bytes |= lane.bytes > 0;
    }

    /// Takes the leaves of the records that were noted.
    pub(super) fn take(
        &mut self,
        starts: &[u32],
        data: &[u8],
        base: usize,
        state: &mut State,
        columns: &mut RecordColumns,
    ) {
        let count = std::mem::take(&mut self.count);
        if count == 0 {
            return;
        }
        let starts = starts.get(self.first..self.first + count).unwrap_or_default();
        let data = data.get(base..).unwrap_or_default();
        for (index, leaf) in self.leaves.iter_mut().enumerate() {
            if let Some(column) = columns.leaf(index) {
                leaf.take(starts, data, self.bytes, state, column);
            }
        }
        columns.add(count);
        self.bytes = false;
    }
}

impl Leaf {
    /// From the noted record `from` on it is taken in this way.
    fn goes_on(&mut self, from: usize, take: Take, previous: Option<u64>) {
        match self.ways.last_mut() {
            Some(last) if last.from == from => {
                *last = Way { from, take, previous: previous.or(last.previous.filter(|_| from > 0)) };
            }
            Some(last) if last.take == take && previous.is_none() => {}
            _ => self.ways.push(Way { from, take, previous }),
        }
    }

    /// Takes it of the records that begin at these places.
    fn take(&mut self, starts: &[u32], data: &[u8], bytes: bool, state: &mut State, column: &mut Column) {
        let (mut last, mut elements) = (None, &*self.elements);
        for (index, way) in self.ways.iter().enumerate() {
            let end = self.ways.get(index + 1).map_or(starts.len(), |next| next.from);
            let starts = starts.get(way.from..end).unwrap_or_default();
            match (way.take, &mut *column) {
                (Take::Number(value), Column::Numbers(column)) => column.extend_uniform(value, starts.len()),
                (Take::Element(_), Column::Numbers(column)) => {
                    let (here, behind) = elements.split_at_checked(starts.len()).unwrap_or_default();
                    column.extend(here.iter().copied());
                    elements = behind;
                }
                (Take::Stored(at, plan), Column::Numbers(column)) => {
                    let data = data.get(at as usize..).unwrap_or_default();
                    match way.take.cell() {
                        None => column.extend(starts.iter().map(|&start| stored(data, start, &plan))),
                        Some(cell) => {
                            let before = way.previous.or(last).or(state.cells.get(cell).copied()).unwrap_or(0);
                            last = Some(differences(data, starts, &plan, before, column));
                        }
                    }
                }
                (Take::Array(at, length), Column::Arrays(column)) => {
                    starts.iter().for_each(|&start| column.push(array(data, start, at, length)));
                }
                (Take::Rest(..), Column::Arrays(column)) if !bytes => column.extend_empty(starts.len()),
                (Take::Rest(at, length, mask), Column::Arrays(column)) => {
                    rest(data, starts, (at, length, mask), column)
                }
                _ => {}
            }
        }
        self.elements.clear();
        // What comes next begins where this ends.
        if let Some(way) = self.ways.last().copied() {
            if let (Some(last), Some(cell)) = (last, way.take.cell().and_then(|cell| state.cells.get_mut(cell))) {
                *cell = last;
            }
            self.ways.clear();
            self.ways.push(Way { from: 0, previous: None, ..way });
        }
    }
}

/// A number by the formula without history.
#[inline(always)]
fn stored(data: &[u8], start: u32, plan: &Plan) -> u64 {
    plain(eight(data, start as usize).map_or(0, u64::from_le_bytes) & plan.mask, plan)
}

/// Numbers that are added to the one before; gives the last.
fn differences(data: &[u8], starts: &[u32], plan: &Plan, mut last: u64, column: &mut NumberColumn) -> u64 {
    column.extend(starts.iter().map(|&start| {
        last = last.wrapping_add(stored(data, start, plan));
        last
    }));
    last
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
