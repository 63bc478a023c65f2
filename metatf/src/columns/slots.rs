//! Where the values of a section's records go, when the program knows the records: a place for each leaf, by its plan.

use super::{ArrayColumn, Column, Columns, RECORDS, RecordColumns};
use std::cell::Cell;

/// The columns of a section's records, by plan. A record is put in leaf by leaf, and is there when it is [done](Self::done).
pub(crate) struct Slots<'c, const PLANS: usize> {
    numbers: [Option<&'c [Cell<u64>; RECORDS]>; PLANS],
    arrays: [Option<&'c mut ArrayColumn>; PLANS],
    /// By the first plan of a type: how many records of it there are.
    counts: [usize; PLANS],
    /// By position: types that are taken, as there were some before.
    taken: u64,
    /// By position: types with values that by the DTD are always the same, and may not be.
    changed: u64,
    order: &'c [Cell<u32>; RECORDS],
    /// Where the section's types begin in `order`'s count of them.
    first: u32,
    /// What the run counts when the first record comes, and when there is no more room.
    start: u64,
    end: u64,
    /// Of the byte arrays that were put in.
    bytes: usize,
}

/// What was put in.
pub(crate) struct Filled<const PLANS: usize> {
    counts: [usize; PLANS],
    changed: u64,
    records: usize,
    bytes: usize,
}

impl<'c, const PLANS: usize> Slots<'c, PLANS> {
    /// Places for the records of a section, of which `count` were read before. None where it has another number of plans.
    pub(crate) fn new(columns: &'c mut Columns, section: usize, changed: u64, count: u64) -> Option<Self> {
        let (room, records) = (columns.room() as u64, columns.len() as u64);
        let first = *columns.sections.get(section)?;
        let mut slots = Self {
            numbers: [None; PLANS],
            arrays: [const { None }; PLANS],
            counts: [0; PLANS],
            taken: 0,
            changed,
            order: columns.order.cells()?,
            first: u32::try_from(first).ok()?,
            start: count.wrapping_sub(records),
            end: count + room,
            bytes: 0,
        };
        let records = columns.records.get_mut(first..)?.iter_mut().take_while(|records| records.section == section);
        for (position, records) in records.enumerate().take(64).filter(|(_, records)| records.is_taken()) {
            slots.add(position, records)?;
        }
        Some(slots)
    }

    /// Places for the leaves of a type.
    fn add(&mut self, position: usize, records: &'c mut RecordColumns) -> Option<()> {
        self.taken |= 1 << position;
        *self.counts.get_mut(records.plan)? = records.count;
        let with_fixed = self.changed & 1 << position != 0;
        for (plan, leaf) in (records.plan..).zip(&mut records.leaves) {
            match leaf {
                Column::Numbers(column) if with_fixed || column.fixed().is_none() => {
                    *self.numbers.get_mut(plan)? = column.cells();
                }
                Column::Arrays(column) => *self.arrays.get_mut(plan)? = Some(column),
                Column::Numbers(_) | Column::Empty => {}
            }
        }
        Some(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_room(&self, count: u64) -> bool {
        count < self.end
    }

    /// Whether records of the type at a position are taken.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn takes(&self, position: u64) -> bool {
        self.taken & position != 0
    }

    /// The number of the next record of the type whose first plan this is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next(&self, first: usize) -> usize {
        self.counts.get(first).copied().unwrap_or(0)
    }

    /// The value of a leaf, by its plan, of record `at` of its type.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put(&self, plan: usize, at: usize, value: u64) {
        if let Some(Some(column)) = self.numbers.get(plan) {
            // There are never that many, which the compiler cannot know.
            if let Some(slot) = column.get(at % RECORDS) {
                slot.set(value);
            }
        }
    }

    /// Puts in the bytes of a leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put_bytes(&mut self, plan: usize, at: usize, bytes: &[u8]) {
        if let Some(Some(column)) = self.arrays.get_mut(plan)
            && !bytes.is_empty()
        {
            self.bytes += column.put(at, bytes);
            if self.bytes > super::WEIGHT {
                self.end = 0;
            }
        }
    }

    /// The record is there, of the type at a position, whose first plan this is, and of which it is record `at`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn done(&mut self, position: usize, first: usize, at: usize, count: u64) {
        if let Some(count) = self.counts.get_mut(first) {
            *count = at + 1;
        }
        #[allow(clippy::cast_possible_truncation, reason = "under 64, and under 4096")]
        let (position, record) = (position as u32, count.wrapping_sub(self.start) as usize);
        if let Some(slot) = self.order.get(record % RECORDS) {
            slot.set(self.first + position);
        }
    }

    /// What was put in until the run has read this many records.
    pub(crate) fn filled(self, count: u64) -> Filled<PLANS> {
        #[allow(clippy::cast_possible_truncation, reason = "at most 4096")]
        let records = count.wrapping_sub(self.start) as usize;
        Filled { counts: self.counts, changed: self.changed, records, bytes: self.bytes }
    }
}

impl Columns {
    /// Whether records of the type at a position of a section are put into slots.
    pub(crate) fn takes(&self, section: usize, position: usize) -> bool {
        let first = self.sections.get(section).copied().unwrap_or(usize::MAX);
        let records = self.records.get(first.saturating_add(position));
        position < 64 && records.is_some_and(RecordColumns::is_taken)
    }

    /// Takes note of what was put in.
    pub(crate) fn take<const PLANS: usize>(&mut self, section: usize, filled: &Filled<PLANS>) {
        self.order.len = filled.records;
        self.weight += filled.bytes;
        let first = self.sections.get(section).copied().unwrap_or(usize::MAX);
        let records = self.records.get_mut(first..).unwrap_or_default();
        let records = records.iter_mut().take_while(|records| records.section == section);
        for (position, records) in records.enumerate().take(64).filter(|(_, records)| records.is_taken()) {
            let count = filled.counts.get(records.plan).copied().unwrap_or(0);
            // Where none came, too: of a record that failed an array may be there.
            records.go_to(count, filled.changed & 1 << position != 0);
        }
    }
}

impl RecordColumns {
    /// There were some before, each with one value for each leaf.
    pub(crate) fn is_taken(&self) -> bool {
        self.came && !self.repeats
    }

    /// There are this many now, whose values are there, except for empty arrays and, perhaps, what is always the same.
    fn go_to(&mut self, count: usize, with_fixed: bool) {
        for leaf in &mut self.leaves {
            match leaf {
                Column::Numbers(column) => match column.fixed() {
                    Some(value) if !with_fixed => column.extend_uniform(value, count - self.count),
                    _ => column.go_to(count),
                },
                Column::Arrays(column) => column.go_to(count),
                Column::Empty => {}
            }
        }
        self.count = count;
    }
}
