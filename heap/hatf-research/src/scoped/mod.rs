//! Scoped memory. This module writes traces of `dtds/scoped.dtd` as programs do, and supplies input for the simulation
//! in `crate::regions`.
//!
//! The operations are defined in Table 1 of Garbervetsky, Nakhli, Yovine and Zorgati: "Program Instrumentation and
//! Run-Time Analysis of Scoped Memory in Java".
//!
//! # Examples
//!
//! ```
//! use hatf_research::regions::{Inter, Intra, Oversize, Settings, Simulation};
//! use hatf_research::scoped::{ScopedMemory, simulate};
//! use hatf_trace::forms::Input;
//!
//! let mut memory = ScopedMemory::new(Vec::new())?;
//! memory.enter(1, "main")?;
//! memory.new_instance(1, "main.2", "Config", 96)?;
//! memory.exit(1)?;
//! let trace = memory.finish()?;
//!
//! let settings = Settings { block: 128, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
//! let mut simulation = Simulation::new([settings])?;
//! let input = Input::of("a trace".to_owned(), Box::new(std::io::Cursor::new(trace)))?;
//! let names = simulate(input, &mut simulation, || ())?;
//! let stacks = simulation.finish(&names).stacks;
//! assert_eq!((stacks.regions, stacks.objects, stacks.bytes), (1, 1, 96));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
