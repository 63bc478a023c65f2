//! Records that come one after the other without ado, decoded in one loop that keeps in registers where it is.
//!
//! What is out of the ordinary (metadata, a comment, an unknown tag, the last bytes of a part) ends the run, before the
//! record that it is about; the reader's other way takes it from there.

use super::RecordReader;
use super::rows::{Apart, One};
use crate::container::{Order, Origin};
use crate::error::Error;
use crate::format::{Format, METADATA};
use crate::row::{Bytes, ContentRow, Row, Stopped};
use crate::state::{Listed, State};
use crate::streams::Streams;
use std::ops::ControlFlow;

/// The records of a part from its next on.
pub(crate) struct Run<'r> {
    pub(super) format: &'r Format,
    pub(crate) data: &'r [u8],
    pub(super) position: usize,
    pub(crate) state: &'r mut State,
    pub(crate) streams: &'r mut Streams,
    source: &'r dyn Bytes,
    origin: Origin,
    /// What stands before the part in its section, or in the file.
    pub(super) base: u64,
    pub(super) order: Order,
    /// Bytes of a metadata value that does not say how many it has.
    pub(super) word: usize,
    /// Records read.
    pub(super) count: u64,
    stopped: &'r mut Option<Error>,
}

/// What has to be told of the end of a run.
pub(crate) struct End<'t> {
    section: usize,
    position: &'t mut usize,
    found: &'t mut u64,
    records: &'t mut u64,
    finished: &'t mut bool,
}

impl End<'_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn section(&self) -> usize {
        self.section
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn tell(&mut self, position: usize, count: u64, stopped: bool) {
        *self.position = position;
        *self.found += count;
        *self.records += count;
        *self.finished = stopped;
    }

    /// Nothing comes after an error.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn finish(&mut self) {
        *self.finished = true;
    }
}

impl RecordReader<'_> {
    /// Gives the records that come next, and the index of their section, to `read`: once more behind metadata, until it breaks.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn run<'t, T>(
        &'t mut self,
        mut read: impl FnMut(usize, &mut Run<'t>) -> ControlFlow<T>,
    ) -> Option<ControlFlow<T>> {
        if !self.is_idle() {
            return None;
        }
        let (mut run, mut end) = self.start_run()?;
        let result = loop {
            let result = read(end.section, &mut run);
            if result.is_break() || run.stopped.is_some() || run.apply_metadata().is_none() {
                break result;
            }
        };
        end.tell(run.position, run.count, run.stopped.is_some());
        Some(result)
    }

    /// The section of the part in hand, by its index.
    #[inline]
    pub(crate) fn section(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.section)
    }

    /// Whether a data record comes next without ado.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_plain(&self) -> bool {
        self.next_listed().is_some_and(|listed| listed.record > METADATA)
    }

    /// The record that comes next without ado, data or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_listed(&self) -> Option<Listed> {
        let current = self.current.as_ref().filter(|current| !current.is_element && self.is_idle())?;
        let data = self.container.bytes(&current.content);
        let tag = tag(data, current.position, usize::from(self.format.tag_width), self.order);
        self.states.get(current.section)?.listed(tag?)
    }

    /// What decodes the next data record, where it comes without ado.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn one(&mut self) -> Option<One<'_>> {
        if !self.is_idle() {
            return None;
        }
        self.start_run().map(|(run, end)| One { run, end })
    }

    /// Decodes the record that [`is_plain`](Self::is_plain) found, leaf by leaf. Should it stop, it gives the place where the
    /// error is; see [`why`](super::why).
    pub(crate) fn one_apart<'t, T>(
        &'t mut self,
        read: impl FnOnce(usize, &mut Apart<'_, 't>) -> ControlFlow<T>,
    ) -> Result<T, Option<&'t mut Option<Error>>> {
        let (mut run, mut end) = self.start_run().ok_or(None)?;
        match read(end.section, &mut Apart(&mut run)) {
            ControlFlow::Break(record) => {
                end.tell(run.position, 1, false);
                Ok(record)
            }
            ControlFlow::Continue(()) => {
                *end.finished = true;
                Err(Some(run.stopped))
            }
        }
    }

    /// The reader once more, to go on where a first try with it has given nothing: what the borrow checker cannot see.
    ///
    /// # Safety
    /// Of the reader that this gives nothing may be alive when `self` is used again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn once_more<'t>(&mut self) -> &'t mut Self {
        // SAFETY: the caller sees to it that there is one user at a time.
        unsafe { &mut *std::ptr::from_mut(self) }
    }

    /// Nothing was announced, and nothing waits.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_idle(&self) -> bool {
        !(self.finished | self.is_ahead) && self.pending.is_none() && self.found.is_none() && self.queue.is_empty()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_run(&mut self) -> Option<(Run<'_>, End<'_>)> {
        let word = self.word();
        let current = self.current.as_mut().filter(|current| !current.is_element)?;
        let section = current.section;
        let run = Run {
            format: &self.format,
            data: self.container.bytes(&current.content),
            position: current.position,
            state: self.states.get_mut(section)?,
            streams: &mut self.streams,
            source: &self.container,
            origin: current.origin,
            base: current.base,
            order: self.order,
            word,
            count: 0,
            stopped: &mut self.stopped,
        };
        let (position, found) = (&mut current.position, &mut current.found);
        Some((run, End { section, position, found, records: &mut self.records, finished: &mut self.finished }))
    }

    /// Why the last run stopped, if it was an error.
    pub(crate) fn stopped(&mut self) -> Option<Error> {
        self.stopped.take()
    }
}

