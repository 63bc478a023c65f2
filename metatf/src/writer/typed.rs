//! Records whose types are known when the program is compiled, each written in the shortest way that its tier allows.

use super::{RecordWriter, SectionWriter};
use crate::container::{Order, Sink};
use crate::encode::{CHANGED, FORMULA, GATHERED, STORED};
use crate::encode::{PlannedEncoder, RowWriter, SecondPass, StreamedEncoder, put, put_specialized};
use crate::error::Result;
use crate::record::{Known, Puts, WriteFields};
use crate::state::bit;

impl<S: Sink> Puts for RecordWriter<S> {
    type Done = Result<()>;

    #[inline]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        self.put::<K, T, PLANS>(section, fields)
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Writes a `K` of the section, which has `PLANS` plans: in a straight line where its tier and the room allow it.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline)]
    pub fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        if K::MODELS {
            // What models learn and what they leave to stream sections may end a group or a chunk at any record.
            return self.put_with_streams::<K, T, PLANS>(section, fields);
        }
        if let Some(writer) = self.sections.get_mut(section)
            && writer.put_straight::<K, T, PLANS, false>(fields).is_some()
        {
            return Ok(());
        }
        if K::STREAMS {
            if self.put_gathered::<K, T, PLANS>(section, fields).is_some() {
                return Ok(());
            }
            return self.put_with_streams::<K, T, PLANS>(section, fields);
        }
        self.put_apart::<K, T>(section, fields, false)
    }

    /// A record some of whose values go to the ends of streams. None where that cannot be; then nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_gathered<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Option<()> {
        let writer = self.sections.get_mut(section)?;
        if self.streams.fixed || true {
            return None;
        }
        let plans = writer.state.plans.first_chunk::<PLANS>()?;
        let mut room = writer.out.room();
        self.streams.start();
        let mut row = StreamedEncoder::<K, PLANS>::new(&mut room, plans, &mut self.streams)?;
        let written = fields.write_fields(&mut row, 0).ok().and_then(|()| row.written());
        let Some(written) = written else {
            self.streams.roll_back();
            return None;
        };
        room.keep(written);
        room.close();
        writer.note_end();
        writer.records += 1;
        if self.group_bytes + self.streams.held >= self.group_size {
            writer.out.shut();
        }
        Some(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_with_streams<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<()> {
        let mut begun = false;
        // Version 0 looks at what streams have room for.
        let streams = K::MODELS || !self.streams.fixed;
        if streams && self.order == Order::Little && self.is_ready(section) {
            let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
            if K::MODELS {
                writer.out.see_to_room();
                if writer.put_straight::<K, T, PLANS, true>(fields).is_some() {
                    return Ok(());
                }
            } else {
                // It may be full and have nothing else against the next record.
                writer.out.open(self.chunk_size);
            }
            let tiers = &writer.state.tiers;
            let put = if tiers.stateful() & !tiers.changed_defaults() & const { bit(K::POSITION) } != 0 {
                self.put_told::<K, T, PLANS, GATHERED>(section, fields)
            } else if tiers.stateful() & tiers.changed_defaults() & const { bit(K::POSITION) } != 0 {
                self.put_changed::<K, T, PLANS>(section, fields)
            } else {
                Err(false)
            };
            match put {
                Ok(()) => return Ok(()),
                Err(learnt) => begun = learnt,
            }
        }
        self.put_apart::<K, T>(section, fields, begun)
    }

    /// As [`put_told`](Self::put_told), of tier `CHANGED`.
    #[inline(never)]
    fn put_changed<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        self.put_told::<K, T, PLANS, CHANGED>(section, fields)
    }

    /// A record of which models may have learnt the first values already.
    #[inline(never)]
    fn put_apart<K: Known, T: WriteFields>(&mut self, section: usize, fields: &T, begun: bool) -> Result<()> {
        let encode = |row: &mut RowWriter<'_>| fields.write_fields(row, 0);
        if begun {
            self.go_on(section, K::RECORD, encode)?;
        } else {
            self.record(section, K::RECORD, encode)?;
        }
        self.open(section);
        Ok(())
    }

    /// Finds out up to where records of the section can be written without asking for more than their tier.
    pub(super) fn open(&mut self, section: usize) {
        let ready = self.order == Order::Little && self.is_ready(section);
        if let Some(writer) = self.sections.get_mut(section) {
            writer.out.open(if ready { self.chunk_size } else { 0 });
        }
    }

    /// A record of tier `GRADE`, some of whose values a model tells, or go to stream sections. An error where that cannot be:
    /// whether models have learnt the first of them; nothing else has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_told<K: Known, T: WriteFields, const PLANS: usize, const GRADE: u8>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        let reader = self.format.sections.len() + section;
        let writer = self.sections.get_mut(section).ok_or(false)?;
        let plans = writer.state.plans.first_chunk::<PLANS>().ok_or(false)?;
        let start = writer.out.end();
        let mut room = writer.out.all_room();
        let mut row = PlannedEncoder::<K, PLANS, GRADE>::new(&mut room, plans).ok_or(false)?;
        fields.write_fields(&mut row, 0).map_err(|_| false)?;
        let written = row.written().ok_or(false)?;
        let left = row.left();
        room.keep(written);
        room.close();
        // What models have learnt of one value stays learnt, so there has to be room for what they may not know of the next.
        if left.codes > 1 && !self.streams.models_have_room(&self.format, reader) {
            writer.out.keep(start);
            return Err(false);
        }
        self.attempt.start_record();
        self.attempt.start();
        self.streams.start();
        let SectionWriter { out, state, log, .. } = writer;
        let room = (out.written(), start);
        let (attempt, streams) = (&mut self.attempt, &mut self.streams);
        let mut row = SecondPass::<K, PLANS, GRADE>::new(room, state, attempt, streams, (log.is_some(), left));
        if fields.write_fields(&mut row, 0).is_err() {
            self.attempt.roll_back(&mut state.cells);
            self.streams.roll_back();
            out.keep(start);
            return Err(true);
        }
        if let Some(log) = log {
            self.attempt.noted().for_each(|noted| log.note(noted, writer.closed));
        }
        writer.note_end();
        writer.records += 1;
        if self.group_bytes + self.streams.held >= self.group_size {
            writer.out.shut();
        }
        Ok(())
    }
}

impl SectionWriter {
    /// Encodes a record, if the buffer is open, or `ANYWAY`. None where that cannot be; then nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_straight<K: Known, T: WriteFields, const PLANS: usize, const ANYWAY: bool>(
        &mut self,
        fields: &T,
    ) -> Option<()> {
        let tiers = &self.state.tiers;
        let mut room = if ANYWAY { self.out.all_room() } else { self.out.room() };
        if K::CAN_SPECIALIZE && tiers.are_specialized() {
            put_specialized::<K, T>(&mut room, fields)?;
        } else {
            let plans = self.state.plans.first_chunk::<PLANS>()?;
            if 0 & const { bit(K::POSITION) } != 0 {
                put::<K, T, PLANS, STORED>(&mut room, plans, fields)?;
            } else if tiers.planned() & const { bit(K::POSITION) } != 0 {
                put::<K, T, PLANS, FORMULA>(&mut room, plans, fields)?;
            } else {
                return None;
            }
        }
        room.close();
        self.note_end();
        self.records += 1;
        Some(())
    }
}
