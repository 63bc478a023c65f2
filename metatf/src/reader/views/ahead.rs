//! Decodes up to a few dozen upcoming records before they are returned, as long as decoding them changes only cells and
//! stream cursors. If the reader continues in a different way before all of these records have been returned, the
//! changes are undone, and the returned records are decoded again.

use super::rows::{HEAD, Head, ROWS, Span, TypeRows};
use super::single::Singles;
use crate::decode::{ContentRow, Run};
use crate::format::Format;
use crate::reader::batch::{Batch, Mode, Types};
use crate::record::Stopped;
use crate::state::{State, VIEWS};
use metatf_container::Order;
use std::ops::ControlFlow;

/// Minimum limit on the number of records decoded ahead.
const FEW: usize = 16;

/// Number of words in the rows of individually decoded records after which no further records are decoded ahead.
const WORDS: usize = 1 << 14;

/// The decoding state of the data records of all sections, and the most recently decoded records.
#[derive(Debug, Default)]
pub(in crate::reader) struct Views {
    batch: Batch,
    /// Number of records in the batch that have been returned.
    pub(super) next: usize,
    sections: Vec<SectionRows>,
    /// The section of the batch.
    pub(super) section: usize,
    singles: Singles,
    /// The end of the rows that belong to record types, as an index in the batch's `places`.
    rows_end: usize,
    /// The start and end of the batch within the part, and the cells before the batch if it changes any.
    pub(super) start: usize,
    end: usize,
    cells: Vec<u64>,
    /// Maximum number of records decoded in the next batch.
    limit: usize,
}

/// A data record of any format. Its values are in memory that later records reuse.
///
/// The *places* of a record are its leaves in byte order, starting with the tag. A repeated leaf has one place per
/// occurrence. Without repetitions, the place of a leaf equals its index.
#[derive(Clone, Copy)]
pub struct RecordView<'t> {
    pub(super) numbers: &'t [u64],
    pub(super) views: &'t Views,
    pub(super) data: &'t [u8],
    /// The offset of the data in its section or in the file.
    pub(super) base: u64,
    /// The start of the record within the data.
    pub(super) start: u64,
    pub(super) head: Head,
    /// The index of the word at which the record's row begins.
    pub(super) row: usize,
}

/// The record types of a section.
#[derive(Debug, Default)]
struct SectionRows {
    types: Types,
    /// The rows by position.
    rows: Vec<TypeRows>,
    /// Whether decoding records changes cells.
    has_cells: bool,
}

impl Views {
    /// Returns the row of the next record and counts it as returned.
    #[inline(always)]
    pub(super) fn step(&mut self) -> Option<u32> {
        if self.next >= self.batch.len {
            return None;
        }
        let entry = self.batch.order.get(self.next).copied()?;
        self.next += 1;
        Some(entry)
    }

    /// Returns the end of the last returned record.
    pub(super) fn position(&self) -> usize {
        let next = self.batch.order().get(self.next).and_then(|&row| self.batch.places.get(row as usize));
        next.and_then(|&at| usize::try_from(at).ok()).unwrap_or(self.end)
    }

    /// Decodes the next records. Returns false at the end, at any item other than a data record, and at an error, which
    /// the run stores. All previously decoded records must have been [committed](Self::commit).
    #[inline(never)]
    pub(super) fn fill(&mut self, run: &mut Run<'_>) -> bool {
        let limit = self.limit.clamp(FEW, ROWS);
        self.decode(run, limit);
        if self.batch.len == limit {
            self.limit = limit * 2;
        }
        self.batch.len > 0
    }

