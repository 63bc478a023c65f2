//! Recording of programs from another process, and replays of traces.
//!
//! - [`record`] runs a program with the recorder preloaded, or attaches to a process, and passes the heap events of all
//!   its processes to an [`EventSink`](hatf_trace::EventSink). It also recovers the recording of a killed program.
//! - [`cc`] compiles programs so that their accesses to memory are recorded.
//! - [`replay`] performs the requests in a trace with a real allocator.
//!
//! The recorder itself, which runs inside the program, is the crate `hatf-record`. The build script embeds it.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod cc;
pub mod record;
pub mod replay;
