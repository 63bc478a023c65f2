//! Scoped memory. This module writes traces of `dtds/scoped.dtd` as programs do, and supplies input for the simulation
//! in `crate::regions`.
//!
//! The operations are defined in Table 1 of Garbervetsky, Nakhli, Yovine and Zorgati: "Program Instrumentation and
//! Run-Time Analysis of Scoped Memory in Java".

mod coverage;
mod example;
mod infer;
mod log;
mod memory;
mod name_numbers;
mod phases;
mod read;
mod scope_events;
#[cfg(test)]
mod tests;

pub use coverage::ScopeCoverage;
pub use example::{Variant, captures, example};
pub use infer::{Names, RegionWriter, contexts};
pub use memory::{Object, Region, ScopedMemory, register};
pub use read::simulate;
pub use scope_events::{ScopeEvents, ScopeKind};

/// Code generated from `dtds/scoped.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/scoped.rs"));
}

/// Code generated from `dtds/scoped-log.dtd`.
mod log_format {
    include!(concat!(env!("OUT_DIR"), "/scoped-log.rs"));
}
