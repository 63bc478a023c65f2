//! Counts and descriptions of contradictions in a trace, shared by all analyses. The trace of a correct program
//! contains no contradictions.

use std::io::{self, Write};

use serde::Serialize;

use metatf_page::units::count;

/// Counts of events that contradict earlier events of the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contradictions {
    /// Frees (and reallocs) of addresses without a known block. Such a block may have been allocated before the
    /// recording.
    pub unmatched_frees: u64,
    /// Frees (and reallocs) of blocks that had already been freed.
    pub frees_of_freed_blocks: u64,
    /// Blocks that began at the address of a live block, which ended as a result.
    pub allocs_of_live_blocks: u64,
    /// Blocks that overlapped a live block when they began. Both blocks stay live. A block that overlaps only blocks
    /// counted here is not counted.
    pub overlapping_blocks: u64,
}

impl Contradictions {
    /// Returns a line for each kind of contradiction that occurred.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let Self { unmatched_frees, frees_of_freed_blocks, allocs_of_live_blocks, overlapping_blocks } = *self;
        let lines = [
            (
                unmatched_frees,
                "frees of blocks that are not in the trace: the blocks were allocated before the recorder was loaded, or records are missing",
            ),
            (
                frees_of_freed_blocks,
                "frees of blocks that were already freed: the program freed them twice, or records are missing from the trace",
            ),
            (
                allocs_of_live_blocks,
                "blocks were allocated at the address of a live block, which then counts as freed: records are missing \
                 from the trace",
            ),
            (
                overlapping_blocks,
                "blocks overlap a live block, and both are counted: the trace is invalid, or records are missing",
            ),
        ];
        lines.into_iter().filter(|(times, _)| *times > 0).map(|(times, text)| format!("{} {text}", count(times)))
    }

    /// Prints a line for each kind of contradiction that occurred.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines().try_for_each(|line| writeln!(out, "  {line}"))
    }
}
