//! Decides when a writer passes its records to the sink, which limits the data lost if the program dies.
//!
//! A file writer buffers records until their chunk is full. If stream sections must precede the records that stride
//! through them, it buffers records until the group is full. [`FlushEvery`] bounds the buffered data by size and by
//! age. The write loops need no extra checks: the size bound is one more limit of the open buffer, and the clock closes
//! that buffer.
//!
//! A small chunk compresses worse, so the clock cuts only data that would not fill a chunk in time. The first ring marks
//! the buffered data, and the second ring flushes what is still marked. The size of a trace therefore does not depend
//! on how often the clock rings, unless filling a chunk takes longer than the period between two rings.

use super::clock::Ringing;
use super::{FileWriter, RecordCore, SectionWriter};
use metatf_container::{FlushEvery, Result, Sink, WriteOptions};

/// The limit on the data that a writer buffers.
#[derive(Debug)]
pub(super) struct FlushLimit {
    /// Bytes of content, or `None` if the size is unlimited and the writer does not flush by itself.
    bytes: Option<usize>,
    /// Group size in bytes up to which records can be written without flushing.
    group: usize,
    clock: Option<Ringing>,
}

impl FlushLimit {
    /// The limit for a writer that does not flush by itself.
    const NEVER: Self = Self { bytes: None, group: usize::MAX, clock: None };

    /// Creates the limit. Traces written to memory and version 0 traces are not flushed.
    pub(super) fn new(options: &WriteOptions, is_volatile: bool, sections: &[SectionWriter]) -> Self {
        let never = is_volatile || options.version == 0;
        let FlushEvery { bytes, time } = if never { FlushEvery::NEVER } else { options.flush };
        let buffers = || sections.iter().map(|section| section.out.until()).collect();
        let clock = time.map(|period| Ringing::new(buffers(), period));
        Self { bytes: bytes.or(time.map(|_| usize::MAX)).map(|bytes| bytes.max(1)), clock, ..Self::NEVER }
    }

    /// Returns whether another record may be written without flushing first, given the number of bytes in the group.
    #[inline]
    pub(super) fn allows(&self, group: usize) -> bool {
        group < self.group && !self.is_due()
    }

    /// Returns the maximum number of bytes in the open section, given the number of bytes in the rest of the group.
    pub(super) fn of_section(&self, closed: usize) -> usize {
        self.group.saturating_sub(closed)
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.clock.as_ref().is_some_and(|clock| clock.alarm().is_due())
    }
}

impl RecordCore<dyn Sink + '_> {
    /// Returns the number of buffered bytes outside this section.
    fn held_beside(&self, section: usize) -> usize {
        let others = self.sections.iter().enumerate().filter(|&(i, _)| i != section);
        let tables = self.streams.streams.iter().map(|stream| stream.table.len());
        let closed = if self.waits { self.group_bytes } else { 0 };
        others.map(|(_, writer)| writer.out.len()).chain(tables).sum::<usize>() + closed + self.streams.held
    }

    /// Flushes the buffered data if a flush is due, before a record of the section is written.
    pub(super) fn flush_due(&mut self, section: usize) -> Result<()> {
        let Some(most) = self.flush_limit.bytes else { return Ok(()) };
        let own = self.sections.get(section).map_or(0, |writer| writer.out.len());
        let mut beside = self.held_beside(section);
        if own + beside >= most {
            // Do not wait for the compression threads, so that they do not slow down a busy writer.
            self.flush_held(false)?;
            beside = self.held_beside(section);
        }
        if let Some(clock) = self.flush_limit.clock.as_ref().filter(|clock| clock.alarm().is_due()) {
            clock.alarm().stop();
            self.flush_aged()?;
            beside = self.held_beside(section);
        }
        self.flush_limit.group = most.saturating_sub(beside).saturating_add(self.group_bytes + self.streams.held);
        Ok(())
    }

    /// Flushes the data that was already buffered when this function was last called, and marks the rest.
    fn flush_aged(&mut self) -> Result<()> {
        if self.waits {
            if self.sections.iter().any(|writer| writer.aged) {
                self.next_group()?;
            }
        } else {
            for section in 0..self.sections.len() {
                if self.sections.get(section).is_some_and(|writer| writer.aged) {
                    self.close_chunk(section)?;
                }
            }
        }
        let has_closed = self.waits && !self.waiting.is_empty();
        self.sections.iter_mut().for_each(|writer| writer.aged = has_closed || !writer.out.is_empty());
        self.pass_on(true)
    }

    /// Flushes the buffered data. If `all` is set, also waits for chunks that threads are still compressing.
    pub(super) fn flush_held(&mut self, all: bool) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        if self.waits {
            self.next_group()?;
        } else {
            (0..self.sections.len()).try_for_each(|section| self.close_chunk(section))?;
        }
        self.pass_on(all)
    }

    /// Flushes the sink after writing the finished chunks. If `all` is set, also waits for chunks that threads are
    /// still compressing.
    fn pass_on(&mut self, all: bool) -> Result<()> {
        self.end_in_place();
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) if all => chunks.flush(&mut self.sink),
            Some(FileWriter::Chunks(chunks)) => chunks.flush_written(&mut self.sink),
            _ => Ok(()),
        }
    }

    /// Stops ending groups automatically; from now on, only the caller ends them.
    pub(crate) fn stop_grouping(&mut self) {
        self.group_size = usize::MAX;
        if self.waits {
            self.flush_limit = FlushLimit::NEVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use metatf_container::Forward;

    #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
    mod readings {}

    #[metatf_derive::metatf(dtd = "dtds/HATF10-split.dtd")]
    mod split {}

    /// Writes numbers of records, and rings the clock after each of them. Checks that the second ring flushes what the
    /// first ring marked, but nothing that was written after the marked records were flushed with a full chunk.
    macro_rules! rings {
        ($format:ident, $write:ident, $record:expr) => {{
            let mut writer = $format::Writer::new(Forward(Vec::new())).unwrap();
            let [marked, flushed, marked_again, filled, flushed_again] = [10, 10, 10, 10_000, 0].map(|records: u64| {
                (0..records).for_each(|n| writer.$write(&$record(n)).unwrap());
                writer.inner().core().flush_aged().unwrap();
                writer.inner().core().sections.iter().map(|section| section.out.len()).sum::<usize>()
            });
            assert!(marked > 0 && marked_again > 0 && filled > 0, "{marked} {marked_again} {filled}");
            assert_eq!((flushed, flushed_again), (0, 0));
            writer.finish().unwrap();
        }};
    }

    #[test]
    fn the_clock_cuts_only_chunks_that_do_not_fill_in_time() {
        rings!(readings, reading, |time| readings::Reading { time, vfield: [7_u8; 100].as_slice() });
        let free = |n| split::Free { address: 16 * n, time: 0, thread: 0, heap: 0, vfield: [7_u8; 100].as_slice() };
        rings!(split, free, free);
    }
}
