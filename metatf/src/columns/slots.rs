//! Destinations for the values of a section's records whose types are known at compile time. Each leaf has one slot,
//! indexed by the leaf's plan.

use super::{ArrayColumn, Column, Columns, RECORDS, RecordColumns};
use std::cell::Cell;

/// The columns of a section's records, by plan. A record is stored leaf by leaf and is counted only once it is
/// [done](Self::done).
pub(crate) struct Slots<'c, const PLANS: usize> {
    numbers: [Option<&'c [Cell<u64>; RECORDS]>; PLANS],
    arrays: [Option<&'c mut ArrayColumn>; PLANS],
    /// For the first plan of each type, the number of its records.
    counts: [usize; PLANS],
    /// A bit set, by position, of the accepted types. A type is accepted if its records have occurred before and do not
    /// repeat items.
    taken: u64,
    /// A bit set, by position, of the types with values that are constant in the DTD but that metadata may have
    /// changed.
    changed: u64,
    order: &'c [Cell<u32>; RECORDS],
    /// The index at which the section's types start in `Columns::records`.
    first: u32,
    /// The run's record counts at the first record of the columns (`start`) and at which the columns are full (`end`).
    start: u64,
    end: u64,
    /// Number of bytes in the stored byte arrays.
    bytes: usize,
}

/// A summary of the stored records.
pub(crate) struct Filled<C: ?Sized> {
    changed: u64,
    records: usize,
    bytes: usize,
    /// The number of records of each type, by the type's first plan.
    counts: C,
}

impl<'c, const PLANS: usize> Slots<'c, PLANS> {
    /// Creates slots for the records of a section. `count` is the run's current record count. Returns `None` if the
    /// section has a different number of plans.
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
        let records = columns.records.get_mut(first..)?;
        slots.taken = add(records, (section, changed), &mut slots.numbers, &mut slots.arrays, &mut slots.counts)?;
        Some(slots)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_room(&self, count: u64) -> bool {
        count < self.end
    }

    /// Returns whether records of the type at a position are accepted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn takes(&self, position: u64) -> bool {
        self.taken & position != 0
    }

    /// Returns the index of the next record of the type with this first plan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn next(&self, first: usize) -> usize {
        self.counts.get(first).copied().unwrap_or(0)
    }

    /// Stores the value of the leaf with this plan for record `at` of its type.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn put(&self, plan: usize, at: usize, value: u64) {
        if let Some(Some(column)) = self.numbers.get(plan) {
            // The index is always smaller than `RECORDS`, but the compiler cannot prove it.
            if let Some(slot) = column.get(at % RECORDS) {
                slot.set(value);
            }
        }
    }

    /// Stores the bytes of a leaf.
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

    /// Counts record `at` of a type, given the type's position and its first plan, and adds the record to the sequence.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn done(&mut self, position: usize, first: usize, at: usize, count: u64) {
        if let Some(count) = self.counts.get_mut(first) {
            *count = at + 1;
        }
        #[allow(clippy::cast_possible_truncation, reason = "less than 64, and less than 4096")]
        let (position, record) = (position as u32, count.wrapping_sub(self.start) as usize);
        if let Some(slot) = self.order.get(record % RECORDS) {
            slot.set(self.first + position);
        }
    }

    /// Returns a summary of the records stored until the run's record count reached `count`.
    pub(crate) fn filled(self, count: u64) -> Filled<[usize; PLANS]> {
        #[allow(clippy::cast_possible_truncation, reason = "at most 4096")]
        let records = count.wrapping_sub(self.start) as usize;
        Filled { changed: self.changed, records, bytes: self.bytes, counts: self.counts }
    }
}

/// Adds slots for the leaves of the accepted types of a section. Returns a bit set of the accepted types, or `None` if
/// the section has a different number of plans.
fn add<'c>(
    records: &'c mut [RecordColumns],
    (section, changed): (usize, u64),
    numbers: &mut [Option<&'c [Cell<u64>; RECORDS]>],
    arrays: &mut [Option<&'c mut ArrayColumn>],
    counts: &mut [usize],
) -> Option<u64> {
    let mut taken = 0;
    for (position, records) in taken_of(records, section) {
        taken |= 1 << position;
        *counts.get_mut(records.plan)? = records.count;
        let with_fixed = changed & 1 << position != 0;
        for (plan, leaf) in (records.plan..).zip(&mut records.leaves) {
            match leaf {
                Column::Numbers(column) if with_fixed || column.fixed().is_none() => {
                    *numbers.get_mut(plan)? = column.cells();
                }
                Column::Arrays(column) => *arrays.get_mut(plan)? = Some(column),
                Column::Numbers(_) | Column::Empty => {}
            }
        }
    }
    Some(taken)
}

/// Returns the types of a section that are stored in slots, with their positions in the section.
fn taken_of(records: &mut [RecordColumns], section: usize) -> impl Iterator<Item = (usize, &mut RecordColumns)> {
    let records = records.iter_mut().take_while(move |records| records.section == section);
    records.enumerate().take(64).filter(|(_, records)| records.is_taken())
}

impl Columns {
    /// Returns whether records of the type at a position of a section are stored in slots.
    pub(crate) fn takes(&self, section: usize, position: usize) -> bool {
        let first = self.sections.get(section).copied().unwrap_or(usize::MAX);
        let records = self.records.get(first.saturating_add(position));
        position < 64 && records.is_some_and(RecordColumns::is_taken)
    }

    /// Updates the columns for the stored records.
    pub(crate) fn take(&mut self, section: usize, filled: &Filled<[usize]>) {
        self.order.len = filled.records;
        self.weight += filled.bytes;
        let first = self.sections.get(section).copied().unwrap_or(usize::MAX);
        let records = self.records.get_mut(first..).unwrap_or_default();
        for (position, records) in taken_of(records, section) {
            let count = filled.counts.get(records.plan).copied().unwrap_or(0);
            // This is necessary even for types without records, because a record that failed may have left an array
            // behind.
            records.go_to(count, filled.changed & 1 << position != 0);
        }
    }
}

impl RecordColumns {
    /// Returns whether records of this type have occurred before, and each has exactly one value per leaf.
    pub(crate) fn is_taken(&self) -> bool {
        self.came && !self.repeats
    }

    /// Sets the number of records. Their values are already stored, except for empty arrays and possibly constants.
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
