//! Totals of a trace.

use serde::Serialize;

use crate::contradictions::Contradictions;
use metatf_page::units::count;
use metatf_page::{Note, Page, Value};

/// Counts of events that no correct program produces, and of missing data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Oddities {
    /// Contradictions in the trace. A free without a block is not an event, but the end of an overlaid object is an
    /// event.
    #[serde(flatten)]
    pub contradictions: Contradictions,
    /// Objects that ended with their heap (in an exec, for example), each with its own free event.
    pub ended_with_heap: u64,
    /// Reallocs of an unknown block whose size is not in the trace. Such blocks count as 0 bytes.
    pub unknown_sizes: u64,
}

/// Totals of a trace, as in Table 4 of the paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Ticks, which are allocations and frees.
    pub events: u64,
    /// Objects allocated.
    pub objects: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// The maximum number of simultaneously live objects.
    pub max_objects: u64,
    /// The maximum number of simultaneously live bytes.
    pub max_bytes: u64,
    /// Objects never freed.
    pub never_freed: u64,
    /// Events that no correct program produces, and missing data.
    pub oddities: Oddities,
}

impl Totals {
    /// Returns a line for each kind of oddity that occurred.
    pub fn oddities(&self) -> impl Iterator<Item = String> {
        let Oddities { contradictions, ended_with_heap, unknown_sizes } = self.oddities;
        let lines = [
            (ended_with_heap, "objects were still live when their heap ended, and count as freed"),
            (unknown_sizes, "objects of unknown size (counted as 0 bytes)"),
        ];
        let met = lines.into_iter().filter(|(times, _)| *times > 0);
        let lines: Vec<_> =
            contradictions.lines().chain(met.map(|(times, text)| format!("{} {text}", count(times)))).collect();
        lines.into_iter()
    }

    /// Adds the totals to a page.
    pub fn note(&self, page: &mut Page) {
        let Self { events, objects, bytes, max_objects, max_bytes, never_freed, .. } = *self;
        let all = [Value::Count(events), Value::Count(objects), Value::Bytes(bytes)];
        page.push(Note::new("{} events: {} objects, {}").with(all));
        page.push(
            Note::new("at most {} objects and {} live").with([Value::Count(max_objects), Value::Bytes(max_bytes)]),
        );
        page.push(Note::new("not freed: {} of the objects").with([Value::Count(never_freed)]));
        self.oddities().for_each(|line| page.note(line));
    }
}
