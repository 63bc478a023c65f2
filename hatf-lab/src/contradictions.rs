//! What a trace of a correct program does not hold, counted and worded once for every analysis.

use std::io::{self, Write};

use serde::Serialize;

use metatf_page::units::count;

/// How often a trace contradicts itself, or its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contradictions {
    /// Frees (and reallocs) of addresses at which the trace knows no block. It may have been allocated before the recording.
    pub unmatched_frees: u64,
    /// Frees (and reallocs) of blocks that the trace has freed already.
    pub frees_of_freed_blocks: u64,
    /// Blocks that began at the address of a live one, which ends there.
    pub allocs_of_live_blocks: u64,
    /// Blocks that began with a byte in a live one; both are live. Those that overlap nothing but such blocks are not among them.
    pub overlapping_blocks: u64,
}

impl Contradictions {
    /// Returns a line for each kind that was met.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let Self { unmatched_frees, frees_of_freed_blocks, allocs_of_live_blocks, overlapping_blocks } = *self;
        let lines = [
            (
                unmatched_frees,
                "frees of blocks that are not in the trace: they were allocated before the recorder was loaded, or records are missing",
            ),
            (
                frees_of_freed_blocks,
                "frees of blocks that had been freed: the program frees them twice, or records are missing from the trace",
            ),
            (
                allocs_of_live_blocks,
                "blocks began where one was live, which ends there: records are missing from the trace",
            ),
            (
                overlapping_blocks,
                "blocks overlap one that was live, and both count: the trace is wrong, or records are missing",
            ),
        ];
        lines.into_iter().filter(|(times, _)| *times > 0).map(|(times, text)| format!("{} {text}", count(times)))
    }

    /// Prints a line for each kind that was met.
    ///
    /// # Errors
    /// The output's.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines().try_for_each(|line| writeln!(out, "  {line}"))
    }
}
