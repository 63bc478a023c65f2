//! Records are decoded ahead of those that are given: what comes next without ado, up to some dozens.
//!
//! What they note for records behind them is undone, should the reader go on in another way before all are given.

use super::kind::{Kind, Way};
use super::lane::{Lane, row_of};
use super::spans::Span;
use super::view::What;
use super::{HEAD, Kinds};
use crate::container::Order;
use crate::decode::tag;
use crate::format::{Format, METADATA, Section};
use crate::state::{State, VIEWS};

/// How many records are decoded ahead at least, where so many come, and at most.
const FEW: usize = 16;
const MANY: usize = 128;

/// Of so many records of unusual types the last one's becomes usual.
const OFTEN: u32 = 1024;

/// No position of a record in a section.
const NONE: u16 = u16::MAX;

/// Records that were decoded ahead.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The row of each.
    pub(super) entries: Vec<u64>,
    /// Those of the records that are being decoded.
    noted: Vec<u64>,
    /// How many were given.
    pub(super) next: usize,
    /// Rows of all types: where the record begins in the part, what it is, and its numbers by place.
    pub(super) values: Vec<u64>,
    /// Where bytes lie that differ from record to record.
    pub(super) spans: Vec<Span>,
    /// Where the last ends.
    end: usize,
    /// The cells before the first, where some are noted in.
    cells: Vec<u64>,
    /// How many are decoded next, at most.
    limit: usize,
}

/// The types of records of a section.
#[derive(Debug, Default)]
pub(super) struct SectionKinds {
    /// The position of a record in the section by its tag, for tags under 256.
    by_tag: Vec<u16>,
    /// By position.
    pub(super) kinds: Vec<Kind>,
    /// Positions of some that come often. Their tags are compared, where others are looked up: a branch can be foreseen, so that the
    /// next record can be found before the tag of this one is there.
    usual: [u16; 3],
    /// How many records were of others.
    others: u32,
    /// Positions of others that were decoded ahead.
    met: Vec<u16>,
    /// The position of a type that has too few rows.
    crowded: Option<u16>,
    /// Some note values for records behind them.
    has_notes: bool,
}

impl Ahead {
    /// The row of the next record, which is given.
    #[inline(always)]
    pub(super) fn step(&mut self) -> Option<u64> {
        let entry = self.entries.get(self.next).copied()?;
        self.next += 1;
        Some(entry)
    }

    /// Where the last record that was given ends.
    pub(super) fn position(&self) -> usize {
        let next = self.entries.get(self.next).and_then(|&entry| self.values.get(row_of(entry).0));
        next.and_then(|&at| usize::try_from(at).ok()).unwrap_or(self.end)
    }

    /// Forgets what was not given.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.next = 0;
    }
}

impl Kinds {
    /// Decodes what comes next from a place in the part on. False where that is nothing that is decoded ahead. All that was decoded
    /// before has been [settled](Self::settle).
    #[inline(never)]
    pub(super) fn look_ahead(
        &mut self,
        format: &Format,
        data: &[u8],
        position: usize,
        state: &mut State,
        order: Order,
    ) -> bool {
        if state.tiers.has_changed(VIEWS) {
            self.refresh(format, state);
        }
        let Self { sections, section: index, ahead, .. } = self;
        let Some(section) = sections.get_mut(state.section).filter(|_| order == Order::Little) else { return false };
        *index = state.section;
        let width = usize::from(format.tag_width);
        let tag = tag(data, position, width, order);
        let first = tag.and_then(|tag| section.kinds.get(usize::from(section.position(tag, state))));
        if first.is_none_or(|kind| kind.way == Way::LeafByLeaf) {
            return false;
        }
        if section.has_notes {
            ahead.cells.clone_from(&state.cells);
        }
        ahead.spans.clear();
        ahead.next = 0;
        let limit = section.make_rows(ahead.limit.clamp(FEW, MANY), &mut ahead.values);
        // Put together slow: what is used again need not be cleared.
        ahead.noted.resize(MANY, 0);
        let (count, end) = match width {
            1 => section.pass::<1>(width, data, position, limit, state, ahead),
            _ => section.pass::<0>(width, data, position, limit, state, ahead),
        };
        ahead.entries.clear();
        ahead.entries.extend_from_slice(ahead.noted.get(..count).unwrap_or_default());
        ahead.end = end;
        if count == limit {
            ahead.limit = limit * 2;
        } else if count < limit / 4 {
            ahead.limit = limit / 2;
        }
        count > 0
    }

