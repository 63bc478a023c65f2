//! Finds the complete records in corrupt raw streams (spec 5.4).
//!
//! A record has no marker at its start, so its start is known only from the end of the previous record. After
//! corruption, reading resumes at the next offset where two consecutive records, or a single record at the end of the
//! file, can be decoded with valid tags and constants and with all fields inside the file. Since any bytes may look
//! like a catch-all record, catch-all records are trusted neither as the place to resume nor directly before
//! corruption.

use super::{At, Event, RecordReader};
use crate::format::Record;
use crate::state::State;
use crate::streams::Streams;
use metatf_container::{Error, Reader, Result};
use std::ops::Range;
use std::{iter, mem};

/// Number of consecutive complete records that identify the start of a record after corruption.
const RECORDS: u64 = 2;

/// Maximum number of catch-all records discarded directly before corruption. A longer run does not occur by chance, so
/// its records are kept. The limit also bounds the running time.
const UNSURE: u64 = 1000;

/// The result of reading from an offset.
struct Run {
    records: u64,
    /// Offset after the last complete record.
    end: u64,
    /// The reason why reading stopped.
    error: Option<Error>,
}

impl RecordReader<'_> {
    /// Restricts a raw stream to the parts that consist of complete records and reports the rest as lost. Has no effect
    /// on traces.
    pub(super) fn find_whole_parts(&mut self) {
        let Some(section) = self.container.raw_section() else { return };
        let parts: Vec<_> = self.container.raw_parts().collect();
        let (mut whole, mut lost) = (Vec::new(), Vec::new());
        for part in parts {
            self.find_whole(section, part, &mut whole, &mut lost);
        }
        self.container.set_raw_parts(whole);
        // The parts listed before are no longer valid.
        self.table.clear();
        self.parts.clear();
        self.streams = Streams::new(&self.format);
        self.read_table();
        for (place, error) in lost {
            self.container.report_raw_loss(place, error);
        }
    }

    fn find_whole(
        &self,
        number: u8,
        part: Range<u64>,
        whole: &mut Vec<Range<u64>>,
        lost: &mut Vec<(Range<u64>, Error)>,
    ) {
        let data = self.container.input().unwrap_or_default();
        let header = self.container.header();
        let Some(section) = self.format.section_index(number) else { return };
        let Some(state) = self.states.get(section) else { return };
        let mut states = Vec::new();
        let mut run = |from: u64, is_behind: bool| {
            let mut reader = Reader::raw_from_slice(data, header.class, header.order, number)?;
            reader.set_raw_parts(iter::once(from..part.end));
            let mut reader = RecordReader::with(self.format.clone(), reader, mem::take(&mut states))?;
            reader.set_header(&self.header);
            reader.set_all(true);
            let run = reader.run_to_damage(from, is_behind);
            states = mem::take(&mut reader.states);
            Ok::<_, Error>(run)
        };
        let mut at = part.start;
        let mut found = run(at, false);
        while let Ok(Run { end, error, .. }) = found {
            if at < end {
                whole.push(at..end);
            }
            let Some(error) = error else { return };
            // Elements have no tags, so they cannot be found after corruption.
            let begins = |at: &u64| !self.is_stream(section) && self.is_tag(state, data, *at);
            let next = (end + 1..part.end).filter(begins).find_map(|from| {
                let run = run(from, true).ok()?;
                (run.records >= RECORDS || run.records > 0 && run.end == part.end).then_some((from, run))
            });
            lost.push((end..next.as_ref().map_or(part.end, |(from, _)| *from), error));
            let Some((from, run)) = next else { return };
            (at, found) = (from, Ok(run));
        }
    }

    /// Returns whether a record of the section may begin at an offset, based on the tag there.
    fn is_tag(&self, state: &State, data: &[u8], at: u64) -> bool {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = data.get(at..).and_then(|data| data.get(..usize::from(self.format.tag_width)));
        bytes.is_some_and(|bytes| {
            let tag = u32::try_from(self.order.read(bytes)).unwrap_or(u32::MAX);
            state.encoding.listed(tag).is_some_and(|listed| state.encoding.has_own_tag(listed))
        })
    }

    /// Reads records up to the first incomplete one, or up to the catch-all records directly before it. After
    /// corruption, stops early if no record begins at the start.
    fn run_to_damage(&mut self, from: u64, is_behind: bool) -> Run {
        let (mut records, mut end) = (0, from);
        let mut run = Run { records, end, error: None };
        loop {
            match self.record_to_its_end(is_behind && records == 0) {
                Ok(None) => return Run { records, end, error: None },
                Ok(Some(has_own_tag)) => {
                    records += 1;
                    end = from + self.position() as u64;
                    if has_own_tag || records - run.records > UNSURE {
                        (run.records, run.end) = (records, end);
                    } else if is_behind && records <= RECORDS {
                        return run;
                    }
                }
                Err(error) => return Run { error: Some(error), ..run },
            }
        }
    }

    /// Reads a record and decodes it completely. Returns `None` at the end, and otherwise whether the record is
    /// trusted, which means that it is not a catch-all record and, if reading resumes here, that it does not extend to
    /// the end anyway.
    fn record_to_its_end(&mut self, resumes: bool) -> Result<Option<bool>> {
        let Some(event) = self.next_event()? else { return Ok(None) };
        if let Event::Record(_) | Event::Comment(_) | Event::Element(..) = event {
            self.decode(|row| Ok(row.walk(&mut ())?))?;
        }
        let record = |at: At| self.format.records.get(usize::from(at.record));
        let is_unsure = |record: &Record| record.is_catch_all() || resumes && record.ends_content();
        let is_trusted = !matches!(event, Event::Record(at) if record(at).is_some_and(is_unsure));
        Ok(Some(is_trusted))
    }
}
