//! Records events of a running program in Meta-TF traces that survive a crash, at a cost of nanoseconds per event.
//!
//! A DTD declares the events. `metatf-codegen` (in a build script), `metatfc gen` or the attribute of `metatf-derive`
//! generates a function and a macro for each event, and `TELEMETRY`, a [`Telemetry`]. To get started, see the page
//! "Telemetry" in the book; `examples/telemetry` is a complete program.
//!
//! | item | purpose |
//! | --- | --- |
//! | [`Telemetry`] | starting, stopping, enabling and disabling kinds, flushing, dumping |
//! | [`Settings`] | the location of the trace, the size of buffers, and the policy when they are full |
//! | [`postmortem`] | the events of a killed or running process |
//! | [`metatf_describe`] | events as text in a debugger |
//! | [`layout`] | the bytes of a buffers file |
//!
//! The crate depends only on `libc`: a program writes events to buffers, and `metatfc telemetry` creates a trace from
//! them. With the `drain` feature, the program writes its trace itself, which adds the runtime, the parser and zstd as
//! dependencies. With the `off` feature, emitters compile to nothing.
//!
//! With the `drain` feature, a program can write its trace to any sink, such as a pipe:
//!
#![cfg_attr(feature = "drain", doc = "```")]
#![cfg_attr(not(feature = "drain"), doc = "```ignore")]
//! use metatf::container::Forward;
//! use metatf_telemetry::{Place, Settings};
//!
//! #[metatf_derive::metatf(dtd = "tests/events.dtd", emitters = "crate::events")]
//! mod events {}
//!
//! let (pipe, sink) = std::io::pipe()?;
//! let settings = Settings { place: Place::Core, threads: 4, ..Settings::default() };
//! let telemetry = events::TELEMETRY.start_to(settings, Box::new(Forward(sink)))?;
//! events::step(42);
//! telemetry.finish()?;
//!
//! let mut numbers = Vec::new();
//! events::Trace::from_read(pipe)?.for_each(|record| match record {
//!     events::Record::Events(events::Events::Step(step)) => numbers.push(step.number),
//!     _ => {}
//! })?;
//! assert_eq!(numbers, [42]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(not(feature = "drain"), allow(dead_code, unused_imports, reason = "the drain uses the rest"))]

#[cfg(not(target_os = "linux"))]
compile_error!("metatf-telemetry requires Linux: it uses Linux system calls to map buffers and to wait");

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

/// Items for generated code only.
#[doc(hidden)]
pub mod private {
    pub use crate::running::intern;
    pub use crate::slot::Slot;
    pub use crate::tail::{array, text};
    pub use crate::telemetry::Slots;
}