    /// Gives the place behind the last record that was given, and how many were. What others have noted is undone.
    pub(super) fn settle(&mut self, state: &mut State) -> (usize, usize) {
        let Self { sections, section, ahead, .. } = self;
        let (count, position) = (ahead.next, ahead.position());
        let Ahead { entries, values, cells, .. } = ahead;
        if count < entries.len() {
            if let Some(section) = sections.get(*section).filter(|section| section.has_notes) {
                state.cells.clone_from(cells);
                let given = entries.get(..count).unwrap_or_default();
                given.iter().for_each(|&entry| section.note_again(entry, values, &mut state.cells));
            }
            ahead.limit = count;
        }
        ahead.clear();
        (position, count)
    }

    /// Learns the plans of a section that have changed.
    #[inline(never)]
    fn refresh(&mut self, format: &Format, state: &mut State) {
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), SectionKinds::default);
        }
        let index = state.section;
        let (Some(kinds), Some(section)) = (self.sections.get_mut(index), format.sections.get(index)) else { return };
        if kinds.kinds.is_empty() {
            kinds.list(format, section);
            state.tiers.all_changed(VIEWS);
        }
        for position in state.tiers.take_changed(VIEWS) {
            kinds.learn(format, section, state, position);
        }
        kinds.has_notes = kinds.kinds.iter().any(|kind| !kind.notes.is_empty());
    }
}

impl SectionKinds {
    /// Takes the types of a section up.
    #[cold]
    fn list(&mut self, format: &Format, section: &Section) {
        self.by_tag = vec![NONE; 256];
        self.usual = [NONE; 3];
        for (position, &index) in (0..NONE).zip(section.records.iter()) {
            let Some(record) = format.records.get(usize::from(index)) else { return };
            self.kinds.push(Kind::new(record, index, position, format.tag_width));
            if let Some(slot) = self.by_tag.get_mut(record.tag as usize).filter(|_| index > METADATA) {
                *slot = position;
            }
        }
    }

    /// Learns the plans of the type at a position.
    fn learn(&mut self, format: &Format, section: &Section, state: &State, position: usize) {
        let index = section.records.get(position).copied().filter(|&index| index > METADATA);
        let record = index.and_then(|index| format.records.get(usize::from(index)));
        if let Some((kind, record)) = self.kinds.get_mut(position).zip(record) {
            kind.learn(record, state, state.plans_of(position));
        }
    }

    /// Sees to rows for so many records of usual types. Gives for how many there are some.
    fn make_rows(&mut self, limit: usize, values: &mut Vec<u64>) -> usize {
        if let Some(kind) = self.crowded.take().and_then(|position| self.kinds.get_mut(usize::from(position))) {
            let _ = kind.make_rows(kind.rows * 2, values);
        }
        let mut least = limit;
        for position in self.usual {
            let Some(kind) = self.kinds.get_mut(usize::from(position)) else { continue };
            if kind.rows < limit {
                let _ = kind.make_rows(limit, values);
                least = least.min(kind.rows);
            }
        }
        least
    }

