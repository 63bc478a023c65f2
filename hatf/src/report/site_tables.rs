//! How tables of what sites have are made, and what stands above them.

use hatf_lab::sites::{Amount, Measure};

/// How tables of sites are printed.
#[derive(Clone, Copy, Debug)]
pub struct SiteTables {
    /// Rows of a table.
    pub rows: usize,
    /// Lines of a stack.
    pub depth: usize,
    /// Ranks by blocks, and not by bytes.
    pub by_blocks: bool,
}

impl SiteTables {
    /// Returns what amounts are ranked by.
    #[must_use]
    pub(super) fn rank(self, amount: Amount) -> u64 {
        if self.by_blocks { amount.blocks } else { amount.bytes }
    }
}

/// What stands where a stack is not known.
pub(super) const NOT_KNOWN: &str = "unknown stack";

/// Returns what a measure is called.
pub(super) fn title(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "LIVE AT THE PEAK",
        Measure::Leaked => "LEAKED (live at the end)",
        Measure::Allocated => "ALLOCATED",
        Measure::Temporary => "TEMPORARY (freed by the next event)",
        Measure::Short => "SHORT (freed within 1 ms and 64 KiB of allocations)",
        Measure::At => "LIVE AT THE CHOSEN TIME",
        Measure::Copied => "COPIED BY REALLOC",
        Measure::Slack => "SLACK (beyond the requested size)",
        Measure::Between => "ALLOCATED IN THE RANGE, LIVE AT ITS END",
    }
}
