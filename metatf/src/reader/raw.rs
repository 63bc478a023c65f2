//! Raw streams that are damaged (spec 5.4): which of their bytes are whole records.
//!
//! Nothing says where a record begins but the record before it. Behind damage that is the next place from which two records can be decoded,
//! or one up to the end of the file: tags and constants hold there, and fields end inside of the file. A catch-all record may be any
//! bytes: it is none of these two, and does not count right before damage.

use super::{At, Event, RecordReader};
use crate::format::Record;
use crate::state::State;
use crate::streams::Streams;
use metatf_container::{Error, Reader, Result};
use std::ops::Range;
use std::{iter, mem};

/// Records that have to be whole one behind the other, for a place behind damage to be the beginning of one.
const RECORDS: u64 = 2;

/// Catch-all records right before damage that do not count, at most: this many in a row do not occur by chance, and time is bounded.
const UNSURE: u64 = 1000;

/// What was read from a place.
struct Run {
    records: u64,
    /// Behind the last whole record.
    end: u64,
    /// Why it did not go on.
    error: Option<Error>,
}

impl RecordReader<'_> {
    /// Has a raw stream give the parts of it that are whole records, and report the rest as lost. No effect on traces.
    pub(super) fn find_whole_parts(&mut self) {
        let Some(section) = self.container.raw_section() else { return };
        let parts: Vec<_> = self.container.raw_parts().collect();
        let (mut whole, mut lost) = (Vec::new(), Vec::new());
        for part in parts {
            self.find_whole(section, part, &mut whole, &mut lost);
        }
        self.container.set_raw_parts(whole);
        // Those that were listed are others now.
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
            // Elements have no tags: behind damage none is found again.
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

    /// Whether a record of the section may begin there, by its tag.
    fn is_tag(&self, state: &State, data: &[u8], at: u64) -> bool {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let bytes = data.get(at..).and_then(|data| data.get(..usize::from(self.format.tag_width)));
        bytes.is_some_and(|bytes| {
            let tag = u32::try_from(self.order.read(bytes)).unwrap_or(u32::MAX);
            state.encoding.listed(tag).is_some_and(|listed| state.encoding.has_own_tag(listed))
        })
    }

    /// Reads records up to the first that is not whole, or to the catch-all records right before that. Behind damage it ends early
    /// where no record begins.
    fn run_to_damage(&mut self, from: u64, is_behind: bool) -> Run {
        let (mut records, mut end) = (0, from);
        let mut run = Run { records, end, error: None };
        loop {
            match self.record_to_its_end() {
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

    /// Reads a record, and looks at all of it. Gives whether it is not a catch-all record.
    fn record_to_its_end(&mut self) -> Result<Option<bool>> {
        let Some(event) = self.next_event()? else { return Ok(None) };
        if let Event::Record(_) | Event::Comment(_) | Event::Element(..) = event {
            self.decode(|row| Ok(row.walk(&mut ())?))?;
        }
        let record = |at: At| self.format.records.get(usize::from(at.record));
        let is_catch_all = matches!(event, Event::Record(at) if record(at).is_some_and(Record::is_catch_all));
        Ok(Some(!is_catch_all))
    }
}
