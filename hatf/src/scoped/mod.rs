//! Scoped memory: traces of `dtds/scoped.dtd`, as a program writes them, and as `hatf_lab::regions` simulates them.
//!
//! The operations are those of Garbervetsky, Nakhli, Yovine and Zorgati: "Program Instrumentation and Run-Time Analysis of Scoped
//! Memory in Java", Table 1.

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

/// The generated code of `dtds/scoped.dtd`.
mod format {
    include!(concat!(env!("OUT_DIR"), "/scoped.rs"));
}

/// The generated code of `dtds/scoped-log.dtd`.
mod log_format {
    include!(concat!(env!("OUT_DIR"), "/scoped-log.rs"));
}
