//! Simulates memory managers that use regions made of blocks (Garbervetsky, Nakhli, Yovine, Zorgati: "Program
//! Instrumentation and Run-Time Analysis of Scoped Memory in Java").
//!
//! Section numbers and formulas refer to that document, whose Table 1 defines the operations.
//!
//! # Examples
//!
//! ```
//! use hatf_research::regions::{Inter, Intra, Operation, Oversize, Settings, Simulation};
//!
//! let settings = Settings { block: 10, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
//! let mut simulation = Simulation::new([settings])?;
//! simulation.operate(1, Operation::Enter { method: 0 })?;
//! for size in [6, 6, 6, 4] {
//!     simulation.operate(1, Operation::New { site: 0, size })?;
//! }
//! simulation.operate(1, Operation::Exit)?;
//!
//! let outcome = simulation.finish(&["main".to_owned()]).outcomes.remove(0);
//! // When the third object is allocated, 8 bytes are free, but no block has 6 free bytes.
//! assert_eq!((outcome.intra_sum, outcome.blocks_added), (8, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod chart;
pub mod infer;
mod outcome;
mod page;
mod parts;
mod region;
mod settings;
mod simulation;
#[cfg(test)]
mod tests;

pub use calls::{Calls, Edge, Node};
pub use chart::{over_block_sizes, over_time};
pub use outcome::{Outcome, Percent};
pub use page::{describe, describe_calls};
pub use parts::{MOST_REGIONS, OfMethod, OfRegion};
pub use settings::{Oversize, Settings};
pub use simulation::{Simulated, Simulation, Stacks};

/// The policy for choosing a block within a region (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intra {
    /// The first block with enough space.
    First,
    /// The block with the least sufficient space. Of several such blocks, the first.
    Best,
}

/// The policy for choosing a region in the prefix of the region stack (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inter {
    /// The capturing region, which is the last region of the prefix.
    Capture,
    /// The first region that has a block with enough space, searching backwards from the last region. If there is none,
    /// the capturing region.
    First,
    /// The region whose block would have the least space left; of several such regions, the last. If there is none, the
    /// capturing region.
    Best,
}

/// An operation of Table 1 that a trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'o> {
    /// `enter(r)`: pushes the region of a method.
    Enter {
        /// The number of the method's name.
        method: u64,
    },
    /// `exit()`: collects the top region.
    Exit,
    /// `determineAllocationSite(CS)`: replaces the sites that the top region captures.
    Register {
        /// The call site.
        call_site: u64,
        /// The creation sites.
        sites: &'o [u64],
    },
    /// `newInstance(l, c)` and `newAInstance(l, c, n)`.
    New {
        /// The creation site.
        site: u64,
        /// The size in bytes.
        size: u64,
    },
}
