//! When a writer hands its records on to the sink: what a program loses at most when it dies.
//!
//! A writer of a file holds records until their chunk is full; where stream sections have to stand before what strides through
//! them, until their group is full. [`FlushEvery`] bounds what is held, by bytes and by time. The loops that write know
//! nothing of it: the end of what is allowed is one more limit of the open buffer, and the clock closes that buffer.

use super::clock::Ringing;
use super::{FileWriter, RecordWriter, SectionWriter};
use metatf_container::{FlushEvery, Result, Sink, WriteOptions};

/// What a writer may hold.
#[derive(Debug)]
pub(super) struct FlushLimit {
    /// Bytes of content; `None`: any number, and the writer is not flushed by itself.
    bytes: Option<usize>,
    /// Bytes of the group in progress up to which the section that is written to is ready.
    group: usize,
    clock: Option<Ringing>,
}

impl FlushLimit {
    /// No writer is flushed by itself.
    const NEVER: Self = Self { bytes: None, group: usize::MAX, clock: None };

    /// What is written to memory, or with version 0, is not flushed.
    pub(super) fn new(options: &WriteOptions, is_volatile: bool, sections: &[SectionWriter]) -> Self {
        let never = is_volatile || options.version == 0;
        let FlushEvery { bytes, time } = if never { FlushEvery::NEVER } else { options.flush };
        let buffers = || sections.iter().map(|section| section.out.until()).collect();
        let clock = time.map(|period| Ringing::new(buffers(), period));
        Self { bytes: bytes.or(time.map(|_| usize::MAX)).map(|bytes| bytes.max(1)), clock, ..Self::NEVER }
    }

    /// Whether a record may be written before anything is flushed, where the group has this many bytes.
    #[inline]
    pub(super) fn allows(&self, group: usize) -> bool {
        group < self.group && !self.is_due()
    }

    /// Up to how many bytes the open section may be filled, where the group has this many beside.
    pub(super) fn of_section(&self, closed: usize) -> usize {
        self.group.saturating_sub(closed)
    }

    #[inline]
    fn is_due(&self) -> bool {
        self.clock.as_ref().is_some_and(|clock| clock.alarm().is_due())
    }
}

impl<S: Sink> RecordWriter<S> {
    /// Bytes of content that are held, except for those of one section.
    fn held_beside(&self, section: usize) -> usize {
        let others = self.sections.iter().enumerate().filter(|&(i, _)| i != section);
        let tables = self.streams.streams.iter().map(|stream| stream.table.len());
        let closed = if self.waits { self.group_bytes } else { 0 };
        others.map(|(_, writer)| writer.out.len()).chain(tables).sum::<usize>() + closed + self.streams.held
    }

    /// Flushes what is held if that is due, before a record of the section.
    pub(super) fn flush_due(&mut self, section: usize) -> Result<()> {
        let Some(most) = self.flush_limit.bytes else { return Ok(()) };
        let own = self.sections.get(section).map_or(0, |writer| writer.out.len());
        let mut beside = self.held_beside(section);
        let is_due = self.flush_limit.is_due();
        if is_due || own + beside >= most {
            if let Some(clock) = &self.flush_limit.clock {
                clock.alarm().stop();
            }
            // Where there is much to write, threads that compress are not waited for.
            self.flush_held(is_due)?;
            beside = self.held_beside(section);
        }
        self.flush_limit.group = most.saturating_sub(beside).saturating_add(self.group_bytes + self.streams.held);
        Ok(())
    }

    /// Hands all records that were written on to the sink, and flushes that. What follows is another chunk, and in formats
    /// with stream sections another group. A version 0 file has one group, which is in the sink when the trace is finished:
    /// there nothing happens.
    ///
    /// # Errors
    /// The sink's.
    pub fn flush(&mut self) -> Result<()> {
        self.flush_held(true)
    }

    /// Flushes; `all`: also chunks that threads still compress.
    fn flush_held(&mut self, all: bool) -> Result<()> {
        if self.streams.fixed {
            return Ok(());
        }
        if self.waits {
            self.next_group()?;
        } else {
            (0..self.sections.len()).try_for_each(|section| self.close_chunk(section))?;
        }
        self.end_in_place();
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) if all => chunks.flush(),
            Some(FileWriter::Chunks(chunks)) => chunks.flush_written(),
            _ => Ok(()),
        }
    }

    /// From here on the caller says where groups end.
    pub(crate) fn stop_grouping(&mut self) {
        self.group_size = usize::MAX;
        if self.waits {
            self.flush_limit = FlushLimit::NEVER;
        }
    }
}
