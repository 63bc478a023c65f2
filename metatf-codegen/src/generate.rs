//! Generates code from a DTD: parses the text to a schema, plans a model, emits tokens, and renders them as text.

use std::fmt;
use std::path::PathBuf;

use metatf_parser::Dtd;
use proc_macro2::TokenStream;

use crate::emit::emit;
use crate::emitters::{Emitters, Reach, emitters};
use crate::options::{Lookup, OptionError, Options};
use crate::plan::plan;
use crate::render::render;

/// Generates the code for a DTD as tokens.
///
/// # Errors
/// Returns an error if an option refers to an item that is not in the DTD, or contains text that is not valid Rust.
pub fn generate(dtd: &Dtd, options: &Options) -> Result<TokenStream, OptionError> {
    options.check()?;
    let lookup = Lookup::new(options);
    let model = plan(dtd, &lookup);
    let emitters = match options.emitters {
        Some(_) => emitters(dtd, &lookup, options, Reach::Plain)?,
        None => Emitters::default(),
    };
    lookup.unused().map_or(Ok(()), Err)?;
    emit(dtd, &model, &emitters, options)
}

/// Generates the code for the text of a DTD as formatted source. If the DTD has errors, returns its diagnostics as the
/// error; warnings are returned with the code.
///
/// # Errors
/// Returns an error if the DTD has errors, or an option does not match it.
pub fn generate_source(text: &[u8], options: &Options) -> Result<Generated, Error> {
    let parsed = metatf_parser::parse(&options.source, text);
    let diagnostics = Diagnostics::of(&parsed, text);
    let Some(dtd) = &parsed.dtd else { return Err(Error::Dtd(diagnostics)) };
    let tokens = generate(dtd, options)?;
    Ok(Generated { source: render(&tokens, &options.source), tokens, diagnostics })
}

/// The result of [`generate_source`].
#[derive(Clone, Debug)]
pub struct Generated {
    /// The code as text, with a header line.
    pub source: String,
    /// The code as tokens.
    pub tokens: TokenStream,
    /// The warnings about the DTD.
    pub diagnostics: Diagnostics,
}

/// The errors and warnings about a DTD, as text for people.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// The diagnostics, each with the lines of the DTD that it refers to.
    pub rendered: Vec<String>,
    /// The number of errors among the diagnostics.
    pub errors: usize,
}

impl Diagnostics {
    pub(crate) fn of(parsed: &metatf_parser::Parsed, text: &[u8]) -> Self {
        let one = |d| metatf_parser::render(d, &parsed.name, text, false);
        Self { rendered: parsed.diagnostics.iter().map(one).collect(), errors: parsed.errors() }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered.join("\n\n"))
    }
}

/// The reason why no code was generated.
#[non_exhaustive]
pub enum Error {
    /// The DTD has errors.
    Dtd(Diagnostics),
    /// The options do not match the DTD.
    Options(OptionError),
    /// A file could not be read or written.
    Io(PathBuf, std::io::Error),
    /// No output directory is known.
    NoOutDir,
}

impl From<OptionError> for Error {
    fn from(error: OptionError) -> Self {
        Self::Options(error)
    }
}

/// Formats like `Display`, so that a `main` function that returns the error prints a sentence.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dtd(diagnostics) => write!(f, "the DTD has errors ({})\n{diagnostics}", diagnostics.errors),
            Self::Options(error) => write!(f, "{error}"),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoOutDir => {
                write!(f, "OUT_DIR is not set: call this function from a build script, or set a directory")
            }
        }
    }
}

impl std::error::Error for Error {}
