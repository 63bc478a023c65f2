//! Fills columns with records whose types are known at compile time. Each record is decoded as for `for_each`, and its
//! values are stored in their columns along the way.

use crate::columns::{Columns, Slots};
use crate::decode::{Run, WINDOW};
use crate::format::{Floor, METADATA};
use crate::reader::rows::Observer;
use crate::reader::{Event, RecordReader};
use crate::record::{Known, ReadFields, Reads, Row, SectionFamily, Source};
use crate::state::bit;
use metatf_container::{Error, Order, Result};

use std::marker::PhantomData;
use std::ops::ControlFlow;

impl RecordReader<'_> {
    /// Fills columns like [`next_columns`](Self::next_columns), but decodes records with generated code: `read`
    /// receives the index of a section and the sink that reads the section's records.
    pub(crate) fn next_columns_known(
        &mut self,
        columns: &mut Columns,
        read: impl FnMut(usize, &mut ColumnSink<'_, '_>),
    ) -> Result<bool> {
        if columns.is_partial() {
            return self.next_columns(columns);
        }
        columns.begin(&self.format, self.records_read());
        let filled = self.fill_known(columns, read);
        self.filled(columns, filled)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn fill_known(
        &mut self,
        columns: &mut Columns,
        mut read: impl FnMut(usize, &mut ColumnSink<'_, '_>),
    ) -> Result<()> {
        while columns.room() > 0 {
            if self.is_idle()
                && self.order == Order::Little
                && let Some((run, mut end)) = self.start_run()
            {
                let mut filling = ColumnSink { run, columns };
                read(end.section(), &mut filling);
                let run = filling.run;
                end.tell(run.position, run.count, run.has_stopped());
                if let Some(error) = self.stopped() {
                    return Err(error);
                }
                if columns.room() == 0 {
                    break;
                }
            }
            match self.next_event()? {
                Some(Event::Record(at)) => self.add(columns, at.section, at.record)?,
                Some(_) => {}
                None => break,
            }
        }
        Ok(())
    }
}

/// Fills columns with the records of a run until the columns are full or another event follows.
pub(crate) struct ColumnSink<'c, 'r> {
    run: Run<'r>,
    columns: &'c mut Columns,
}

impl<'r> Reads<'r> for ColumnSink<'_, 'r> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        mut each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let mut is_stuck = false;
        loop {
            let pushed = self.push_others(F::SECTION, is_stuck);
            if is_stuck && !pushed || self.columns.room() == 0 || self.run.has_stopped() {
                return ControlFlow::Continue(());
            }
            let (start, changed) = (self.run.position, changed(&self.run));
            let Some(mut slots) = Slots::<PLANS>::new(self.columns, F::SECTION, changed, self.run.count) else {
                return ControlFlow::Continue(());
            };
            let flow = loop {
                let flow = if F::CAN_SPECIALIZE && self.run.are_specialized() {
                    self.run.specialized::<F, B, C, _>(&mut slots, &mut each)
                } else {
                    self.run.mixed::<F, B, PLANS, C, _>(&mut slots, &mut each)
                };
                let goes_on = flow.is_continue() && !self.run.has_stopped() && self.run.apply_metadata().is_some();
                if !goes_on || self::changed(&self.run) != changed {
                    break flow;
                }
            };
            let filled = slots.filled(self.run.count);
            self.columns.take(F::SECTION, &filled);
            if flow.is_break() || self.run.has_stopped() {
                return flow;
            }
            is_stuck = self.run.position == start;
        }
    }
}

impl ColumnSink<'_, '_> {
    /// Reads the following records leaf by leaf. Stops at a record whose type is stored in slots, unless the end of the
    /// part is near. If `any` is set, always reads the first record. Returns whether any records were read.
    #[inline(never)]
    fn push_others(&mut self, section: usize, any: bool) -> bool {
        let Self { run, columns } = self;
        let start = run.position;
        while columns.room() > 0
            && let Some(listed) = run.next_listed()
            && listed.record > METADATA
        {
            let position = usize::from(listed.position);
            let is_near = run.data.len() - run.position < WINDOW;
            if columns.takes(section, position) && !is_near && !(any && run.position == start) {
                break;
            }
            if run.push(columns, section, listed).is_none() {
                break;
            }
        }
        run.position != start
    }
}

/// Returns a bit set of the positions of record types in which metadata may have changed values that are constant in
/// the DTD.
#[cfg_attr(not(debug_assertions), inline(always))]
fn changed(run: &Run<'_>) -> u64 {
    !run.state.encoding.tiers.planned()
}

impl<'r, const PLANS: usize> Observer<'r> for Slots<'_, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_room(&self, count: u64) -> bool {
        Slots::has_room(self, count)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn takes<S: Known>(&self) -> bool {
        Slots::takes(self, const { bit(S::POSITION) })
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>, R: Source<'r>, const CHANGED: bool>(
        &mut self,
        row: &mut R,
        count: u64,
    ) -> Result<T, R::Error> {
        // Slots do not accept such records, so no code to store them is generated.
        if S::REPEATS {
            return T::read_fields(row, 0);
        }
        let at = self.next(S::FIRST);
        let mut noting = Noting::<_, S, PLANS, CHANGED> { row, slots: self, at, shape: PhantomData };
        let fields = T::read_fields(&mut noting, 0)?;
        self.done(S::POSITION, S::FIRST, at, count);
        Ok(fields)
    }
}

/// A row whose values are stored in columns as they are read.
struct Noting<'a, 'c, R, S, const PLANS: usize, const CHANGED: bool> {
    row: &'a mut R,
    slots: &'a mut Slots<'c, PLANS>,
    /// The record's index in its columns.
    at: usize,
    shape: PhantomData<S>,
}

impl<'r, R: Row<'r>, S: Known, const PLANS: usize, const CHANGED: bool> Row<'r>
    for Noting<'_, '_, R, S, PLANS, CHANGED>
{
    type Error = R::Error;

    #[cold]
    fn stop(&mut self, error: Error) -> R::Error {
        self.row.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, R::Error> {
        let value = self.row.number(leaf)?;
        let is_fixed = matches!(S::FLOORS[usize::from(leaf)], Floor::Fixed(_));
        let is_length = matches!(S::FLOORS[usize::from(leaf.wrapping_add(1))], Floor::Counted);
        if !is_length && (CHANGED || !is_fixed) {
            self.slots.put(S::FIRST + usize::from(leaf), self.at, value);
        }
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], R::Error> {
        let bytes = self.row.bytes(leaf)?;
        self.slots.put_bytes(S::FIRST + usize::from(leaf), self.at, bytes);
        Ok(bytes)
    }

    fn items(&mut self, count: u64) -> Result<usize, R::Error> {
        self.row.items(count)
    }
}

impl<'r, R: Source<'r>, S: Known, const PLANS: usize, const CHANGED: bool> Source<'r>
    for Noting<'_, '_, R, S, PLANS, CHANGED>
{
    fn last(&self, leaf: u8) -> u64 {
        self.row.last(leaf)
    }
}
