//! Writes many records in one loop that keeps its state in registers, mirroring `reader/run.rs`. A record that the loop
//! cannot handle ends the loop and is written separately. Then another loop starts.

use super::{RecordCore, SectionWriter};
use crate::buffer::SpareCapacity;
use crate::encode::{add_time, put, put_specialized};
use crate::formula::Plan;
use crate::record::{DataRecord, Known, Puts, WriteFields};
use crate::state::bit;
use metatf_container::{Result, Sink, TimeRange};
use std::ops::ControlFlow;

/// Maximum number of records written one by one before the loop is tried again.
const MOST_SINGLE: u32 = 63;

/// A batch of records of one section. The records are counted when the batch is dropped, even if the record iterator
/// panics.
struct WriteBatch<'w> {
    section: usize,
    spare: SpareCapacity<'w>,
    /// The section's data record count.
    records: &'w mut u32,
    /// The list of record ends, if a filter needs it.
    ends: Option<&'w mut Vec<u32>>,
    /// The times of the group's records.
    group_times: &'w mut TimeRange,
    /// The times of the records written by this batch.
    times: TimeRange,
    /// Number of records written by this batch.
    count: u32,
}

impl WriteBatch<'_> {
    /// Counts a record if it was written.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn count(&mut self, put: Option<()>) -> bool {
        if put.is_none() {
            return false;
        }
        if let Some(ends) = &mut self.ends {
            ends.push(super::section::record_end(self.spare.at()));
        }
        self.count += 1;
        true
    }
}

impl Drop for WriteBatch<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        *self.records += self.count;
        if self.times.lowest <= self.times.highest {
            self.group_times.add(self.times.lowest);
            self.group_times.add(self.times.highest);
        }
    }
}

/// Handles the records of a specialized section if no filter needs their ends. If `ONE` is set, all records belong to
/// this section.
struct SpecializedWrites<'w, const ONE: bool>(WriteBatch<'w>);

impl<const ONE: bool> Puts for SpecializedWrites<'_, ONE> {
    /// Whether the record was handled. If not, nothing has changed.
    type Done = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> bool {
        let batch = &mut self.0;
        if !K::CAN_SPECIALIZE || !ONE && K::SECTION != batch.section {
            return false;
        }
        add_time::<K, T>(&mut batch.times, fields);
        let put = put_specialized::<K, T>(&mut batch.spare, fields);
        batch.count += u32::from(put.is_some());
        put.is_some()
    }
}

/// Handles planned records of a section.
struct PlannedWrites<'w> {
    batch: WriteBatch<'w>,
    /// The plans of the section.
    plans: &'w [Plan],
    /// Positions of the records in the planned tier, as a bit set.
    planned: u64,
}

impl Puts for PlannedWrites<'_> {
    /// Whether the record was handled. If not, nothing has changed.
    type Done = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> bool {
        let batch = &mut self.batch;
        if K::IS_GENERAL {
            return false;
        }
        if K::SECTION != batch.section {
            return false;
        }
        let Some(plans) = self.plans.first_chunk::<PLANS>() else { return false };
        let is_planned = self.planned & const { bit(K::POSITION) } != 0;
        is_planned && {
            add_time::<K, T>(&mut batch.times, fields);
            let put = put::<K, T, PLANS>(&mut batch.spare, plans, fields);
            batch.count(put)
        }
    }
}

impl RecordCore<dyn Sink + '_> {
    #[inline]
    pub(crate) fn put_all<R: DataRecord>(&mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        let mut records = records.into_iter();
        let mut section = R::SECTION.or(self.last_section).unwrap_or(0);
        let mut single = 0;
        loop {
            let before = self.records_of(section);
            let Some(record) = self.put_batch(section, &mut records) else { return Ok(()) };
            // If the loop handled no record, try it less often.
            single = if self.records_of(section) == before { (2 * single + 1).min(MOST_SINGLE) } else { 0 };
            section = record.place().0;
            self.put_one(&record)?;
            for _ in 0..single {
                let Some(record) = records.next() else { return Ok(()) };
                self.put_one(&record)?;
            }
        }
    }

    /// Returns the number of data records in the section's chunk.
    fn records_of(&self, section: usize) -> u32 {
        self.sections.get(section).map_or(0, |writer| writer.records)
    }

    /// Writes records for as long as the section's batch handles them. Returns the first record that it cannot handle.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_batch<R: DataRecord>(&mut self, section: usize, records: &mut impl Iterator<Item = R>) -> Option<R> {
        self.open(section);
        let Some(writer) = self.sections.get_mut(section) else { return records.next() };
        let SectionWriter { out, ends, state, wants_ends, records: written, .. } = writer;
        let batch = WriteBatch {
            section,
            spare: out.spare(),
            records: written,
            ends: wants_ends.then_some(ends),
            group_times: &mut self.attempt.times,
            times: TimeRange::EMPTY,
            count: 0,
        };
        if state.encoding.tiers.are_specialized() && !*wants_ends {
            if R::SECTION.is_some() {
                put_while(records, &mut SpecializedWrites::<true>(batch))
            } else {
                put_while(records, &mut SpecializedWrites::<false>(batch))
            }
        } else {
            put_while(
                records,
                &mut PlannedWrites { batch, plans: &state.encoding.plans, planned: state.encoding.tiers.planned() },
            )
        }
    }

    #[inline(never)]
    fn put_one<R: DataRecord>(&mut self, record: &R) -> Result<()> {
        record.put(&mut { self })
    }
}

/// Writes records up to the first one that cannot be handled and returns that record.
#[cfg_attr(not(debug_assertions), inline(always))]
fn put_while<R: DataRecord>(records: &mut impl Iterator<Item = R>, puts: &mut impl Puts<Done = bool>) -> Option<R> {
    let taken = |record: R| if record.put(puts) { ControlFlow::Continue(()) } else { ControlFlow::Break(record) };
    records.try_for_each(taken).break_value()
}
