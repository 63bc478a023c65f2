//! The heap at a position in a trace.

use hatf_trace::stacks::Stacks;

use crate::objects::Objects;
use crate::totals::Totals;

/// The heap at a position in a trace.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Heap {
    /// The live objects, and the totals.
    pub objects: Objects,
    /// The stacks seen so far, by number.
    pub stacks: Stacks,
    /// The mean number of bytes between two sampled blocks, if the trace is a sample.
    pub sampling: Option<u64>,
    pub(crate) sizes: SizesOnly,
}

/// The treatment of sizes-only traces, which contain the sizes of allocated blocks but not their ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SizesOnly {
    /// Sizes-only traces are rejected.
    #[default]
    Refused,
    /// Sizes-only traces are accepted, and each block ends immediately after it begins.
    Taken,
    /// The trace is a sizes-only trace.
    Here,
}

impl Heap {
    /// Returns whether the trace contains sizes only.
    #[must_use]
    pub fn has_sizes_only(&self) -> bool {
        self.sizes == SizesOnly::Here
    }

    /// Returns the current totals.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.objects.totals()
    }
}
