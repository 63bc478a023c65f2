//! How a trace is to be opened.

use super::resolve::{Choice, choose};
use super::{OpenError, Trace};
use crate::reader::{FormatRef, RecordReader, recognized};
use crate::record::Protocol;
use metatf_container::{Class, Order, Reader};
use std::io::Read;
use std::path::Path;

/// How a trace is to be opened: which DTD it is read by (spec 5.3), and what happens after damage (spec 5.2).
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    salvage: bool,
    by_name: bool,
    forced: Option<String>,
    given: Option<String>,
}

impl TraceOptions {
    /// The embedded DTD; the first error ends the trace.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads on after damage; [`Trace::loss_report`] says what was lost.
    #[must_use]
    pub fn salvage(mut self, salvage: bool) -> Self {
        self.salvage = salvage;
        self
    }

    /// Reads a trace of another major or median version of the DTD (`tag.version`), too: by names, as one of another minor version.
    /// Otherwise such a trace is not opened, as fields may mean something else.
    #[must_use]
    pub fn by_name(mut self, by_name: bool) -> Self {
        self.by_name = by_name;
        self
    }

    /// The text of the DTD to read by, whatever the trace says.
    #[must_use]
    pub fn force_dtd(mut self, text: impl Into<String>) -> Self {
        self.forced = Some(text.into());
        self
    }

    /// The text of the DTD to read by, should the trace carry none.
    #[must_use]
    pub fn dtd(mut self, text: impl Into<String>) -> Self {
        self.given = Some(text.into());
        self
    }

    /// Opens a file, which is mapped, or a pipe. [`Reader::open`] says what happens if it changes meanwhile.
    ///
    /// # Errors
    /// No trace, or one whose DTD does not fit.
    pub fn open<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        let path = path.as_ref();
        let reader = if self.salvage { Reader::salvage(path) } else { Reader::open(path) };
        reader.map_err(OpenError::from).and_then(|reader| self.read(reader)).map_err(|error| error.in_file(path))
    }

    /// Reads a trace in a file that may change meanwhile: it is not mapped, so that one who truncates it causes an error and no signal.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read_file<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        let path = path.as_ref();
        let reader = Reader::read(path).map_err(OpenError::from);
        reader.and_then(|reader| self.read(reader)).map_err(|error| error.in_file(path))
    }

    /// Reads a trace in memory.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_slice<P: Protocol>(self, bytes: &[u8]) -> Result<Trace<'_, P>, OpenError> {
        let reader = if self.salvage { Reader::salvage_slice(bytes)? } else { Reader::from_slice(bytes)? };
        self.read(reader)
    }

    /// Reads a trace from a stream.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_read<'t, P: Protocol>(self, read: impl Read + Send + 't) -> Result<Trace<'t, P>, OpenError> {
        let reader = if self.salvage { Reader::salvage_read(read)? } else { Reader::from_read(read)? };
        self.read(reader)
    }

    /// Opens a file without a header that says itself how it is read, by the roles of its DTD (spec 5.4). What stands around its records
    /// are elements of stream sections. [`read`](Self::read) reads others, whose byte order the caller knows.
    ///
    /// # Errors
    /// Reading failed, or the file begins otherwise.
    pub fn open_raw<P: Protocol>(self, path: impl AsRef<Path>) -> Result<Trace<'static, P>, OpenError> {
        let path = path.as_ref();
        let reader = Reader::open_raw(path, Class::Bits64, Order::Little, 0).map_err(OpenError::from);
        reader.and_then(|reader| self.read_raw(reader)).map_err(|error| error.in_file(path))
    }

    /// As [`open_raw`](Self::open_raw), from memory.
    ///
    /// # Errors
    /// The file begins otherwise.
    pub fn raw_from_slice<P: Protocol>(self, bytes: &[u8]) -> Result<Trace<'_, P>, OpenError> {
        self.read_raw(Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?)
    }

    fn read_raw<P: Protocol>(self, reader: Reader<'_>) -> Result<Trace<'_, P>, OpenError> {
        self.read(recognized(&FormatRef::Static(P::FORMAT), reader)?)
    }

    /// Reads a trace from a container that was opened already: one without a header (spec 5.4), for example.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read<P: Protocol>(self, reader: Reader<'_>) -> Result<Trace<'_, P>, OpenError> {
        let (text, trusted) = match (&self.forced, reader.dtd_text(), &self.given) {
            (Some(forced), _, _) => (Some(forced.as_bytes()), true),
            (None, Some(embedded), _) => (Some(embedded), false),
            (None, None, given) => (given.as_ref().map(String::as_bytes), true),
        };
        let Choice { format, map } = choose::<P>(text, (trusted, self.by_name), &reader.header().dtd_url)?;
        let mut reader = RecordReader::new(format, reader)?;
        reader.set_salvage(self.salvage);
        Ok(Trace::new(reader, map))
    }
}
