//! Runs of consecutive records, decoded in one loop that keeps its position in registers.
//!
//! Anything unusual (metadata, a comment, an unknown tag, the last bytes of a part) ends the run before the affected
//! record. The reader's slow path then handles that record.

use super::rows::LeafByLeaf;
use super::views::Views;
use super::{Next, RecordReader};
use crate::decode::{Run, tag};
use crate::format::METADATA;
use crate::state::Listed;
use metatf_container::{Error, Order};
use std::ops::ControlFlow;

/// The reader's state to update at the end of a run.
pub(crate) struct End<'t> {
    section: usize,
    position: &'t mut usize,
    found: &'t mut u64,
    next: &'t mut Next,
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
        if stopped {
            self.finish();
        }
    }

    /// Marks the reader as finished after an error.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn finish(&mut self) {
        *self.next = Next::Finished;
    }
}

impl RecordReader<'_> {
    /// Calls `read` with the index of a section and its next records. Repeats this after metadata until `read` breaks.
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

    /// Returns the section index of the current part.
    #[inline]
    pub(crate) fn section(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.section)
    }

    /// Returns whether the next item is a data record with its own tag.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_plain(&self) -> bool {
        let state = self.section().and_then(|section| self.states.get(section));
        self.next_listed()
            .zip(state)
            .is_some_and(|(listed, state)| listed.record > METADATA && state.encoding.has_own_tag(listed))
    }

    /// Returns the next item if it is a record, whether or not it is a data record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_listed(&self) -> Option<Listed> {
        let current = self.current.as_ref().filter(|current| !current.is_element && self.is_idle())?;
        let data = self.container.bytes(&current.content);
        let tag = tag(data, current.position, usize::from(self.format.tag_width), self.order);
        self.states.get(current.section)?.encoding.listed(tag?)
    }

    /// Decodes the record found by [`is_plain`](Self::is_plain), leaf by leaf. If decoding stops, returns the slot that
    /// contains the error; see [`why`](super::why).
    pub(crate) fn one_slow<'t, T>(
        &'t mut self,
        read: impl FnOnce(usize, &mut LeafByLeaf<'_, 't>) -> ControlFlow<T>,
    ) -> Result<T, Option<&'t mut Option<Error>>> {
        let (mut run, mut end) = self.start_run().ok_or(None)?;
        match read(end.section, &mut LeafByLeaf(&mut run)) {
            ControlFlow::Break(record) => {
                end.tell(run.position, 1, false);
                Ok(record)
            }
            ControlFlow::Continue(()) => {
                end.finish();
                Err(Some(run.stopped))
            }
        }
    }

    /// Borrows the reader again, for a second attempt after a first attempt that returned nothing. The borrow checker
    /// cannot prove that the first borrow has ended.
    ///
    /// # Safety
    /// Nothing obtained from the returned reader may be alive when `self` is used again.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn once_more<'t>(&mut self) -> &'t mut Self {
        // SAFETY: the caller ensures that there is only one user at a time.
        unsafe { &mut *std::ptr::from_mut(self) }
    }

    /// Returns whether nothing has been announced and nothing is pending.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.next, Next::Unknown | Next::Plain)
            && self.pending.is_none()
            && self.found.is_none()
            && self.queue.is_empty()
    }

    /// Returns whether the next item is already known to be [`Next::Plain`], without examining the trace.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_one(&self) -> bool {
        self.next == Next::Plain
    }

    /// Examines the trace to determine whether the next item is [`Next::Plain`].
    #[inline(never)]
    pub(crate) fn find_one(&mut self) -> bool {
        let is_element = self.current.as_ref().is_none_or(|current| current.is_element);
        let is_plain = !is_element && self.is_idle() && self.order == Order::Little;
        if is_plain {
            self.next = Next::Plain;
        }
        is_plain
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_run(&mut self) -> Option<(Run<'_>, End<'_>)> {
        self.start_views().map(|(run, end, _)| (run, end))
    }

    /// Starts a run, along with the records decoded ahead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn start_views(&mut self) -> Option<(Run<'_>, End<'_>, &mut Views)> {
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
        Some((run, End { section, position, found, next: &mut self.next }, &mut self.views))
    }

    /// Returns the error that stopped the last run, if there was one.
    pub(crate) fn stopped(&mut self) -> Option<Error> {
        self.stopped.take()
    }
}
