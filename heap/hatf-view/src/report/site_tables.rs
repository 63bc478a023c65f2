//! Options and headings of site tables.

use hatf_lab::sites::{Amount, Measure};

/// Options of site tables.
#[derive(Clone, Copy, Debug)]
pub struct SiteTables {
    /// Maximum number of rows per table.
    pub rows: usize,
    /// Maximum number of lines per stack.
    pub depth: usize,
    /// Whether to rank by number of blocks instead of bytes.
    pub by_blocks: bool,
}

impl Default for SiteTables {
    fn default() -> Self {
        Self { rows: 10, depth: 8, by_blocks: false }
    }
}

impl SiteTables {
    /// Returns the number by which an amount is ranked.
    #[must_use]
    pub(super) fn rank(self, amount: Amount) -> u64 {
        if self.by_blocks { amount.blocks } else { amount.bytes }
    }
}

/// Label for an unknown stack.
pub(super) const NOT_KNOWN: &str = "unknown stack";

/// Returns the heading of a measure.
pub(super) fn title(measure: Measure) -> &'static str {
    match measure {
        Measure::Peak => "LIVE AT THE PEAK",
        Measure::Leaked => "LIVE AT THE END",
        Measure::Allocated => "ALLOCATED",
        Measure::Temporary => "TEMPORARY (freed by the next event)",
        Measure::Short => "SHORT (freed within 1 ms and 64 KiB of allocations)",
        Measure::At => "LIVE AT THE CHOSEN TIME",
        Measure::Copied => "COPIED BY REALLOC",
        Measure::Slack => "SLACK (beyond the requested size)",
        Measure::Untouched => "UNTOUCHED (pages of blocks of 64 KiB and more that were never touched)",
        Measure::Between => "ALLOCATED IN THE RANGE, LIVE AT ITS END",
    }
}
