//! Research on heap traces: allocation models and scoped memory from published papers.
//!
//! - [`model`] fits allocation models to a trace and generates synthetic traces; [`synthetic`] writes synthetic traces.
//! - [`regions`] simulates scoped memory and infers regions that a program could use.
//! - [`scoped`] reads and writes traces of scoped memory.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod model;
pub mod regions;
pub mod scoped;
pub mod synthetic;