    /// Decodes the records from a place on: `limit` of them, fewer where something else comes. Gives how many, and
    /// where the last ends. `WIDTH` is that of a tag, where the compiler is to know it.
    #[inline(never)]
    fn pass<const WIDTH: usize>(
        &mut self,
        width: usize,
        data: &[u8],
        mut at: usize,
        limit: usize,
        state: &mut State,
        ahead: &mut Ahead,
    ) -> (usize, usize) {
        let width = if WIDTH == 0 { width } else { WIDTH };
        // What follows a record may be loaded eight bytes at a time.
        let Some(end) = data.len().checked_sub(8) else { return (0, at) };
        let Ahead { noted, values, spans, .. } = ahead;
        let values = values.as_mut_slice();
        let usual = self.usual;
        let [mut a, mut b, mut c] = usual.map(|position| self.lane(position));
        let mut count = 0;
        for slot in noted.iter_mut().take(limit) {
            let Some(tag) = tag(data, at, width, Order::Little) else { break };
            let noted = if tag == a.tag {
                a.note(data, end, at, values)
            } else if tag == b.tag {
                b.note(data, end, at, values)
            } else if tag == c.tag {
                c.note(data, end, at, values)
            } else {
                self.other(tag, (data, end, at, width), values, spans, state)
            };
            let Some((entry, next)) = noted else { break };
            *slot = entry;
            at = next;
            count += 1;
        }
        for (position, lane) in usual.into_iter().zip([a, b, c]) {
            if let Some(kind) = self.kinds.get_mut(usize::from(position)).filter(|_| lane.is_some()) {
                kind.lane.entry = lane.entry;
                kind.decode_rows(data, values, &mut state.cells);
            }
        }
        for position in self.met.drain(..) {
            if let Some(kind) = self.kinds.get_mut(usize::from(position)) {
                kind.decode_rows(data, values, &mut state.cells);
            }
        }
        (count, at)
    }

    /// The lane of a usual type.
    fn lane(&self, position: u16) -> Lane {
        let kind = self.kinds.get(usize::from(position)).filter(|kind| kind.way == Way::Rows && kind.rows > 0);
        kind.map_or(Lane::NONE, |kind| kind.lane)
    }

    /// Decodes a record of another type.
    #[inline(never)]
    fn other(
        &mut self,
        tag: u32,
        (data, end, at, width): (&[u8], usize, usize, usize),
        values: &mut [u64],
        spans: &mut Vec<Span>,
        state: &mut State,
    ) -> Option<(u64, usize)> {
        let position = self.position(tag, state);
        let kind = self.kinds.get_mut(usize::from(position)).filter(|kind| kind.way != Way::LeafByLeaf)?;
        if kind.is_full() {
            self.crowded = Some(position);
            return None;
        }
        let is_first = kind.is_empty();
        let noted = match kind.way {
            Way::Rows => kind.lane.note(data, end, at, values)?,
            _ => kind.decode(data, at, width, values, spans, &mut state.cells)?,
        };
        if is_first {
            self.met.push(position);
        }
        self.others = self.others.wrapping_add(1);
        let turn = (self.others / OFTEN) as usize % self.usual.len();
        let free = self.usual.iter().position(|&usual| usual == NONE);
        let slot = free.or(self.others.is_multiple_of(OFTEN).then_some(turn));
        if kind.way == Way::Rows
            && !self.usual.contains(&position)
            && let Some(slot) = slot.and_then(|slot| self.usual.get_mut(slot))
        {
            *slot = position;
        }
        Some(noted)
    }

    /// The position of the data record with this tag; one where there is none.
    #[inline(always)]
    fn position(&self, tag: u32, state: &State) -> u16 {
        match self.by_tag.get(tag as usize) {
            Some(&position) => position,
            None => state.listed(tag).filter(|listed| listed.record > METADATA).map_or(NONE, |l| l.position),
        }
    }

    /// Notes the values of a record that was decoded before.
    fn note_again(&self, entry: u64, values: &[u64], cells: &mut [u64]) {
        let (first, length) = row_of(entry);
        let Some([_, what, numbers @ ..]) = values.get(first..first + HEAD + length) else { return };
        let kind = self.kinds.get(usize::from(What(*what).position()));
        for &(leaf, cell) in kind.map_or(&[][..], |kind| &kind.notes) {
            if let (Some(cell), Some(&number)) = (cells.get_mut(cell as usize), numbers.get(usize::from(leaf))) {
                *cell = number;
            }
        }
    }
}
