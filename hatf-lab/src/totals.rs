//! Totals of a trace.

use std::io::{self, Write};

use serde::Serialize;

use crate::contradictions::Contradictions;
use metatf_page::units::{bytes, count};

/// How often a trace holds what no correct program does, or what it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Oddities {
    /// What contradicts itself. A free that has no block is no event; that of an object whose place another takes is one.
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
    /// Prints the totals for people, with a line for each kind of oddity that was met.
    ///
    /// # Errors
    /// The output's.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { events, objects, bytes: allocated, max_objects, max_bytes, never_freed, oddities } = *self;
        writeln!(out, "  {} events: {} objects, {}", count(events), count(objects), bytes(allocated))?;
        writeln!(out, "  at most {} objects and {} live", count(max_objects), bytes(max_bytes))?;
        writeln!(out, "  never freed: {} of the objects", count(never_freed))?;
        oddities.contradictions.text(out)?;
        let lines = [
            (oddities.ended_with_heap, "objects that ended with their heap (freed there)"),
            (oddities.unknown_sizes, "objects of unknown size (counted as 0 bytes)"),
        ];
        let met = lines.iter().filter(|(times, _)| *times > 0);
        met.map(|(times, text)| (count(*times), text)).try_for_each(|(times, text)| writeln!(out, "  {times} {text}"))
    }
}
