//! Generates Rust readers and writers of trace formats from Meta-TF DTDs.
//!
//! A build script of three lines makes a module of a DTD:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), metatf_codegen::Error> {
//!     metatf_codegen::Config::new().dtd("dtds/HATF10.dtd").compile()
//! }
//! ```
//!
//! and the crate includes it, depending on `metatf` to run it:
//!
//! ```ignore
//! mod hatf {
//!     include!(concat!(env!("OUT_DIR"), "/hatf10.rs"));
//! }
//! ```
//!
//! `metatfc gen` and the attribute `#[metatf(dtd = "..")]` give the same tokens. All of them end in [`generate`].
//!
//! # How the generator is cut
//! The parser's schema becomes a model (what there will be, and how it is called), the model becomes tokens (one file
//! for each part of the output), tokens become text. Nothing depends on time, place or hash order: the same DTD and
//! options give the same output.
#![forbid(unsafe_code)]

mod bare;
mod c;
mod columns;
mod config;
mod docs;
mod emit;
mod emitters;
mod expect;
mod generate;
mod model;
mod named;
mod names;
mod options;
mod plan;
mod render;
mod shape;
mod uses;

pub use bare::generate_no_std;
pub use c::generate_c;
pub use config::Config;
pub use generate::{Diagnostics, Error, Generated, generate, generate_source};
pub use metatf_parser::Dtd;
pub use options::{OptionError, Options};
pub use render::render;
