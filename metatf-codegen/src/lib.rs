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

mod columns;
mod config;
mod docs;
mod emit;
mod expect;
mod model;
mod names;
mod options;
mod plan;
mod render;
mod shape;
mod uses;

pub use config::{Config, Error};
pub use metatf_parser::Dtd;
pub use options::{OptionError, Options};
use proc_macro2::TokenStream;
pub use render::render;

/// The code for a DTD, as tokens.
///
/// # Errors
/// Options that name what the DTD does not have, or hold text that is no Rust.
pub fn generate(dtd: &Dtd, options: &Options) -> Result<TokenStream, OptionError> {
    options.check()?;
    let lookup = options::Lookup::new(options);
    let model = plan::plan(dtd, &lookup);
    lookup.unused().map_or(Ok(()), Err)?;
    emit::emit(dtd, &model, options)
}

/// The code for a DTD's text, as formatted source. The diagnostics of a DTD with errors come as the error; warnings
/// come beside the code.
///
/// # Errors
/// A DTD with errors, options that do not fit it.
pub fn generate_source(text: &[u8], options: &Options) -> Result<Generated, Error> {
    let parsed = metatf_parser::parse(&options.source, text);
    let diagnostics = Diagnostics::of(&parsed, text);
    let Some(dtd) = &parsed.dtd else { return Err(Error::Dtd(diagnostics)) };
    let tokens = generate(dtd, options)?;
    Ok(Generated { source: render(&tokens, &options.source), tokens, diagnostics })
}

/// What [`generate_source`] makes.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The code as text, with a header line.
    pub source: String,
    /// The code as tokens.
    pub tokens: TokenStream,
    /// The DTD's warnings.
    pub diagnostics: Diagnostics,
}

/// A DTD's errors and warnings, rendered for people.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// One for each, with the lines of the DTD they are about.
    pub rendered: Vec<String>,
    /// How many of them are errors.
    pub errors: usize,
}

impl Diagnostics {
    fn of(parsed: &metatf_parser::Parsed, text: &[u8]) -> Self {
        let one = |d| metatf_parser::render(d, &parsed.name, text, false);
        Self { rendered: parsed.diagnostics.iter().map(one).collect(), errors: parsed.errors() }
    }
}

impl std::fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rendered.join("\n\n"))
    }
}
