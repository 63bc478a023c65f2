//! Runs of records with nothing between them, decoded in one loop that keeps its place in registers.
//!
//! What is out of the ordinary (metadata, a comment, an unknown tag, the last bytes of a part) ends the run, before the
//! record that it is about; the reader's other way takes it from there.

use super::rows::LeafByLeaf;
use super::views::Views;
use super::{Next, RecordReader};
use crate::decode::{Run, tag};
use crate::format::METADATA;
use crate::state::Listed;
use metatf_container::{Error, Order};
use std::ops::ControlFlow;

/// What has to be reported at the end of a run.
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

    /// Nothing comes after an error.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn finish(&mut self) {
        *self.next = Next::Finished;
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

    /// Returns whether a data record that has a tag of its own comes next, and nothing before it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn is_plain(&self) -> bool {
        let state = self.section().and_then(|section| self.states.get(section));
        self.next_listed()
            .zip(state)
            .is_some_and(|(listed, state)| listed.record > METADATA && state.encoding.has_own_tag(listed))
    }

    /// Returns the record that comes next, data or not, if nothing comes before it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_listed(&self) -> Option<Listed> {
        let current = self.current.as_ref().filter(|current| !current.is_element && self.is_idle())?;
        let data = self.container.bytes(&current.content);
        let tag = tag(data, current.position, usize::from(self.format.tag_width), self.order);
        self.states.get(current.section)?.encoding.listed(tag?)
    }

    /// Decodes the record that [`is_plain`](Self::is_plain) found, leaf by leaf. Should it stop, it gives the place where the
    /// error is; see [`why`](super::why).
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
        matches!(self.next, Next::Unknown | Next::Plain)
            && self.pending.is_none()
            && self.found.is_none()
            && self.queue.is_empty()
    }

    /// Whether [`Next::Plain`] is known to come next.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_one(&self) -> bool {
        self.next == Next::Plain
    }

    /// Finds out whether it does.
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

    /// Starts a run, with the records that were decoded ahead.
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

    /// Why the last run stopped, if it was an error.
    pub(crate) fn stopped(&mut self) -> Option<Error> {
        self.stopped.take()
    }
}
