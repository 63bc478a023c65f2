//! Seeking to the n-th data record, using the index if there is one.

use super::{Event, Next, RecordReader};
use crate::state::State;
use metatf_container::{ChunkInfo, Error, ErrorKind, Result};

impl RecordReader<'_> {
    /// Seeks to data record `n` (counting from 0, in file order), which [`next_event`](Self::next_event) returns next.
    /// Seeking past the last record moves to the end. In a version 1 file, or a file in memory, reading resumes at the
    /// record's group; a stream can only move forward.
    ///
    /// # Errors
    /// Returns an error if the trace is a stream and the record has already been passed, or if the trace is malformed
    /// before the record.
    pub fn seek(&mut self, n: u64) -> Result<()> {
        self.commit();
        if self.salvage {
            return Err(Error::at(0, ErrorKind::Usage("salvaging requires reading in file order")));
        }
        if self.version_0() {
            self.start_over();
        } else {
            match self.container.chunks().map(<[ChunkInfo]>::to_vec) {
                Ok(chunks) => self.enter_group(&chunks, n)?,
                Err(error) if self.records_read() > n => return Err(error),
                Err(_) => {}
            }
        }
        while self.found.is_none() {
            match self.next_event()? {
                Some(event @ Event::Record(_)) if self.records_read() > n => self.found = Some(event),
                Some(_) => {}
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Seeks to the first of the last `n` data records, if the trace is complete and its chunks determine where these
    /// records start. Otherwise, does not move. Returns whether the position changed.
    ///
    /// # Errors
    /// Returns an error if the trace is malformed before these records.
    pub fn seek_last(&mut self, n: u64) -> Result<bool> {
        if self.salvage || self.version_0() {
            return Ok(false);
        }
        let declared = self.container.header().nrecords;
        let Ok(chunks) = self.container.chunks().map(<[ChunkInfo]>::to_vec) else { return Ok(false) };
        let records: u64 = chunks.iter().filter(|c| self.holds_records(c)).map(|c| u64::from(c.nrecords)).sum();
        // If records are missing, do not seek. Reading to the end then reports the mismatch.
        if records != declared {
            return Ok(false);
        }
        self.seek(records.saturating_sub(n))?;
        Ok(true)
    }

    pub(super) fn holds_records(&self, chunk: &ChunkInfo) -> bool {
        chunk.is_data() && !self.format.section_index(chunk.section).is_some_and(|section| self.is_stream(section))
    }

    /// Returns to the first part of a version 0 file.
    fn start_over(&mut self) {
        self.parts = self.table.iter().cloned().collect();
        self.records = 0;
        self.last_section = 0;
        self.forget();
        self.group_open = true;
        self.streams.restart();
    }

    /// Discards the state of the part being read.
    fn forget(&mut self) {
        self.forget_ahead();
        self.current = None;
        self.kept = None;
        self.pending = None;
        self.found = None;
        self.queue.clear();
        self.elements.clear();
        self.shared.clear();
        self.seen.fill(false);
        self.group_open = false;
        self.flushed = false;
        self.next = Next::Unknown;
        self.states = (0..self.format.sections.len()).map(|i| State::new(&self.format, i)).collect();
    }

    /// Moves to the first chunk of the group that contains record `n`, after reading the shared tables before it.
    fn enter_group(&mut self, chunks: &[ChunkInfo], n: u64) -> Result<()> {
        let (mut group, mut before, mut records) = (0, 0, 0_u64);
        for (i, chunk) in chunks.iter().enumerate() {
            if chunk.is_group_start() {
                (group, before) = (i, records);
            }
            if self.holds_records(chunk) {
                records += u64::from(chunk.nrecords);
                if records > n {
                    break;
                }
            }
        }
        if !chunks.get(group).is_some_and(ChunkInfo::is_group_start) {
            return Ok(());
        }
        let tables: Vec<usize> = (0..group).filter(|&i| chunks.get(i).is_some_and(ChunkInfo::is_shared)).collect();
        self.forget();
        self.streams = crate::streams::Streams::new(&self.format);
        self.clear_tables(|_| true);
        for i in tables {
            let part = self.container.read_chunk(i)?;
            if let Some(section) = self.format.section_index(part.section).filter(|&i| self.is_stream(i)) {
                self.add_piece(section, &part, false);
            }
        }
        self.records = before;
        self.container.seek_chunk(group)
    }
}