#[cfg(feature = "dynamic")]
impl<'r> Run<'r> {
    /// Gives the records that come next to `each`, by their positions in the section and leaf by leaf, until it has had
    /// enough. What stops it is told when the run ends.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn rows(
        &mut self,
        mut each: impl FnMut(u16, &mut ContentRow<'_, 'r>) -> Result<ControlFlow<()>, Stopped>,
    ) {
        let width = usize::from(self.format.tag_width);
        let Some(record) = self.format.records.first() else { return };
        let (mut position, mut count) = (self.position, 0);
        // One row for all records: what they have in common stays where it is.
        let mut row = ContentRow {
            format: self.format,
            record,
            data: self.data,
            position,
            start: position,
            origin: self.origin,
            order: self.order,
            first: 0,
            state: self.state,
            streams: self.streams,
            source: self.source,
            items: 0,
            stopped: self.stopped,
        };
        while let Some(tag) = tag(row.data, position, width, row.order) {
            let Some(listed) = row.state.listed(tag).filter(|listed| listed.record > METADATA) else { break };
            let Some(record) = row.format.records.get(usize::from(listed.record)) else { break };
            (row.record, row.first, row.items) = (record, listed.first as usize, 0);
            (row.start, row.position) = (position, position + width);
            let flow = each(listed.position, &mut row).and_then(|flow| row.finish().map(|()| flow));
            position = row.position;
            count += 1;
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                break;
            }
        }
        self.position = position;
        self.count += count;
    }
}

impl<'r> Run<'r> {
    /// The data record that comes next, by its index in the format, and its first plan.
    pub(super) fn listed(&self) -> Option<(u16, usize)> {
        let listed = self.next_listed().filter(|listed| listed.record > METADATA)?;
        Some((listed.record, listed.first as usize))
    }

    /// The rest of the next record, from the byte at `at` on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn row(&mut self, record: u16, first: usize, at: usize) -> Option<ContentRow<'_, 'r>> {
        Some(ContentRow {
            format: self.format,
            record: self.format.records.get(usize::from(record))?,
            data: self.data,
            position: at,
            start: self.position,
            origin: self.origin,
            order: self.order,
            first,
            state: self.state,
            streams: self.streams,
            source: self.source,
            items: 0,
            stopped: self.stopped,
        })
    }

    /// A numeric leaf of the next record, whatever it takes: its value, and where the leaf after it begins. Its record is given by its
    /// index and that of its first plan.
    #[cold]
    #[inline(never)]
    pub(crate) fn number(
        &mut self,
        (record, first): (u16, usize),
        at: usize,
        leaf: u8,
    ) -> Result<(u64, usize), Stopped> {
        let mut row = self.row(record, first, at).ok_or(Stopped(()))?;
        let value = row.number(leaf)?;
        Ok((value, row.position))
    }

    /// A byte array, likewise.
    #[cold]
    #[inline(never)]
    pub(crate) fn bytes(
        &mut self,
        (record, first): (u16, usize),
        at: usize,
        leaf: u8,
    ) -> Result<(&'r [u8], usize), Stopped> {
        let mut row = self.row(record, first, at).ok_or(Stopped(()))?;
        let bytes = row.bytes(leaf)?;
        Ok((bytes, row.position))
    }

    /// Stops with an error of the caller's.
    #[cold]
    pub(crate) fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }

    /// The record that comes next, data or not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_listed(&self) -> Option<Listed> {
        self.state.listed(tag(self.data, self.position, usize::from(self.format.tag_width), self.order)?)
    }

    /// It has an error to tell.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a tag has at most 4 bytes")]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn tag(data: &[u8], position: usize, width: usize, order: Order) -> Option<u32> {
    let rest = data.get(position..)?;
    match width {
        1 => rest.first().map(|&tag| tag.into()),
        _ => rest.get(..width).map(|tag| order.read(tag) as u32),
    }
}
