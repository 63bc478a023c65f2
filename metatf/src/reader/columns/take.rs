//! Decodes the leaves of located records into their columns.

use crate::columns::{Column, NumberColumn, RecordColumns};
use crate::formula::{Plan, eight, plain};
use crate::reader::batch::{Batch, Take, Type};
use crate::state::State;

/// The progress in decoding the columns of a record type. One leaf can be ahead of the others, because the pending
/// values of a leaf are decoded before metadata changes its encoding.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// For each leaf, the number of located records whose value has been decoded.
    taken: Vec<usize>,
}

/// The located records of a type, from the first on.
#[derive(Clone, Copy)]
struct Noted<'b> {
    starts: &'b [u64],
    data: &'b [u8],
    /// Whether any record has bytes at its end.
    has_bytes: bool,
}

impl<'b> Noted<'b> {
    fn new(known: &Type, batch: &'b Batch, data: &'b [u8]) -> Self {
        Self { starts: batch.places.get(known.slots()).unwrap_or_default(), data, has_bytes: known.has_bytes }
    }
}

impl Progress {
    /// Decodes the located records as far as necessary and switches to the current plans if they have changed.
    pub(super) fn learn(
        &mut self,
        known: &mut Type,
        batch: &Batch,
        data: &[u8],
        state: &mut State,
        (position, columns): (usize, &mut RecordColumns),
    ) {
        let noted = Noted::new(known, batch, data);
        let Type { layout, elements, .. } = known;
        self.taken.resize(layout.takes.len(), 0);
        let extent = layout.learn(state, state.encoding.plans_of(position), |leaf, before, _| {
            // No previous value is needed here, because a leaf that depends on its previous value has already been
            // decoded completely.
            self.take_leaf(leaf, before, noted, elements, &mut 0, columns);
        });
        known.set_extent(extent);
        if extent.is_none() {
            self.take(known, batch, data, state, columns);
        }
    }

    /// Decodes the leaves that depend on their previous value. This must happen before metadata is applied, because
    /// metadata may set the previous value.
    pub(super) fn take_history(
        &mut self,
        known: &mut Type,
        batch: &Batch,
        data: &[u8],
        state: &mut State,
        columns: &mut RecordColumns,
    ) {
        if known.layout.has_history {
            self.take_leaves(known, batch, data, state, columns, |take| take.cell().is_some());
        }
    }

    /// Decodes all leaves of the located records.
    pub(super) fn take(
        &mut self,
        known: &mut Type,
        batch: &Batch,
        data: &[u8],
        state: &mut State,
        columns: &mut RecordColumns,
    ) {
        if known.count() == 0 {
            return;
        }
        self.take_leaves(known, batch, data, state, columns, |_| true);
        columns.add(known.count());
        known.clear();
        self.taken.fill(0);
    }

    fn take_leaves(
        &mut self,
        known: &mut Type,
        batch: &Batch,
        data: &[u8],
        state: &mut State,
        columns: &mut RecordColumns,
        wanted: impl Fn(&Take) -> bool,
    ) {
        let noted = Noted::new(known, batch, data);
        let Type { layout, elements, .. } = known;
        for (leaf, &take) in layout.takes.iter().enumerate().filter(|(_, take)| wanted(take)) {
            let mut none = 0;
            let previous = take.cell().and_then(|cell| state.history.cells.get_mut(cell)).unwrap_or(&mut none);
            self.take_leaf(leaf, take, noted, elements, previous, columns);
        }
    }

    /// Decodes the remaining values of a leaf. `last` is the value before the first of them.
    fn take_leaf(
        &mut self,
        leaf: usize,
        take: Take,
        Noted { starts, data, has_bytes }: Noted<'_>,
        elements: &mut [Vec<u64>],
        previous: &mut u64,
        columns: &mut RecordColumns,
    ) {
        let Some((column, taken)) = columns.leaf(leaf).zip(self.taken.get_mut(leaf)) else { return };
        let starts = starts.get(*taken..).unwrap_or_default();
        if starts.is_empty() {
            return;
        }
        *taken += starts.len();
        match (take, column) {
            (Take::Number(value), Column::Numbers(column)) => column.extend_uniform(value, starts.len()),
            (Take::Element(_), Column::Numbers(column)) => {
                column.extend(elements.get_mut(leaf).into_iter().flat_map(|elements| elements.drain(..)));
            }
            (Take::Stored(at, plan), Column::Numbers(column)) => {
                let data = data.get(at..).unwrap_or_default();
                match take.cell() {
                    None => column.extend(starts.iter().map(|&start| stored(data, start, &plan))),
                    Some(_) => *previous = differences(data, starts, &plan, *previous, column),
                }
            }
            (Take::Array(_, 0), Column::Arrays(column)) => column.extend_empty(starts.len()),
            (Take::Array(at, length), Column::Arrays(column)) => {
                starts.iter().for_each(|&start| column.push(array(data, start, at, length)));
            }
            (Take::Rest(..), Column::Arrays(column)) if !has_bytes => column.extend_empty(starts.len()),
            (Take::Rest(at, length, mask), Column::Arrays(column)) => {
                for &start in starts {
                    let length = eight(data, place(start) + length).map_or(0, u64::from_le_bytes) & mask;
                    column.push(array(data, start, at, place(length)));
                }
            }
            // The values are not requested, but later records may need the last value.
            (Take::Stored(at, plan), Column::Empty) if take.cell().is_some() => {
                let data = data.get(at..).unwrap_or_default();
                *previous = starts.iter().fold(*previous, |last, &start| last.wrapping_add(stored(data, start, &plan)));
            }
            (Take::Element(_), Column::Empty) => elements.get_mut(leaf).into_iter().for_each(Vec::clear),
            _ => {}
        }
    }
}

/// Decodes a number with the formula without history.
#[inline(always)]
fn stored(data: &[u8], start: u64, plan: &Plan) -> u64 {
    plain(eight(data, place(start)).map_or(0, u64::from_le_bytes) & plan.mask, plan)
}

/// Decodes numbers that are relative to the preceding number and returns the last one.
fn differences(data: &[u8], starts: &[u64], plan: &Plan, mut last: u64, column: &mut NumberColumn) -> u64 {
    column.extend(starts.iter().map(|&start| {
        last = last.wrapping_add(stored(data, start, plan));
        last
    }));
    last
}

fn array(data: &[u8], start: u64, at: usize, length: usize) -> &[u8] {
    data.get(place(start) + at..).and_then(|rest| rest.get(..length)).unwrap_or_default()
}

#[allow(clippy::cast_possible_truncation, reason = "an offset in memory, or a checked length")]
#[inline(always)]
fn place(start: u64) -> usize {
    start as usize
}
