//! Writes a record with any plans, widening leaves with metadata records until the complete record fits.

use super::{RecordCore, no_such_record};
use crate::encode::{Misfit, RowWriter, UNPREDICTED};
use crate::format::{COMMENT, Interpretation};
use crate::formula::bytes_for;
use crate::state::Change;
use metatf_container::{Error, ErrorKind, Place, Result, Sink};

impl RecordCore<dyn Sink + '_> {
    pub(crate) fn record(
        &mut self,
        section: usize,
        record: u16,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        if !self.is_ready(section) {
            self.prepare(section, record)?;
        }
        self.attempt.start_record();
        self.encode_record(section, record, encode)
    }

    /// Writes a record like [`record`](Self::record), in a section that is ready and whose models may have learned
    /// values of the record.
    pub(super) fn encode_record(
        &mut self,
        section: usize,
        record: u16,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.close_open_section();
        // Every round widens at least one leaf or ends the loop.
        loop {
            match self.attempt_record(section, record, encode) {
                Ok(true) => break,
                tried => self.widen_all(tried, section, record)?,
            }
        }
        if record != COMMENT
            && let Some(writer) = self.sections.get_mut(section)
        {
            writer.records += 1;
        }
        Ok(())
    }

    /// Widens the leaves of a record that did not fit, or returns the error if the record could not be encoded.
    #[cold]
    #[inline(never)]
    fn widen_all(&mut self, tried: Result<bool>, section: usize, record: u16) -> Result<()> {
        tried?;
        let position = self.position(section, record)?;
        let misfits = std::mem::take(&mut self.attempt.misfits);
        misfits.into_iter().try_for_each(|misfit| self.widen(section, record, position, misfit))
    }

    /// Encodes a record once. Returns false, without having written anything, if a value did not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn attempt_record(
        &mut self,
        section: usize,
        record: u16,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<bool> {
        let writer = self.sections.get_mut(section);
        let Some(((r, writer), first)) = self.format.records.get(usize::from(record)).zip(writer).and_then(|found| {
            let first = found.1.state.encoding.plans_of_record(record)?;
            Some((found, first))
        }) else {
            return Err(no_such_record());
        };
        let tries = (&mut self.attempt, &mut self.streams);
        let out = writer.out.prefilled();
        let start = out.1;
        let mut row = RowWriter::begin(&self.format, (r, first), &mut writer.state, out, self.order, tries);
        row.tag(r.tag);
        let mut encoded = encode(&mut row);
        if encoded.is_ok() {
            encoded = row.finish();
        }
        let end = row.at;
        let too_long = end - start > metatf_container::MAX_RAW_LEN;
        if encoded.is_ok() && self.attempt.misfits.is_empty() && !too_long {
            writer.out.keep(end);
            if !self.attempt.predicts() || self.predict(section) {
                if let Some(writer) = self.sections.get_mut(section) {
                    writer.note_end();
                }
                return Ok(true);
            }
        }
        self.take_back(section, start, encoded, too_long)
    }

    /// Runs the models of the record's predicted leaves. Returns false if a predicted leaf does not fit.
    #[inline]
    fn predict(&mut self, section: usize) -> bool {
        if let Some(writer) = self.sections.get_mut(section) {
            let (state, out) = (&mut writer.state, writer.out.written());
            let how = (self.order, self.strict);
            self.attempt.predict(&self.format, state, &mut self.streams, how, out);
            if let Some(log) = writer.log.as_mut().filter(|_| self.attempt.misfits.is_empty()) {
                self.attempt.predictions().iter().for_each(|prediction| log.push(prediction, writer.closed));
            }
        }
        self.attempt.misfits.is_empty()
    }

    /// Rolls back a record that did not fit or could not be encoded.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, section: usize, start: usize, encoded: Result<()>, too_long: bool) -> Result<bool> {
        if let Some(writer) = self.sections.get_mut(section) {
            writer.out.keep(start);
            self.attempt.roll_back(&mut writer.state.history.cells);
        }
        self.streams.roll_back();
        encoded?;
        if too_long {
            return Err(Error::at(0, ErrorKind::Limit("a record of more than 64 MiB does not fit in a chunk")));
        }
        Ok(false)
    }

    /// Writes a metadata record that makes a value fit, either by setting a new previous value for the leaf or by
    /// widening the leaf.
    fn widen(&mut self, section: usize, record: u16, position: usize, misfit: Misfit) -> Result<()> {
        let Some(writer) = self.sections.get(section) else { return Ok(()) };
        let index = writer.state.encoding.plans_of(position) + usize::from(misfit.leaf);
        let interpretation = writer.state.encoding.interpretation(index);
        let width = writer.state.encoding.plan(index).map_or(0, |p| p.width.get());
        if self.is_from_header(record, misfit.leaf) {
            let (format, value) = (self.format.clone(), misfit.value);
            if self.raw
                && let Some(writer) = self.sections.get_mut(section)
                && writer.state.take_header(&format, position, misfit.leaf, value)
            {
                return Ok(());
            }
            if !self.strict {
                let change = Change::Interpretation(Interpretation::Default(value));
                return self.put_change(section, record, misfit.leaf, false, change);
            }
        }
        if self.strict {
            if let Some(continued) = self.continued(section, index, misfit.value) {
                return self.put_change(section, record, misfit.leaf, false, Change::Interpretation(continued));
            }
            let mut error = Error::at(0, misfit.error(width));
            error.place = Place { section: self.number(section), leaf: Some(misfit.leaf), ..Place::default() };
            error.place.tag = self.format.records.get(usize::from(record)).map(|r| r.tag);
            return Err(error);
        }
        if misfit.needs == UNPREDICTED {
            let wanted = bytes_for(misfit.value, false).next_power_of_two();
            self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
            return self.put_change(section, record, misfit.leaf, false, Change::Interpretation(Interpretation::None));
        }
        if let Some(restarted) = restart(interpretation, misfit.value).filter(|_| width > 0 || !interpretation.stores())
            && self.may_restart(section, index)
        {
            let change = Change::Interpretation(restarted);
            return self.put_change(section, record, misfit.leaf, false, change);
        }
        let Some(writer) = self.sections.get(section) else { return Ok(()) };
        let wanted = misfit.needs.next_power_of_two();
        if interpretation.stores() {
            // If the leaf is repeated, an earlier item of this record may have widened it already.
            if width < wanted {
                self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
            }
            return Ok(());
        }
        if writer.state.encoding.remembered(index) < wanted {
            self.put_change(section, record, misfit.leaf, false, Change::Width(wanted))?;
        }
        self.put_change(section, record, misfit.leaf, false, Change::Interpretation(Interpretation::None))
    }

    /// Returns the interpretation with which a value can follow the leaf's last value before the reset, if no value has
    /// followed yet. A strict writer accepts the value, because its user does not choose where groups end.
    fn continued(&self, section: usize, plan: usize, value: u64) -> Option<Interpretation> {
        let writer = self.sections.get(section)?;
        let interpretation = writer.state.encoding.interpretation(plan);
        let plan = writer.state.encoding.plan(plan)?;
        let cell = plan.write as usize;
        let (before, now) = (*writer.before_reset.get(cell)?, *writer.state.history.cells.get(cell)?);
        let (initial, fits) = match interpretation {
            Interpretation::Delta(initial) => {
                (initial, bytes_for(value.wrapping_sub(before), true) <= plan.width.get())
            }
            Interpretation::Stride(initial, stride) => (initial, value == before.wrapping_add(stride)),
            _ => return None,
        };
        restart(interpretation, value).filter(|_| fits && now == initial)
    }

    /// Returns whether the leaf takes its value from the header of a file.
    fn is_from_header(&self, record: u16, leaf: u8) -> bool {
        let record = self.format.records.get(usize::from(record));
        record.and_then(|record| record.leaves.get(usize::from(leaf))).is_some_and(|leaf| leaf.header.is_some())
    }

    /// Returns whether a jump of the leaf with this plan may be encoded as a new previous value, which requires that
    /// recent records contained no jump.
    fn may_restart(&mut self, section: usize, plan: usize) -> bool {
        let Some(writer) = self.sections.get_mut(section) else { return false };
        let cell = writer.state.encoding.plan(plan).map_or(0, |plan| plan.write);
        writer.note_jump(cell) >= RECORDS_BETWEEN_JUMPS
    }
}

/// Minimum number of records between two jumps of a value for which a metadata record per jump is cheaper than a wider
/// leaf. With a one-byte tag, such a metadata record takes 5 to 13 bytes, or at most a fifth of a byte per record.
const RECORDS_BETWEEN_JUMPS: u32 = 64;

/// Returns the interpretation restarted such that its next value is `value`, or `None` if it does not depend on the
/// previous value.
fn restart(interpretation: Interpretation, value: u64) -> Option<Interpretation> {
    match interpretation {
        Interpretation::Delta(_) => Some(Interpretation::Delta(value)),
        Interpretation::Stride(_, stride) => Some(Interpretation::Stride(value.wrapping_sub(stride), stride)),
        _ => None,
    }
}
