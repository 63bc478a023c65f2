//! A heap as it is at a place in a trace.

use hatf_trace::stacks::Stacks;

use crate::objects::Objects;
use crate::totals::Totals;

/// A heap as it is at a place in a trace.
#[derive(Debug, Default)]
pub struct Heap {
    /// The live objects, and the totals.
    pub objects: Objects,
    /// The stacks so far, by their numbers.
    pub stacks: Stacks,
    /// The mean number of bytes from one block in the trace to the next, where they are a sample.
    pub sampling: Option<u64>,
    pub(crate) sizes: SizesOnly,
}

/// What is done with a trace that says what was allocated, and not when it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SizesOnly {
    /// It is refused.
    #[default]
    Refused,
    /// Blocks end where they begin.
    Taken,
    /// This is such a trace.
    Here,
}

impl Heap {
    /// Returns whether the trace has sizes only.
    #[must_use]
    pub fn has_sizes_only(&self) -> bool {
        self.sizes == SizesOnly::Here
    }

    /// Returns the totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.objects.totals()
    }
}
