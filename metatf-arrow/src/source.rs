//! A file that can be opened as often as one likes, and the DTD that it is read by.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use metatf::ErrorKind;
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::reader::{FormatRef, RecognizedFile, recognize};
use metatf_tools::built_in;

use crate::{Error, Result};

/// How a trace is opened, and its values are shown.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// Reads traces that embed no DTD, and files without a header, by this one. Without it such a file is tried by the DTDs that come with
    /// the project.
    pub dtd: Option<Schema>,
    /// Reads by [`dtd`](Self::dtd) even a trace that embeds another.
    pub force_dtd: bool,
    /// Gives values as they are stored: numbers (unsigned, unless the format is `signed` or `f64`) and bytes, in place of names, flags,
    /// dates, truth values and text. Nothing is lost or refused.
    pub stored: bool,
    /// Reads the file chunk by chunk, in one thread, in place of mapping it. If another process truncates a mapped file, this one may end
    /// with SIGBUS.
    pub unmapped: bool,
}

/// A trace, or a file without a header, that can be opened as often as one likes.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) schema: Schema,
    raw: Option<RecognizedFile>,
    unmapped: bool,
}

impl Source {
    pub(crate) fn new(path: &Path, options: &OpenOptions) -> Result<Self> {
        let fail = |message: String| Error::new(path, message);
        if path.is_dir() {
            return Err(fail("it is a folder: name a trace".to_owned()));
        }
        let source = |schema, raw| Self { path: path.to_owned(), schema, raw, unmapped: options.unmapped };
        let opened = if options.unmapped { Reader::read(path) } else { Reader::open(path) };
        match opened {
            Ok(reader) => Ok(source(schema_of(&reader, options).map_err(fail)?, None)),
            Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) => {
                let (schema, raw) = raw_file(path, options)?.ok_or_else(|| {
                    fail(format!("{error}; nor does it begin as a file of a DTD that is known: name one"))
                })?;
                Ok(source(schema, Some(raw)))
            }
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// Opens it.
    pub(crate) fn open(&self) -> Result<Trace<'static>> {
        self.read().map_err(|error| self.error(&error))
    }

    fn read(&self) -> metatf::Result<Trace<'static>> {
        let reader = match &self.raw {
            None if self.unmapped => Reader::read(&self.path)?,
            None => Reader::open(&self.path)?,
            Some(raw) => {
                let mut reader = Reader::open_raw(&self.path, Class::Bits64, Order::Little, 0)?;
                reader.set_raw_file(raw.order, raw.section, raw.parts.iter().cloned());
                reader
            }
        };
        Trace::new(self.schema.clone(), reader)
    }

    /// An error of the trace, with the names that its format has.
    pub(crate) fn error(&self, error: &metatf::Error) -> Error {
        Error::new(&self.path, metatf::explain(&self.schema.format, error))
    }
}

/// Finds the DTD of a trace (spec 5.3).
fn schema_of(reader: &Reader<'_>, options: &OpenOptions) -> Result<Schema, String> {
    if let Some(schema) = options.dtd.as_ref().filter(|_| options.force_dtd || reader.dtd_text().is_none()) {
        return Ok(schema.clone());
    }
    if let Some(error) = reader.opening_error().filter(|_| reader.dtd_text().is_none()) {
        return Err(error.to_string());
    }
    match built_in::find(&reader.header().dtd_url) {
        Some((name, text)) if reader.dtd_text().is_none() => Schema::parse(name, text.as_bytes()),
        _ => Schema::embedded(reader),
    }
    .map_err(|error| error.to_string())
}

/// Finds the DTD of a file without a header that says itself what it is (spec 5.4), and how it is read.
fn raw_file(path: &Path, options: &OpenOptions) -> Result<Option<(Schema, RecognizedFile)>> {
    let fail = |error: &dyn std::fmt::Display| Error::new(path, error);
    let reader = Reader::open_raw(path, Class::Bits64, Order::Little, 0).map_err(|e| fail(&e))?;
    let bytes = reader.input().unwrap_or_default();
    let candidates: Vec<Schema> = match &options.dtd {
        Some(schema) => vec![schema.clone()],
        None => built_in::of_raw_files(),
    };
    let mut found = Vec::new();
    for schema in candidates {
        let format = FormatRef::Shared(Arc::clone(&schema.format));
        let recognized = recognize(&format, bytes, Class::Bits64).map_err(|e| fail(&metatf::explain(&format, &e)))?;
        found.extend(recognized.map(|file| (schema, file)));
    }
    if found.len() > 1 {
        return Err(fail(&"it may be a file of several DTDs: name one"));
    }
    Ok(found.pop())
}
