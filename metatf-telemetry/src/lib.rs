//! Events from a running program, at nanoseconds each, into Meta-TF traces that survive its death.
//!
//! A DTD declares the events. `metatf-codegen` (in a build script), `metatfc gen` or the attribute of `metatf-derive` generates a
//! function and a macro for each, and `TELEMETRY`, a [`Telemetry`]. The book's page "Telemetry" shows how to begin, and
//! `examples/telemetry` is a program that does it all.
//!
//! | item | what it is for |
//! | --- | --- |
//! | [`Telemetry`] | start, stop, switch kinds on and off, flush, dump |
//! | [`Settings`] | where the trace goes, how large buffers are, what happens when they are full |
//! | [`postmortem`] | the events of a process that was killed, or that runs |
//! | [`metatf_describe`] | events as text, in a debugger |
//! | [`layout`] | the bytes of a buffers file |
//!
//! The crate depends on `libc` alone: a program emits into buffers, and `metatfc postmortem` makes a trace of them. With the feature
//! `drain` the program writes its trace itself, which brings the runtime, the parser and zstd. With the feature `off` emitters compile to nothing.

#![cfg_attr(not(feature = "drain"), allow(dead_code, unused_imports, reason = "the drain uses the rest"))]

#[cfg(not(target_os = "linux"))]
compile_error!("metatf-telemetry is for Linux: it maps buffers, and waits, by its system calls");

mod clock;
pub mod control;
#[cfg(feature = "drain")]
mod core_dump;
mod describe;
#[cfg(feature = "drain")]
mod drain_lock;
#[cfg(feature = "drain")]
mod drainer;
#[cfg(feature = "drain")]
mod encode;
mod error;
#[cfg(feature = "drain")]
mod events;
mod folder;
mod guard;
#[cfg(feature = "drain")]
mod image;
pub mod layout;
mod mapping;
#[cfg(feature = "drain")]
pub mod postmortem;
#[cfg(feature = "drain")]
mod queued;
mod ring;
mod running;
mod settings;
mod slot;
mod strings;
mod sync;
mod sys;
mod table;
mod tail;
mod telemetry;
#[cfg(feature = "drain")]
mod trace_file;
#[cfg(feature = "drain")]
mod unwritten;

#[cfg(feature = "drain")]
pub use describe::install_panic_backtrace;
pub use describe::{metatf_describe, metatf_last};
pub use error::Error;
#[cfg(feature = "drain")]
pub use running::install_panic_hook;
pub use running::{Guard, set_all};
pub use settings::{Place, Policy, Settings, SinkPlace};
pub use strings::StringId;
pub use telemetry::Telemetry;
#[cfg(feature = "drain")]
pub use trace_file::TraceSink;

/// What generated code calls, and nobody else.
#[doc(hidden)]
pub mod private {
    pub use crate::running::intern;
    pub use crate::slot::Slot;
    pub use crate::tail::{array, text};
    pub use crate::telemetry::Slots;
}
