//! The outcome of a simulation.

use serde::Serialize;

use super::ratio::ratio;
use super::touches::Touched;
use crate::allocator::Acts;
use crate::curve::Curves;

/// The outcome of a simulation. Ratios are `None` if the divisor is 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// The name of the simulation.
    pub name: String,
    /// The allocator with all of its settings.
    pub allocator: String,
    /// The number of allocations and frees.
    pub events: u64,
    /// The number of objects allocated.
    pub objects: u64,
    /// Bytes obtained from the system and not returned by the end.
    pub heap: u64,
    /// The maximum heap size in bytes.
    pub most_heap: u64,
    /// The maximum number of bytes in held pages, which are pages that were touched and not returned.
    pub most_held: u64,
    /// The number of bytes in held pages, averaged over events.
    pub mean_held: u64,
    /// The maximum number of simultaneously live requested bytes.
    pub most_live: u64,
    /// The sum of live bytes after each event.
    pub live_sum: u128,
    /// The sum of the heap size after each event.
    pub heap_sum: u128,
    /// Whether ratios refer to held pages instead of the heap, because the heap is address space reserved far ahead.
    pub ratios_of_pages_held: bool,
    /// The mean number of live bytes divided by the mean heap size, both averaged over events (Zorn and Grunwald, Table
    /// 7).
    pub memory_efficiency: Option<f64>,
    /// Johnstone's four measures.
    pub fragmentation: Fragmentation,
    /// Free blocks examined per allocated object.
    pub steps: Option<f64>,
    /// The weighted sum of operations per allocated object.
    pub ops: Option<f64>,
    /// The weights of operations used for `ops`.
    pub weights: Acts,
    /// The count of each elementary operation.
    pub acts: Acts,
    /// The number of objects that did not fit into the simulated address space (2^47 bytes). These objects count as 0
    /// bytes.
    pub refused: u64,
    /// The cache lines and pages touched, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched: Option<Touched>,
    /// Live bytes, heap and held pages over events.
    pub curves: Curves,
}

/// Johnstone's four measures of fragmentation (Johnstone and Wilson, "The Memory Fragmentation Problem: Solved?", ISMM 1998).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Fragmentation {
    /// Heap / live, averaged over the events after which some bytes are live.
    pub mean: Option<f64>,
    /// Heap / live at the first maximum of live bytes.
    pub at_most_live: Option<f64>,
    /// Heap / live at the first maximum of the heap.
    pub at_most_heap: Option<f64>,
    /// Maximum heap / maximum live bytes.
    pub most_heap_to_most_live: Option<f64>,
}

impl Outcome {
    /// Replaces the weights of operations and recomputes `ops`.
    pub fn weigh(&mut self, weights: Acts) {
        self.ops = ratio(self.acts.weighted(&weights), self.objects.into());
        self.weights = weights;
    }
}
