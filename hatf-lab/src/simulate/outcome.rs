//! What came out of a simulation.

use serde::Serialize;

use super::ratio::ratio;
use super::touches::Touched;
use crate::allocator::Acts;
use crate::curve::Curves;

/// What came out of a simulation. Ratios are `None` where there is nothing to divide by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The simulation's name.
    pub name: String,
    /// The allocator, with all its settings.
    pub allocator: String,
    /// Allocations and frees.
    pub events: u64,
    /// Objects allocated.
    pub objects: u64,
    /// Bytes had from the system, and not given back, at the end.
    pub heap: u64,
    /// The most of them.
    pub most_heap: u64,
    /// The most bytes of pages held: those that hold memory, or held memory and were not given back.
    pub most_held: u64,
    /// Their mean over events.
    pub mean_held: u64,
    /// The most bytes live at once, of those asked for.
    pub most_live: u64,
    /// Live bytes after each event, summed.
    pub live_sum: u128,
    /// Bytes had from the system after each event, summed.
    pub heap_sum: u128,
    /// The heap is address space that the allocator reserves far ahead: ratios are of pages held in its place.
    pub ratios_of_pages_held: bool,
    /// Mean live bytes divided by mean bytes had from the system, both over events (Zorn and Grunwald, Table 7).
    pub memory_efficiency: Option<f64>,
    /// Johnstone's four measures.
    pub fragmentation: Fragmentation,
    /// Free blocks examined for each object allocated.
    pub steps: Option<f64>,
    /// The weighted sum of acts for each object allocated.
    pub ops: Option<f64>,
    /// The weights of acts in `ops`.
    pub weights: Acts,
    /// How often each elementary act was done.
    pub acts: Acts,
    /// Objects that did not fit into the simulated address space (2^47 bytes); they count as 0 bytes.
    pub refused: u64,
    /// Cache lines and pages that are touched, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched: Option<Touched>,
    /// Live bytes, heap and pages held over events.
    pub curves: Curves,
}

/// Johnstone's four measures of fragmentation (Johnstone and Wilson, "The Memory Fragmentation Problem: Solved?", ISMM 1998).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fragmentation {
    /// Heap / live, averaged over the events after which something is live.
    pub mean: Option<f64>,
    /// Heap / live where live is greatest for the first time.
    pub at_most_live: Option<f64>,
    /// Heap / live where the heap is greatest for the first time.
    pub at_most_heap: Option<f64>,
    /// Greatest heap / greatest live.
    pub most_heap_to_most_live: Option<f64>,
}

impl Outcome {
    /// Replaces the weights of acts, and `ops` with them.
    pub fn weigh(&mut self, weights: Acts) {
        self.ops = ratio(self.acts.weighted(&weights), self.objects.into());
        self.weights = weights;
    }
}
