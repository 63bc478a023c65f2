//! Totals of a trace.

use serde::Serialize;

use crate::contradictions::Contradictions;
use metatf_page::units::count;
use metatf_page::{Note, Page, Value};

/// How often a trace holds what no correct program does, or what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Oddities {
    /// What contradicts itself. A free that has no block is not an event; that of an object whose place another takes is one.
    #[serde(flatten)]
    pub contradictions: Contradictions,
    /// Objects that ended with their heap (an exec, for example), each with a free of its own.
    pub ended_with_heap: u64,
    /// Reallocs whose size the trace does not hold, of an unknown block: 0 bytes.
    pub unknown_sizes: u64,
}

/// Totals of a trace in the terms of the paper's Table 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Ticks: allocations and frees.
    pub events: u64,
    /// Objects allocated.
    pub objects: u64,
    /// Bytes allocated.
    pub bytes: u64,
    /// The most objects live at once.
    pub max_objects: u64,
    /// The most bytes live at once.
    pub max_bytes: u64,
    /// Objects never freed.
    pub never_freed: u64,
    /// What no correct program does.
    pub oddities: Oddities,
}

impl Totals {
    /// Returns a line for each kind of oddity that was met.
    pub fn oddities(&self) -> impl Iterator<Item = String> {
        let Oddities { contradictions, ended_with_heap, unknown_sizes } = self.oddities;
        let lines = [
            (ended_with_heap, "objects that ended with their heap (freed there)"),
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
        page.push(Note::new("never freed: {} of the objects").with([Value::Count(never_freed)]));
        self.oddities().for_each(|line| page.note(line));
    }
}
