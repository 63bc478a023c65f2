//! Generates Rust readers and writers for trace formats from Meta-TF DTDs.
//!
//! A build script of three lines generates a module from a DTD:
//!
//! ```no_run
//! // build.rs
//! fn main() -> Result<(), metatf_codegen::Error> {
//!     metatf_codegen::Config::new().dtd("dtds/HATF10.dtd").compile()
//! }
//! ```
//!
//! The crate includes the module, and depends on `metatf` at run time:
//!
//! ```ignore
//! mod hatf {
//!     include!(concat!(env!("OUT_DIR"), "/hatf10.rs"));
//! }
//! ```
//!
//! `metatfc gen` and the attribute `#[metatf(dtd = "..")]` produce the same tokens, because all of them call
//! [`generate`].
//!
//! # Structure of the generator
//! The parser's schema is converted to a model (all items with their names), the model to tokens (with one source file
//! for each part of the output), and the tokens to text. Nothing depends on time, location or hash order, so the same
//! DTD and options produce the same output.
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
mod ksy;
mod model;
mod named;
mod names;
mod options;
mod plan;
mod render;
mod repetition;
mod shape;
mod uses;

pub use bare::generate_no_std;
pub use c::{generate_c, generate_c_reader};
pub use config::Config;
pub use generate::{Diagnostics, Error, Generated, generate, generate_source};
pub use ksy::generate_ksy;
pub use metatf_parser::Dtd;
pub use options::{OptionError, Options};
pub use render::render;
