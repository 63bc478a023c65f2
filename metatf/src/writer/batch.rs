//! Records that come one after the other, written in one loop that keeps in registers where it is: the mirror of
//! `reader/run.rs`. What is out of the ordinary ends the loop before the record that it is about; this is written by itself,
//! and then the loop goes on.

use super::{RecordWriter, SectionWriter};
use crate::buffer::Room;
use crate::container::Sink;
use crate::encode::{FORMULA, STORED};
use crate::encode::{put, put_specialized};
use crate::error::Result;
use crate::formula::Plan;
use crate::record::{DataRecord, Known, Puts, WriteFields};
use crate::state::bit;
use std::ops::ControlFlow;

/// So many records are written by themselves before a straight line is tried again.
const MOST_APART: u32 = 63;

/// Where records of one section go. That they are there is told when it is dropped: by a panic of who makes them, too.
struct Run<'w> {
    section: usize,
    room: Room<'w>,
    /// Its data records.
    records: &'w mut u32,
    /// Where records end, if that is to be noted.
    ends: Option<&'w mut Vec<u32>>,
    /// Records taken.
    count: u32,
}

impl Run<'_> {
    /// Notes a record, if one was put.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn took(&mut self, put: Option<()>) -> bool {
        if put.is_none() {
            return false;
        }
        if let Some(ends) = &mut self.ends {
            ends.push(super::section::end(self.room.at()));
        }
        self.count += 1;
        true
    }
}

impl Drop for Run<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn drop(&mut self) {
        self.room.close();
        *self.records += self.count;
    }
}

/// Takes records of a section all of which are stored as is expected, and whose ends nobody wants to know. `ONE`: all that come
/// are of this section.
struct Expected<'w, const ONE: bool>(Run<'w>);

impl<const ONE: bool> Puts for Expected<'_, ONE> {
    /// Whether it was taken. If not, nothing has happened.
    type Done = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> bool {
        let run = &mut self.0;
        if !K::CAN_SPECIALIZE || !ONE && section != run.section {
            return false;
        }
        let put = put_specialized::<K, T>(&mut run.room, fields);
        run.count += u32::from(put.is_some());
        put.is_some()
    }
}

/// Takes records of a section whose tiers allow a straight line.
struct Straight<'w> {
    run: Run<'w>,
    /// Of the section.
    plans: &'w [Plan],
    /// By position: whether that is the tier, or a better one.
    stored: u64,
    formula: u64,
}

impl Puts for Straight<'_> {
    /// Whether it was taken. If not, nothing has happened.
    type Done = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> bool {
        let run = &mut self.run;
        if section != run.section {
            return false;
        }
        let Some(plans) = self.plans.first_chunk::<PLANS>() else { return false };
        let put = if self.stored & const { bit(K::POSITION) } != 0 {
            put::<K, T, PLANS, STORED>(&mut run.room, plans, fields)
        } else if self.formula & const { bit(K::POSITION) } != 0 {
            put::<K, T, PLANS, FORMULA>(&mut run.room, plans, fields)
        } else {
            None
        };
        run.took(put)
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Writes records, one after the other.
    ///
    /// # Errors
    /// As [`record`](Self::record); what comes before the record at fault is written.
    #[inline]
    pub fn put_all<R: DataRecord>(&mut self, records: impl IntoIterator<Item = R>) -> Result<()> {
        let mut records = records.into_iter();
        let mut section = R::SECTION.or(self.last_section).unwrap_or(0);
        let mut slow = 0;
        loop {
            let before = self.records_of(section);
            let Some(record) = self.put_run(section, &mut records) else { return Ok(()) };
            // Where records do not go in a straight line, that is not tried with each.
            slow = if self.records_of(section) == before { (2 * slow + 1).min(MOST_APART) } else { 0 };
            section = record.place().0;
            self.put_one(&record)?;
            for _ in 0..slow {
                let Some(record) = records.next() else { return Ok(()) };
                self.put_one(&record)?;
            }
        }
    }

    /// Data records in the section's chunk.
    fn records_of(&self, section: usize) -> u32 {
        self.sections.get(section).map_or(0, |writer| writer.records)
    }

    /// As many of the records as the section takes in a straight line; gives the one after them.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_run<R: DataRecord>(&mut self, section: usize, records: &mut impl Iterator<Item = R>) -> Option<R> {
        self.open(section);
        let Some(writer) = self.sections.get_mut(section) else { return records.next() };
        let SectionWriter { out, ends, state, notes, records: written, .. } = writer;
        let run = Run { section, room: out.room(), records: written, ends: notes.then_some(ends), count: 0 };
        if state.tiers.are_specialized() && !*notes {
            if R::SECTION.is_some() {
                put_while(records, &mut Expected::<true>(run))
            } else {
                put_while(records, &mut Expected::<false>(run))
            }
        } else {
            let (stored, formula) = (0, state.tiers.planned());
            put_while(records, &mut Straight { run, plans: &state.plans, stored, formula })
        }
    }

    #[inline(never)]
    fn put_one<R: DataRecord>(&mut self, record: &R) -> Result<()> {
        record.put(self)
    }
}

/// Puts records up to the first that is not taken; gives that.
#[cfg_attr(not(debug_assertions), inline(always))]
fn put_while<R: DataRecord>(records: &mut impl Iterator<Item = R>, puts: &mut impl Puts<Done = bool>) -> Option<R> {
    let taken = |record: R| if record.put(puts) { ControlFlow::Continue(()) } else { ControlFlow::Break(record) };
    records.try_for_each(taken).break_value()
}
