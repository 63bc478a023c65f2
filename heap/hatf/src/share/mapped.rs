//! The mapped pages at a position in a trace, represented by the calls that mapped them.

use std::collections::BTreeMap;
use std::rc::Rc;

use hatf_trace::OwnedEvent;

use hatf_trace::event::{Event, EventKind, Pages};

/// Pages mapped by a call, from the range's key in the map to `end` (exclusive).
#[derive(Clone, Debug)]
struct Range {
    end: u64,
    record: u64,
    call: Rc<OwnedEvent>,
}

/// The mapped pages of a program, and its program break.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapped {
    ranges: BTreeMap<u64, Range>,
    /// The first and the current program break.
    first_break: Option<(u64, OwnedEvent)>,
    last_break: Option<(u64, OwnedEvent)>,
}

impl Mapped {
    /// Processes the page-level call `pages` in record number `record`.
    pub(super) fn note(&mut self, record: u64, event: &Event<'_>, pages: Pages) {
        let given = |start, length| {
            let Pages::Map { protection, flags, .. } = pages else { return None };
            Some(Event { kind: EventKind::Pages(Pages::Map { start, length, protection, flags }), ..*event })
        };
        match pages {
            Pages::Map { start, length, .. } => {
                self.remove(start, length);
                if let Some(call) = given(start, length) {
                    self.insert(start, length, record, Rc::new(OwnedEvent::of(&call)));
                }
            }
            Pages::Unmap { start, length } => drop(self.remove(start, length)),
            Pages::Remap { from, from_length, start, length } => {
                let moved = self.remove(from, from_length);
                self.remove(start, length);
                if let Some(call) = moved {
                    self.insert(start, length, record, call);
                }
            }
            Pages::Break { .. } => {
                let here = (record, OwnedEvent::of(event));
                let first = self.first_break.get_or_insert_with(|| here.clone());
                if let EventKind::Pages(Pages::Break { end: 0 }) = first.1.get().kind {
                    *first = here.clone();
                }
                self.last_break = Some(here);
            }
            Pages::Advise { .. } => {}
        }
    }

    /// Passes calls that recreate the pages to `give`, each with its record number.
    pub(super) fn calls(&self, give: &mut dyn FnMut(u64, &Event<'_>)) {
        let (first, last) = (&self.first_break, &self.last_break);
        for (record, call) in
            first.iter().chain(last.iter().filter(|(record, _)| first.as_ref().map(|f| f.0) != Some(*record)))
        {
            give(*record, &call.get());
        }
        for (start, range) in &self.ranges {
            let call = range.call.get();
            if let EventKind::Pages(Pages::Map { protection, flags, .. }) = call.kind {
                let pages = Pages::Map { start: *start, length: range.end - start, protection, flags };
                give(range.record, &Event { kind: EventKind::Pages(pages), ..call });
            }
        }
    }

    fn insert(&mut self, start: u64, length: u64, record: u64, call: Rc<OwnedEvent>) {
        let end = start.saturating_add(length);
        if start < end {
            self.ranges.insert(start, Range { end, record, call });
        }
    }

    /// Removes pages. Returns the call that mapped the last of these pages.
    fn remove(&mut self, start: u64, length: u64) -> Option<Rc<OwnedEvent>> {
        let end = start.saturating_add(length);
        let mut removed = None;
        while let Some((&from, range)) = self.ranges.range(..end).next_back().filter(|(_, range)| range.end > start) {
            let range = range.clone();
            self.ranges.remove(&from);
            if from < start {
                self.ranges.insert(from, Range { end: start, ..range.clone() });
            }
            if range.end > end {
                self.ranges.insert(end, range.clone());
            }
            removed.get_or_insert(range.call);
        }
        removed
    }
}
