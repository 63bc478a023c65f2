//! Creating a schema from a DTD's text or from a trace that embeds a DTD.

use super::{Schema, Trace};
use crate::reader::{FormatRef, recognized};
use metatf_container::{ByteRanges, Class, Error, Order, Reader};
use metatf_parser::{Diagnostic, MOST_EMBEDDED_BYTES};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The reasons why the dynamic reader cannot read a trace.
pub enum OpenError {
    /// An error in the trace.
    Trace(Error),
    /// An error in the file with this path or the trace in it.
    File(Box<Path>, Error),
    /// The trace does not embed a DTD. Its header names this URL.
    NoDtd(String),
    /// The trace embeds a DTD of this many bytes, more than [`MOST_EMBEDDED_BYTES`]. [`Schema::parse`] accepts it.
    LargeDtd(usize),
    /// The DTD has errors. The values are the name of the DTD and its diagnostics.
    Dtd(String, Vec<Diagnostic>),
}

impl From<Error> for OpenError {
    fn from(error: Error) -> Self {
        Self::Trace(error)
    }
}

/// Prints like `Display`, so that a `main` that returns the error prints a readable message.
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
            Self::NoDtd(url) => {
                write!(f, "the trace embeds no DTD (its header names {url:?}), so you must supply a DTD")
            }
            Self::LargeDtd(bytes) => {
                write!(
                    f,
                    "the trace embeds a DTD of {bytes} bytes; a DTD of more than {MOST_EMBEDDED_BYTES} bytes is read \
                     only on request"
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
    /// Parses a DTD, which messages refer to as `name`. Warnings are discarded.
    ///
    /// # Errors
    /// Returns all errors in the DTD.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self, OpenError> {
        let parsed = metatf_parser::parse(name, text);
        match parsed.dtd {
            Some(dtd) => Ok(Self::new(dtd)),
            None => Err(OpenError::Dtd(name.to_owned(), parsed.diagnostics)),
        }
    }

    /// Returns the schema of the DTD that a trace embeds.
    ///
    /// # Errors
    /// Returns an error if the trace embeds no DTD, or if the DTD is longer than [`MOST_EMBEDDED_BYTES`] or has errors.
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
    /// Opens a trace that embeds its DTD. The file is mapped, so if another process truncates it in the meantime,
    /// SIGBUS may kill this process; see [`Reader::open`] and [`Trace::read`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or its header or DTD is invalid.
    pub fn open(path: impl AsRef<Path>) -> Result<Trace<'static>, OpenError> {
        let path = path.as_ref();
        Trace::embedded(Reader::open(path).map_err(|error| OpenError::File(path.into(), error))?)
    }

    /// Reads a trace with an embedded DTD from a file that may change in the meantime. The file is not mapped.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or its header or DTD is invalid.
    pub fn read(path: impl AsRef<Path>) -> Result<Trace<'static>, OpenError> {
        let path = path.as_ref();
        Trace::embedded(Reader::read(path).map_err(|error| OpenError::File(path.into(), error))?)
    }

    /// Reads a trace with an embedded DTD from memory.
    ///
    /// # Errors
    /// Returns an error if the header or the DTD is invalid.
    pub fn from_slice(bytes: &'a [u8]) -> Result<Self, OpenError> {
        Self::embedded(Reader::from_slice(bytes)?)
    }

    /// Reads a trace with an embedded DTD from a stream.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be read, or the header or DTD is invalid.
    pub fn from_read(read: impl Read + Send + 'a) -> Result<Self, OpenError> {
        Self::embedded(Reader::from_read(read)?)
    }

    /// Reads a trace with an embedded DTD from byte ranges, such as those of an object in an object store.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be read, or the header or DTD is invalid.
    pub fn from_ranges(ranges: impl ByteRanges + 'a) -> Result<Self, OpenError> {
        Self::embedded(Reader::from_ranges(ranges)?)
    }

    /// Reads a container by means of its embedded DTD.
    ///
    /// # Errors
    /// Returns an error if the container embeds no DTD, the DTD has errors, or the section table is invalid.
    pub fn embedded(container: Reader<'a>) -> Result<Self, OpenError> {
        let schema = Schema::embedded(&container)?;
        Ok(Self::new(schema, container)?)
    }

    /// Reads a file without a header from memory, if the roles in the schema's DTD describe how to read it (spec 5.4).
    ///
    /// # Errors
    /// Returns an error if the file does not begin as the DTD requires.
    pub fn raw_from_slice(schema: Schema, bytes: &'a [u8]) -> Result<Self, OpenError> {
        let container = Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?;
        let container = recognized(&FormatRef::Shared(Arc::clone(&schema.format)), container)?;
        Ok(Self::new(schema, container)?)
    }
}
