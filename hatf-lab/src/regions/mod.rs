//! Simulates memory managers with regions of blocks (Garbervetsky, Nakhli, Yovine, Zorgati: "Program Instrumentation and
//! Run-Time Analysis of Scoped Memory in Java").
//!
//! Sections and formulas are those of that document; its table of operations is Table 1.

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

/// In which block of a region an object is put (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intra {
    /// The first with enough space.
    First,
    /// The one with the least space that is enough; of equals the first.
    Best,
}

/// In which region of the prefix an object is put (section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inter {
    /// The capturing one: the last of the prefix.
    Capture,
    /// The first with enough space in a block, from the last backwards; else the capturing one.
    First,
    /// The one whose block has the least left afterwards, of equals the last; else the capturing one.
    Best,
}

/// An operation of Table 1 that a trace records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'o> {
    /// `enter(r)`: the region of a method is pushed.
    Enter {
        /// The number of the method's name.
        method: u64,
    },
    /// `exit()`: the region on top is collected.
    Exit,
    /// `determineAllocationSite(CS)`: the sites that the region on top captures from now on, in place of those before.
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
        /// Bytes.
        size: u64,
    },
}
