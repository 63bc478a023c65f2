//! Records whose types are known when the program is compiled: each goes to the first encoder that its tier allows, specialized,
//! planned, two-pass or general.

use super::{RecordWriter, SectionWriter};
use crate::encode::{FirstPass, Omitted, RowWriter, SecondPass, put, put_specialized};
use crate::record::{Known, Puts, WriteFields};
use crate::state::bit;
use metatf_container::{Order, Result, Sink};

impl<S: Sink> Puts for RecordWriter<S> {
    type Done = Result<()>;

    #[inline]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        self.put::<K, T, PLANS>(section, fields)
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Writes a `K` of the section, which has `PLANS` plans.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    #[doc(hidden)]
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline)]
    pub fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, section: usize, fields: &T) -> Result<()> {
        if let Some(writer) = self.sections.get_mut(section)
            && writer.put_planned::<K, T, PLANS>(fields).is_some()
        {
            return Ok(());
        }
        let mut learnt = false;
        if K::STATEFUL || K::MODELS {
            match self.put_stateful::<K, T, PLANS>(section, fields) {
                Ok(()) => return Ok(()),
                Err(has_learnt) => learnt = has_learnt,
            }
        }
        self.put_general::<K, T>(section, fields, learnt)
    }

    /// Encodes a record of the stateful tier. An error where that cannot be: whether models have learnt its first values;
    /// nothing else has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_stateful<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        let writer = self.sections.get_mut(section).ok_or(false)?;
        if writer.state.encoding.tiers.stateful() & const { bit(K::POSITION) } == 0 {
            return Err(false);
        }
        let start = writer.out.end();
        let plans = writer.state.encoding.plans.first_chunk::<PLANS>().ok_or(false)?;
        let mut spare = writer.out.spare();
        self.streams.start_record();
        let mut row = FirstPass::<K, PLANS>::new(&mut spare, plans, &mut self.streams).ok_or(false)?;
        let first = fields.write_fields(&mut row, 0).ok().and_then(|()| row.commit());
        drop(spare);
        let Some(omitted) = first else {
            self.streams.roll_back();
            return Err(false);
        };
        if omitted.any() {
            let done = self.second_pass::<K, T, PLANS>((section, start), fields, omitted);
            let writer = self.sections.get_mut(section).ok_or(false)?;
            if done.is_err() {
                writer.out.keep(start);
                self.streams.roll_back();
                return done;
            }
        }
        let writer = self.sections.get_mut(section).ok_or(false)?;
        writer.note_end();
        writer.records += 1;
        let models_outdated = K::MODELS && writer.state.history.models.is_outdated();
        let length = writer.out.len();
        if models_outdated || !self.group_has_place(length) {
            self.close_open_section();
        }
        Ok(())
    }

    /// Completes a record that starts at a place. An error where that cannot be: whether models have learnt its first values.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn second_pass<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        (section, start): (usize, usize),
        fields: &T,
        omitted: Omitted,
    ) -> Result<(), bool> {
        // What a model has learnt stays learnt. So a strict writer must not find out afterwards that another value does not fit, and
        // stream sections have to take what models do not know of another value.
        let reader = self.format.sections.len() + section;
        let may_fail = self.strict && omitted.mixes_history();
        if may_fail || omitted.codes > 1 && !self.streams.models_can_put(&self.format, reader) {
            return Err(false);
        }
        self.attempt.start_record();
        self.attempt.start_attempt();
        let SectionWriter { out, state, log, closed, .. } = self.sections.get_mut(section).ok_or(false)?;
        let out = (out.written(), start);
        let mut row = SecondPass::<K, PLANS>::new(out, state, &mut self.attempt, log.is_some(), omitted);
        if fields.write_fields(&mut row, 0).is_err() {
            self.attempt.roll_back(&mut state.history.cells);
            return Err(omitted.codes > 0);
        }
        if let Some(log) = log {
            self.attempt.predictions().iter().for_each(|prediction| log.push(prediction, *closed));
        }
        Ok(())
    }

    /// Encodes a record of any tier. `learnt`: models have learnt its first values already.
    #[inline(never)]
    fn put_general<K: Known, T: WriteFields>(&mut self, section: usize, fields: &T, learnt: bool) -> Result<()> {
        let encode = |row: &mut RowWriter<'_>| fields.write_fields(row, 0);
        if learnt {
            self.encode_record(section, K::RECORD, encode)?;
        } else {
            self.record(section, K::RECORD, encode)?;
        }
        self.open(section);
        Ok(())
    }

    /// Finds out up to where records of the section can be written without asking for more than their tier.
    pub(super) fn open(&mut self, section: usize) {
        let ready = self.order == Order::Little && self.is_ready(section);
        let most = self.flush_limit.of_section(self.group_bytes + self.streams.held).min(self.chunk_size);
        if let Some(writer) = self.sections.get_mut(section) {
            writer.out.open(if ready { most } else { 0 });
        }
    }
}

impl SectionWriter {
    /// Encodes a record of the planned tier, if the buffer is open. `None` where that cannot be; then nothing has happened.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_planned<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Option<()> {
        let tiers = &self.state.encoding.tiers;
        let mut spare = self.out.spare();
        if K::CAN_SPECIALIZE && tiers.are_specialized() {
            put_specialized::<K, T>(&mut spare, fields)?;
        } else if tiers.planned() & const { bit(K::POSITION) } != 0 {
            put::<K, T, PLANS>(&mut spare, self.state.encoding.plans.first_chunk()?, fields)?;
        } else {
            return None;
        }
        drop(spare);
        self.note_end();
        self.records += 1;
        Some(())
    }
}
