//! Writes records whose types are known at compile time. Each record goes to the first encoder that its tier allows:
//! specialized, planned, stateful or general.

use super::{RecordCore, SectionWriter};
use crate::encode::{Attempt, Effects, RowWriter, StatefulEncoder, StreamWriters, add_time, put, put_specialized};
use crate::format::FormatRef;
use crate::record::{Known, Puts, WriteFields};
use crate::state::{Encoding, State, bit};
use metatf_container::{Order, Result, Sink};

impl Puts for &mut RecordCore<dyn Sink + '_> {
    type Done = Result<()>;

    #[inline]
    fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Result<()> {
        (**self).put::<K, T, PLANS>(fields)
    }
}

impl RecordCore<dyn Sink + '_> {
    /// Writes a `K`, whose section has `PLANS` plans.
    #[cfg_attr(not(debug_assertions), inline(always))]
    #[cfg_attr(debug_assertions, inline)]
    pub(crate) fn put<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Result<()> {
        let section = K::SECTION;
        if K::IS_GENERAL {
            return self.put_general::<K, T>(section, fields, false);
        }
        add_time::<K, T>(&mut self.attempt.times, fields);
        let mut learnt = false;
        if let Some(writer) = self.sections.get_mut(section) {
            let is_stateful = writer.state.encoding.tiers.stateful() & const { bit(K::POSITION) } != 0;
            if (K::STATEFUL || K::MODELS) && is_stateful {
                match self.put_stateful::<K, T, PLANS>(section, fields) {
                    Ok(()) => return Ok(()),
                    Err(has_learnt) => learnt = has_learnt,
                }
            } else if writer.put_planned::<K, T, PLANS>(fields).is_some() {
                return Ok(());
            }
        }
        self.put_general::<K, T>(section, fields, learnt)
    }

    /// Encodes a record of the stateful tier. If this is not possible, nothing changes, and the error indicates whether
    /// models have learned the record's first values.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_stateful<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        section: usize,
        fields: &T,
    ) -> Result<(), bool> {
        let Self { sections, streams, attempt, format, strict, .. } = self;
        let writer = sections.get_mut(section).ok_or(false)?;
        let is_expected = K::CAN_EXPECT && writer.state.encoding.tiers.expected() & const { bit(K::POSITION) } != 0;
        let held = streams.held;
        let models_may_learn = !*strict;
        let encoded = if is_expected {
            writer.put_stateful::<K, T, PLANS, true>(format, streams, attempt, models_may_learn, fields)
        } else if !K::CAN_EXPECT {
            writer.put_stateful::<K, T, PLANS, false>(format, streams, attempt, models_may_learn, fields)
        } else {
            writer.put_changed::<K, T, PLANS>(format, streams, attempt, models_may_learn, fields)
        };
        if encoded.is_none() {
            return Err(writer.take_back(streams, attempt));
        }
        writer.note_end();
        writer.records += 1;
        // The buffer's limit was computed for the number of bytes buffered in stream sections at that time.
        let (has_grown, length) = (streams.held != held, writer.out.len());
        let is_outdated = K::MODELS && writer.state.history.models.is_outdated();
        if is_outdated || has_grown && !self.group_has_place(length) {
            self.close_open_section();
        }
        Ok(())
    }

    /// Encodes a record of any tier. `learnt` indicates whether models have already learned its first values.
    #[inline(never)]
    fn put_general<K: Known, T: WriteFields>(&mut self, section: usize, fields: &T, learnt: bool) -> Result<()> {
        let encode = &mut |row: &mut RowWriter<'_>| fields.write_fields(row, 0);
        if learnt {
            self.encode_record(section, K::RECORD, encode)?;
        } else {
            self.record(section, K::RECORD, encode)?;
        }
        self.open(section);
        Ok(())
    }

    /// Determines the limit up to which records of the section can be written with no checks except for their tier.
    pub(super) fn open(&mut self, section: usize) {
        let ready = self.order == Order::Little && self.is_ready(section);
        let most = self.flush_limit.of_section(self.group_bytes + self.streams.held).min(self.chunk_size);
        if let Some(writer) = self.sections.get_mut(section) {
            let Encoding { tiers, plans, .. } = &mut writer.state.encoding;
            tiers.find_expected(plans);
            writer.out.open(if ready { most } else { 0 });
        }
    }
}

impl SectionWriter {
    /// Encodes a record of the stateful tier. Returns `None` if this is not possible; the record must then be [rolled
    /// back](Self::take_back).
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_stateful<K: Known, T: WriteFields, const PLANS: usize, const EXPECTED: bool>(
        &mut self,
        format: &FormatRef,
        streams: &mut StreamWriters,
        attempt: &mut Attempt,
        may_learn: bool,
        fields: &T,
    ) -> Option<()> {
        let Self { out, state: State { encoding, history }, log, closed, .. } = self;
        let logged = log.is_some();
        let mut spare = out.spare();
        let effects = Effects { format, history, streams, attempt, logged, may_learn };
        let mut row = StatefulEncoder::<K, PLANS, EXPECTED>::new(&mut spare, encoding, effects)?;
        fields.write_fields(&mut row, 0).ok()?;
        row.commit()?;
        if let Some(log) = log {
            attempt.predictions().iter().for_each(|prediction| log.push(prediction, *closed));
        }
        Some(())
    }

    /// Encodes a record like [`put_stateful`](Self::put_stateful), but out of line, for records whose current encoding
    /// differs from the constants in generated code.
    #[inline(never)]
    fn put_changed<K: Known, T: WriteFields, const PLANS: usize>(
        &mut self,
        format: &FormatRef,
        streams: &mut StreamWriters,
        attempt: &mut Attempt,
        may_learn: bool,
        fields: &T,
    ) -> Option<()> {
        self.put_stateful::<K, T, PLANS, false>(format, streams, attempt, may_learn, fields)
    }

    /// Rolls back the changes of an uncommitted record and returns whether models have learned its first values.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, streams: &mut StreamWriters, attempt: &mut Attempt) -> bool {
        attempt.roll_back(&mut self.state.history.cells);
        streams.roll_back();
        attempt.has_learnt()
    }

    /// Encodes a record of the planned tier if the buffer is open. Returns `None` and changes nothing if this is not
    /// possible.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put_planned<K: Known, T: WriteFields, const PLANS: usize>(&mut self, fields: &T) -> Option<()> {
        let tiers = &self.state.encoding.tiers;
        let is_specialized = K::CAN_SPECIALIZE && tiers.are_specialized();
        if !is_specialized && tiers.planned() & const { bit(K::POSITION) } == 0 {
            return None;
        }
        let mut spare = self.out.spare();
        if is_specialized {
            put_specialized::<K, T>(&mut spare, fields)?;
        } else {
            put::<K, T, PLANS>(&mut spare, self.state.encoding.plans.first_chunk()?, fields)?;
        }
        drop(spare);
        self.note_end();
        self.records += 1;
        Some(())
    }
}
