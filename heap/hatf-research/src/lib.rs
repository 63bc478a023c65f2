//! Models of allocation and scoped memory: what papers ask of heap traces.
//!
//! - [`model`] fits allocation models to a trace and generates synthetic traces from them; [`synthetic`] writes these.
//! - [`regions`] simulates scoped memory, and infers regions that a program could use.
//! - [`scoped`] reads and writes traces of scoped memory.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod model;
pub mod regions;
pub mod scoped;
pub mod synthetic;
