//! The content of an unfinished trace, which must not be read from the spool again.

use crate::record::order::{Merge, Resumed, ThreadOf, Translator, is_numbered};
use hatf_trace::event::{Call, Event, EventKind, EventSink, EventSource, Item};
use hatf_trace::{Error, Result};

/// The content of an unfinished trace.
#[derive(Default)]
pub(super) struct UnfinishedTrace {
    pub(super) has: Resumed,
    pub(super) images: u64,
    /// The time of the last event.
    pub(super) time: u64,
    /// Whether the trace contains the program's end.
    pub(super) whole: bool,
}

impl UnfinishedTrace {
    /// Passes all events up to the truncation of the trace to a sink.
    pub(super) fn copy(&mut self, written: &mut dyn EventSource, sink: &mut dyn EventSink) -> Result<()> {
        loop {
            let item = match written.next() {
                Ok(Some(item)) => item,
                // Report a system error instead of treating it as the end of the trace, because the file may be intact
                // although it cannot be read now.
                Err(error @ Error::System(..)) => return Err(error),
                Ok(None) | Err(_) => return Ok(()),
            };
            match item {
                Item::Comment(text) => sink.comment(text)?,
                Item::Event(event) => {
                    sink.event(&event)?;
                    self.note(&event);
                }
            }
        }
    }

    /// Makes the merge and the translator continue where the trace ends.
    pub(super) fn go_on(self, merge: &mut Merge<'_>, translator: &mut Translator) {
        translator.after(self.images);
        for (of, old) in &self.has.freed {
            translator.begin_realloc(of.thread, *old, true);
        }
        merge.after(self.has);
    }

    pub(super) fn note(&mut self, event: &Event<'_>) {
        let thread = u32::try_from(event.thread).unwrap_or_default();
        self.time = self.time.max(event.time);
        let Resumed { events, live, uncertain, freed, ended } = &mut self.has;
        if let EventKind::Image { .. } = event.kind {
            self.images += 1;
            live.clear();
            *uncertain = false;
            freed.clear();
        }
        if event.kind == (EventKind::Recording { on: true }) {
            live.clear();
            *uncertain = true;
        }
        let of = ThreadOf { image: u32::try_from(self.images).unwrap_or(u32::MAX), thread };
        match event.kind {
            EventKind::Call(Call { old, address, .. }) | EventKind::ReallocEnd(Call { old, address, .. }) => {
                freed.remove(&of);
                if old != 0 {
                    live.remove(old);
                }
                if address != 0 {
                    live.insert(address);
                }
            }
            EventKind::Free { address } => {
                live.remove(address);
            }
            EventKind::ReallocBegin { old } => {
                live.remove(old);
                freed.insert(of, old);
            }
            EventKind::ThreadEnd => drop(ended.insert(of)),
            EventKind::Exit { .. } | EventKind::Killed { .. } => self.whole = true,
            _ => {}
        }
        if is_numbered(event) {
            *events.entry(of).or_default() += 1;
        }
    }
}