    fn decode(&mut self, run: &mut Run<'_>, limit: usize) {
        self.clear();
        if run.listed().is_none() {
            return;
        }
        if run.state.encoding.tiers.has_changed(VIEWS) {
            self.learn(run.format, run.state);
        }
        self.section = run.state.encoding.section;
        self.start = run.position;
        if self.sections.get(self.section).is_some_and(|section| section.has_cells) {
            self.cells.clone_from(&run.state.history.cells);
        }
        while self.batch.len < limit && self.batch.places.len() - self.rows_end < WORDS {
            let room = limit - self.batch.len;
            let section = self.sections.get_mut(self.section).filter(|_| run.order == Order::Little);
            let stopped_by = section.and_then(|section| section.types.scan::<true>(&mut self.batch, run, room));
            if self.batch.len == limit || !self.go_on(stopped_by, run) {
                break;
            }
        }
        if run.has_stopped() {
            if self.batch.len > 0 {
                // Discard the error for now. The decoded records are returned first, and then the same error is found
                // again.
                *run.stopped = None;
                self.decode_again(run, self.batch.len);
            } else {
                run.count += 1;
            }
            return;
        }
        if let Some(SectionRows { types, rows, .. }) = self.sections.get_mut(self.section) {
            for position in self.batch.met.iter().map(|&position| usize::from(position)) {
                if let Some((known, rows)) = types.types.get(position).zip(rows.get_mut(position)) {
                    rows.decode(known, run.data, &mut self.batch.places, &mut run.state.history.cells);
                }
            }
        }
        self.end = run.position;
    }

    /// Continues decoding after a scan that stopped, possibly because of the next record's type. Returns false if that
    /// is not possible.
    fn go_on(&mut self, stopped_by: Option<u16>, run: &mut Run<'_>) -> bool {
        let section = self.sections.get_mut(self.section);
        let found = stopped_by.map(usize::from).zip(section);
        let found = found.and_then(|(at, section)| section.types.types.get_mut(at).zip(section.rows.get_mut(at)));
        let mode = found.as_ref().map_or(Mode::General, |(known, _)| known.layout.mode);
        match (mode, found) {
            // This requires that no single record has a row yet, because rows of the type would overlap the rows of
            // single records.
            (Mode::Batched, Some((known, rows)))
                if !known.is_allotted() && self.batch.places.len() == self.rows_end =>
            {
                let is_allotted = rows.allot(known, &mut self.batch).is_some();
                self.rows_end = self.batch.places.len();
                self.singles.clear(self.rows_end);
                is_allotted
            }
            (Mode::Single, _) => self.read_single(run),
            (Mode::General | Mode::Batched, _) if self.batch.len == 0 => {
                self.read_single(run);
                false
            }
            (Mode::General | Mode::Batched, _) => false,
        }
    }

    /// Decodes the next record individually. Returns false if that is not possible; the run stores the error if there
    /// is one.
    fn read_single(&mut self, run: &mut Run<'_>) -> bool {
        let row = self.singles.read_next(run, &mut self.batch.places);
        row.into_iter().for_each(|row| self.push(row));
        row.is_some()
    }

    fn push(&mut self, row: u32) {
        let Batch { order, len, .. } = &mut self.batch;
        order.truncate(*len);
        order.push(row);
        *len += 1;
    }

    /// Decodes this many records again from the start of the batch, with the cells and streams restored.
    #[cold]
    fn decode_again(&mut self, run: &mut Run<'_>, count: usize) {
        if let Some(section) = self.sections.get(self.section) {
            let met = self.batch.met.iter().filter_map(|&position| section.types.types.get(usize::from(position)));
            met.for_each(|known| known.give_back(run.streams));
            if section.has_cells {
                run.state.history.cells.clone_from(&self.cells);
            }
        }
        run.position = self.start;
        if count > 0 {
            self.decode(run, count);
        }
    }

    /// Moves to the end of the last returned record.
    pub(super) fn commit(&mut self, run: &mut Run<'_>) {
        let given = self.next;
        if given < self.batch.len {
            self.decode_again(run, given);
            self.limit = given;
        } else {
            run.position = self.end;
        }
        run.count += given as u64;
        self.clear();
    }

