//! Writes stream section elements supplied by the caller, either into a group or into a table that grows over the whole
//! trace.

use super::RecordCore;
use crate::encode::{GivenElements, HELD_A_NUMBER, RowWriter};
use crate::format::Interpretation;
use metatf_container::{Error, ErrorKind, MAX_RAW_LEN, Result, Sink};

impl RecordCore<dyn Sink + '_> {
    pub(crate) fn element(
        &mut self,
        section: usize,
        shared: bool,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<u64> {
        self.close_open_section();
        let record = self.element_record(section)?;
        let shared = shared && self.waits;
        // Chunks of numbers adapt their width, except in version 0 and in tables, whose offsets have already been
        // handed out.
        let adapts = !shared && !self.streams.fixed;
        self.encode_element(section, record, adapts, encode)?;
        let encoded = self.element.in_use();
        let Some(writer) = self.streams.streams.get_mut(section) else { return Ok(0) };
        if shared {
            let offset = writer.table_length;
            writer.table_length += encoded.len() as u64;
            writer.table.extend_from_slice(encoded);
            writer.table_count += 1;
            // The chunks of the current group have not been written yet, so this table chunk precedes them in the file.
            if writer.table.len() > MAX_RAW_LEN / 2 {
                self.put_table(section)?;
            }
            return Ok(offset);
        }
        let single = self.format.records.get(usize::from(record)).is_some_and(|r| r.single_number().is_some());
        let value = self.sections.get(section).and_then(|s| {
            let last = s.state.encoding.plan(0).map(|p| p.last as usize)?;
            s.state.history.cells.get(last).copied()
        });
        if writer.given.is_empty() {
            writer.given.push(GivenElements::default());
        }
        // Offsets into a section of single numbers require a fixed width, which only version 0 guarantees.
        let width =
            self.format.records.get(usize::from(record)).and_then(|r| r.single_number()).map_or(0, |l| l.width());
        let offset = writer.next_local(width);
        if let Some(segment) = writer.given.last_mut() {
            segment.count += 1;
            match value {
                Some(value) if single => {
                    segment.values.push(value);
                    self.streams.held += HELD_A_NUMBER;
                }
                _ => {
                    segment.raw.extend_from_slice(encoded);
                    self.streams.held += encoded.len();
                }
            }
        }
        Ok(offset)
    }

    pub(super) fn interpretation(&self, section: usize, record: u16, leaf: u8) -> Option<Interpretation> {
        let position = self.format.sections.get(section)?.records.iter().position(|&r| r == record)?;
        let encoding = &self.sections.get(section)?.state.encoding;
        Some(encoding.interpretation(encoding.plans_of(position) + usize::from(leaf)))
    }

    /// Returns whether sections can be shared tables, which version 0 does not have.
    #[cfg(feature = "dynamic")]
    pub(crate) fn can_share(&self) -> bool {
        self.waits
    }

    /// Returns the byte order of the trace.
    #[cfg(feature = "dynamic")]
    pub(crate) fn order(&self) -> metatf_container::Order {
        self.order
    }

    pub(super) fn next_offset(&self, section: usize) -> u64 {
        let Some(writer) = self.streams.streams.get(section) else { return 0 };
        if self.waits {
            return writer.table_length;
        }
        let record = self.element_record(section).ok().and_then(|r| self.format.records.get(usize::from(r)));
        writer.next_local(record.and_then(|r| r.single_number()).map_or(0, |l| l.width()))
    }

    fn element_record(&self, section: usize) -> Result<u16> {
        let stream = self.format.sections.get(section).filter(|s| s.stream);
        let record = stream.and_then(|s| s.records.first()).copied();
        record.ok_or(Error::at(0, ErrorKind::Usage("the section is not a stream section")))
    }

    /// Encodes a stream element to `self.element` with the state of its section. If `adapts` is set and the
    /// section holds single numbers, accepts values that do not fit, because the chunk's width can be adapted.
    fn encode_element(
        &mut self,
        section: usize,
        record: u16,
        adapts: bool,
        encode: &mut dyn FnMut(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some((r, writer)) = self.format.records.get(usize::from(record)).zip(self.sections.get_mut(section)) else {
            return Err(Error::at(0, ErrorKind::Usage("the section has no such record")));
        };
        let tries = (&mut self.attempt, &mut self.streams);
        self.element.keep(0);
        let out = self.element.prefilled();
        let mut row = RowWriter::begin(&self.format, (r, 0), &mut writer.state, out, self.order, tries);
        let encoded = encode(&mut row).and_then(|()| row.finish());
        let end = row.at;
        self.element.keep(end);
        // Only a section of single numbers can adapt the width of its chunks, because other sections have no metadata.
        let misfit = self.attempt.misfits.first().filter(|_| !adapts || r.single_number().is_none()).copied();
        if encoded.is_ok() && misfit.is_none() {
            return Ok(());
        }
        self.attempt.roll_back(&mut writer.state.history.cells);
        encoded?;
        let Some(misfit) = misfit else { return Ok(()) };
        let width = writer.state.encoding.plan(usize::from(misfit.leaf)).map_or(0, |p| p.width.get());
        let mut error = Error::at(0, misfit.error(width));
        error.place.section = self.number(section);
        error.place.leaf = Some(misfit.leaf);
        Err(error)
    }
}
