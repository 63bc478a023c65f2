//! Records that come one after the other, written in one loop that keeps in registers where it is: the mirror of
//! `reader/run.rs`. What is out of the ordinary ends the loop before the record that it is about; this is written by itself,
//! and then the loop goes on.

use super::{RecordWriter, SectionWriter};
use crate::container::Sink;
use crate::error::Result;
use crate::grade::{FORMULA, STORED, bit};
use crate::row_shaped_write::Room;
use crate::state::Plan;
use crate::typed::{DataRecord, Known, Puts, WriteFields};

/// Takes records of one section whose grades allow a straight line.
struct Straight<'w> {
    section: usize,
    room: Room<'w>,
    at: usize,
    /// Of the section.
    plans: &'w [Plan],
    /// By position: whether that is the grade, or a better one.
    stored: u64,
    formula: u64,
    /// Where records end, if that is to be noted.
    ends: Option<&'w mut Vec<u32>>,
    /// Records taken.
    count: u32,
}

impl Puts for Straight<'_> {
    /// Whether it was taken. If not, nothing has happened.
    type Done = bool;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> bool {
        if section != self.section {
            return false;
        }
        let Some(plans) = self.plans.first_chunk::<PLANS>() else { return false };
        let end = if self.stored & const { bit(K::POSITION) } != 0 {
            self.room.put::<K, T, PLANS, STORED>(self.at, plans, fields)
        } else if self.formula & const { bit(K::POSITION) } != 0 {
            self.room.put::<K, T, PLANS, FORMULA>(self.at, plans, fields)
        } else {
            None
        };
        let Some(end) = end else { return false };
        self.at = end;
        if let Some(ends) = &mut self.ends {
            ends.push(super::section::end(end));
        }
        self.count += 1;
        true
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
        let mut section = self.last_section.unwrap_or(0);
        while let Some(record) = self.put_run(section, &mut records) {
            section = record.place().0;
            self.put_one(&record)?;
        }
        Ok(())
    }

    /// As many of the records as the section takes in a straight line; gives the one after them.
    #[inline(always)]
    fn put_run<R: DataRecord>(&mut self, section: usize, records: &mut impl Iterator<Item = R>) -> Option<R> {
        self.open(section);
        let Some(writer) = self.sections.get_mut(section) else { return records.next() };
        let SectionWriter { out, ends, state, notes, until, .. } = writer;
        let mut straight = Straight {
            section,
            room: Room::new(&mut out.bytes, *until),
            at: out.used,
            plans: &state.plans,
            stored: state.grades.stored(),
            formula: state.grades.straight(),
            ends: notes.then_some(ends),
            count: 0,
        };
        let next = loop {
            let Some(record) = records.next() else { break None };
            if !record.put(&mut straight) {
                break Some(record);
            }
        };
        let Straight { at, count, .. } = straight;
        writer.out.used = at;
        writer.records += count;
        next
    }

    #[inline(never)]
    fn put_one<R: DataRecord>(&mut self, record: &R) -> Result<()> {
        record.put(self)
    }
}
