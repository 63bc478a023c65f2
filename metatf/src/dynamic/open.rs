//! From a DTD's text, or a trace that embeds one, to a schema.

use super::{Schema, Trace};
use crate::reader::{FormatRef, recognized};
use metatf_container::{Class, Error, Order, Reader};
use metatf_parser::{Diagnostic, MOST_EMBEDDED_BYTES};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Why a trace cannot be read by the universal reader.
pub enum OpenError {
    /// The trace.
    Trace(Error),
    /// The file of this path, or the trace in it.
    File(Box<Path>, Error),
    /// The trace embeds no DTD; its header names this URL.
    NoDtd(String),
    /// The trace embeds a DTD of this many bytes, more than [`MOST_EMBEDDED_BYTES`]; [`Schema::parse`] takes it.
    LargeDtd(usize),
    /// The DTD has errors: its name, and what is wrong with it.
    Dtd(String, Vec<Diagnostic>),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Trace(error)
    }
}

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::NoDtd(url) => write!(f, "the trace embeds no DTD (its header names {url:?}); a DTD has to be given"),
            Self::LargeDtd(bytes) => {
                write!(
                    f,
                    "the trace embeds a DTD of {bytes} bytes; more than {MOST_EMBEDDED_BYTES} are read on request only"
                )
            }
            Self::Dtd(name, diagnostics) => {
                write!(f, "{name} has {} errors", diagnostics.len())?;
                match diagnostics.first() {
                    Some(d) => write!(f, "; {}:{}: {}", d.primary.line, d.primary.column, d.message),
                    None => Ok(()),
                }
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl Schema {
    /// Parses a DTD; `name` is what messages call it. Warnings are dropped.
    ///
    /// # Errors
    /// The DTD's errors, all of them.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self, OpenError> {
        let parsed = metatf_parser::parse(name, text);
        match parsed.dtd {
            Some(dtd) => Ok(Self::new(dtd)),
            None => Err(OpenError::Dtd(name.to_owned(), parsed.diagnostics)),
        }
    }

    /// The schema of the DTD that a trace embeds.
    ///
    /// # Errors
    /// None is embedded, it is longer than [`MOST_EMBEDDED_BYTES`], or it has errors.
    pub fn embedded(container: &Reader<'_>) -> Result<Self, OpenError> {
        let url = &container.header().dtd_url;
        match container.dtd_text() {
            Some(text) if text.len() > MOST_EMBEDDED_BYTES => Err(OpenError::LargeDtd(text.len())),
            Some(text) => Self::parse(if url.is_empty() { "the embedded DTD" } else { url }, text),
            None => Err(OpenError::NoDtd(url.clone())),
        }
    }
}

impl<'a> Trace<'a> {
    /// Opens a trace that embeds its DTD; the file is mapped. If another process truncates it meanwhile, this one may end with
    /// SIGBUS: see [`Reader::open`], and [`Trace::read`].
    ///
    /// # Errors
    /// The file, its header, or its DTD.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace<'static>, OpenError> {
        let path = path.as_ref();
        Trace::embedded(Reader::open(path).map_err(|error| OpenError::File(path.into(), error))?)
    }

    /// Reads a trace that embeds its DTD, in a file that may change meanwhile: it is not mapped.
    ///
    /// # Errors
    /// The file, its header, or its DTD.
    pub fn read(path: impl AsRef<Path>) -> Result<Trace<'static>, OpenError> {
        let path = path.as_ref();
        Trace::embedded(Reader::read(path).map_err(|error| OpenError::File(path.into(), error))?)
    }

    /// Reads a trace that embeds its DTD from memory.
    ///
    /// # Errors
    /// Its header, or its DTD.
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self, OpenError> {
        Self::embedded(Reader::from_slice(bytes)?)
    }

    /// Reads a trace that embeds its DTD from a stream.
    ///
    /// # Errors
    /// The stream, the trace's header, or its DTD.
    pub fn from_read(read: impl Read + Send + 'a) -> Result<Self, OpenError> {
        Self::embedded(Reader::from_read(read)?)
    }

    /// Reads a container by the DTD it embeds.
    ///
    /// # Errors
    /// None is embedded, or it has errors; a section table that does not hold.
    pub fn embedded(container: Reader<'a>) -> Result<Self, OpenError> {
        let schema = Schema::embedded(&container)?;
        Ok(Self::new(schema, container)?)
    }

    /// Reads a file without a header that says itself how it is read, by the roles of the schema's DTD (spec 5.4), from memory.
    ///
    /// # Errors
    /// The file begins otherwise.
    pub fn raw_from_slice(schema: Schema, bytes: &'a [u8]) -> Result<Self, OpenError> {
        let container = Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?;
        let container = recognized(&FormatRef::Shared(Arc::clone(&schema.format)), container)?;
        Ok(Self::new(schema, container)?)
    }
}
