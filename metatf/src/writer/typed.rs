//! Records whose types are known when the program is compiled, each written in the shortest way that its grade allows.

use super::{RecordWriter, SectionWriter};
use crate::container::{Order, Sink};
use crate::error::Result;
use crate::grade::bit;
use crate::row_foretold_write::ForetoldWriter;
use crate::row_shaped_write::ShapedWriter;
use crate::row_write::RowWriter;
use crate::typed::{Known, WriteFields};

impl<S: Sink> RecordWriter<S> {
    /// Writes a `K` of the section, which has `PLANS` plans: in a straight line where its grade and the room allow it.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    #[doc(hidden)]
    #[inline]
    pub fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        let mut begun = false;
        if self.is_ready(section) {
            if self.put_straight::<K, T, PLANS>(section, fields).is_some() {
                return Ok(());
            }
            if K::MODELS {
                match self.put_foretold::<K, T, PLANS>(section, fields) {
                    Ok(()) => return Ok(()),
                    Err(learnt) => begun = learnt,
                }
            }
        }
        self.put_apart::<K, T>(section, fields, begun)
    }

    /// A record of which models may have learnt the first values already.
    #[inline(never)]
    fn put_apart<K: Known, T: WriteFields>(&mut self, section: usize, fields: &T, begun: bool) -> Result<()> {
        let encode = |row: &mut RowWriter<'_>| fields.write_fields(row, 0);
        if begun { self.go_on(section, K::RECORD, encode) } else { self.record(section, K::RECORD, encode) }
    }

    /// A record some of whose values a model tells. An error where that cannot be: whether models have learnt the first of
    /// them; nothing else has happened.
    #[inline(always)]
    fn put_foretold<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        let reader = self.format.sections.len() + section;
        let writer = self.sections.get_mut(section).ok_or(false)?;
        if self.order == Order::Big || writer.state.grades.foretold() & const { bit(K::POSITION) } == 0 {
            return Err(false);
        }
        let plans = writer.state.plans.first_chunk::<PLANS>().ok_or(false)?;
        let start = writer.out.used;
        let mut row = ShapedWriter::<K, PLANS, true>::new(&mut writer.out.bytes, start, plans);
        fields.write_fields(&mut row, 0).map_err(|_| false)?;
        let end = row.end().ok_or(false)?;
        // What models have learnt of one value stays learnt, so there has to be room for what they may not know of the next.
        let codes = row.codes();
        if codes > 1 && !self.streams.are_only_of(reader) {
            return Err(false);
        }
        self.attempt.start_record();
        self.attempt.start();
        let SectionWriter { out, state, log, .. } = writer;
        let room = (&mut out.bytes[..], start);
        let mut row = ForetoldWriter::<K, PLANS>::new(room, state, &mut self.attempt, log.is_some(), codes);
        if fields.write_fields(&mut row, 0).is_err() {
            self.attempt.roll_back(&mut state.cells);
            return Err(true);
        }
        if let Some(log) = log {
            self.attempt.noted().for_each(|noted| log.note(noted, writer.closed));
        }
        writer.out.used = end;
        writer.note_end();
        writer.records += 1;
        self.records += 1;
        Ok(())
    }

    /// None where that cannot be; then nothing has happened.
    #[inline(always)]
    fn put_straight<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Option<()> {
        let writer = self.sections.get_mut(section)?;
        if self.order == Order::Big || writer.state.grades.straight() & const { bit(K::POSITION) } == 0 {
            return None;
        }
        let plans = writer.state.plans.first_chunk::<PLANS>()?;
        let mut row = ShapedWriter::<K, PLANS, false>::new(&mut writer.out.bytes, writer.out.used, plans);
        fields.write_fields(&mut row, 0).ok()?;
        writer.out.used = row.end()?;
        writer.note_end();
        writer.records += 1;
        self.records += 1;
        Some(())
    }
}