    /// Discards the decoded records.
    pub(super) fn clear(&mut self) {
        if let Some(section) = self.sections.get_mut(self.section) {
            for position in self.batch.met.drain(..) {
                section.types.types.get_mut(usize::from(position)).into_iter().for_each(|known| known.clear());
            }
        }
        self.batch.places.truncate(self.rows_end);
        self.singles.clear(self.rows_end);
        (self.batch.len, self.next) = (0, 0);
    }

    /// Updates the rows of a section for the plans that have changed.
    #[inline(never)]
    fn learn(&mut self, format: &Format, state: &mut State) {
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), SectionRows::default);
        }
        let Some(SectionRows { types, rows, has_cells }) = self.sections.get_mut(state.encoding.section) else {
            return;
        };
        if types.types.is_empty() {
            *types = Types::new(format, state.encoding.section);
            let listed = format.sections.get(state.encoding.section).map_or(&[][..], |section| &section.records);
            let records = (0..)
                .zip(listed)
                .map(|(position, &index)| TypeRows::new(index, position, format.records.get(usize::from(index))));
            *rows = records.collect();
            state.encoding.tiers.all_changed(VIEWS);
        }
        for position in state.encoding.tiers.take_changed(VIEWS) {
            let Some((known, rows)) = types.types.get_mut(position).zip(rows.get_mut(position)) else { continue };
            let first = state.encoding.plans_of(position);
            let extent = known.layout.learn(state, first, |leaf, _, take| rows.change(leaf, take));
            rows.has_cells = known.layout.mode == Mode::Single || known.layout.has_history;
            known.set_extent(extent);
        }
        *has_cells = rows.iter().any(|rows| rows.has_cells);
    }

    /// Calls `each` with the next records. The reason for stopping is available at the end of the run.
    #[inline(always)]
    pub(super) fn run<E>(
        &mut self,
        run: &mut Run<'_>,
        each: &mut impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> ControlFlow<E> {
        loop {
            if !self.fill(run) {
                if run.has_stopped() || run.apply_metadata().is_none() {
                    return ControlFlow::Continue(());
                }
                while run.apply_metadata().is_some() {}
                continue;
            }
            let mut result = Ok(());
            let mut given = 0;
            for &row in self.batch.order() {
                given += 1;
                result = each(self.view(row, run.data, run.base));
                if result.is_err() {
                    break;
                }
            }
            self.next = given;
            self.commit(run);
            if let Err(error) = result {
                return ControlFlow::Break(error);
            }
        }
    }

    /// Decodes the values of an announced record and counts the record as returned.
    pub(super) fn read_announced(
        &mut self,
        section: usize,
        record: u16,
        row: &mut ContentRow<'_, '_>,
    ) -> Result<(), Stopped> {
        self.clear();
        self.section = section;
        let row = self.singles.read(record, row, &mut self.batch.places)?;
        self.push(row);
        Ok(())
    }

    /// Returns the record in a row.
    #[inline(always)]
    pub(super) fn view<'t>(&'t self, row: u32, data: &'t [u8], base: u64) -> RecordView<'t> {
        let (row, values) = (row as usize, self.batch.places.as_slice());
        let word = |at: usize| values.get(row + at).copied().unwrap_or(0);
        let (start, head) = (word(0), Head(word(1)));
        let numbers = values.get(row + HEAD..row + HEAD + head.len()).unwrap_or_default();
        RecordView { numbers, views: self, data, base, start, head, row }
    }

    /// Returns the positions of the bytes of the record in a row, by place.
    #[inline]
    pub(super) fn spans(&self, head: Head, row: usize) -> &[Span] {
        if head.is_single() {
            return self.singles.spans(row);
        }
        let rows = self.sections.get(self.section).map_or(&[][..], |section| &section.rows);
        rows.get(usize::from(head.position())).map_or(&[], |rows| &rows.spans)
    }
}
