//! A file that can be opened repeatedly, and its DTD.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use metatf::ErrorKind;
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::reader::{FormatRef, RecognizedFile, begins_as, recognize};
use metatf_tools::built_in;

use crate::{Error, Result};

/// Number of bytes used to decide whether a file may have a headerless format.
const HEAD: u64 = 64 << 10;

/// Options for opening traces and converting their values. See the [crate] documentation for an example.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// The DTD for traces that do not embed one and for files without a header. If this is `None`, built-in DTDs are
    /// tried on files without a header.
    pub dtd: Option<Schema>,
    /// Whether to use [`dtd`](Self::dtd) even if the trace embeds a DTD.
    pub force_dtd: bool,
    /// Whether to return values as they are stored: numbers (unsigned unless the format is `signed` or `f64`) and bytes
    /// instead of names, flags, dates, booleans and text. No value is then refused or loses information.
    pub stored: bool,
    /// Whether to map the file instead of reading it in chunks. If another process truncates a mapped file, this
    /// process may be killed by SIGBUS, so use this only for files that no other process writes.
    pub mapped: bool,
    /// Whether a reference to a missing element is an error. Otherwise, its text is null, and
    /// [`Tables::dangling`](crate::Tables::dangling) counts it.
    pub strict: bool,
}

/// A trace or headerless file that can be opened repeatedly.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) schema: Schema,
    raw: Option<RecognizedFile>,
    mapped: bool,
    /// Whether a reference to a missing element is an error.
    pub(crate) is_strict: bool,
    /// The number of references to missing elements that were read.
    pub(crate) dangling: Arc<AtomicU64>,
}

impl Source {
    pub(crate) fn new(path: &Path, options: &OpenOptions) -> Result<Self> {
        let fail = |message: String| Error::new(path, message);
        if path.is_dir() {
            return Err(fail("expected a trace, found a directory".to_owned()));
        }
        let source = |schema, raw| Self {
            path: path.to_owned(),
            schema,
            raw,
            mapped: options.mapped,
            is_strict: options.strict,
            dangling: Arc::default(),
        };
        match open(path, options.mapped) {
            Ok(reader) => Ok(source(schema_of(&reader, options).map_err(fail)?, None)),
            Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) => {
                let (schema, raw) = raw_file(path, options)?
                    .ok_or_else(|| fail(format!("{error}; the first bytes match no known DTD: specify a DTD")))?;
                Ok(source(schema, Some(raw)))
            }
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// Opens the file.
    pub(crate) fn open(&self) -> Result<Trace<'static>> {
        self.read().map_err(|error| self.error(&error))
    }

    fn read(&self) -> metatf::Result<Trace<'static>> {
        let reader = match &self.raw {
            None => open(&self.path, self.mapped)?,
            Some(raw) => {
                let mut reader = open_raw(&self.path, self.mapped)?;
                reader.set_raw_file(raw.order, raw.section, raw.parts.iter().cloned());
                reader
            }
        };
        Trace::new(self.schema.clone(), reader)
    }

    /// Converts a trace error, using the names of its format.
    pub(crate) fn error(&self, error: &metatf::Error) -> Error {
        Error::new(&self.path, metatf::explain(&self.schema.format, error))
    }
}

fn open(path: &Path, mapped: bool) -> metatf::Result<Reader<'static>> {
    if mapped { Reader::open(path) } else { Reader::read(path) }
}

/// Opens a file without a header. If the file is not mapped, copies it to a temporary file.
fn open_raw(path: &Path, mapped: bool) -> metatf::Result<Reader<'static>> {
    if mapped {
        return Reader::open_raw(path, Class::Bits64, Order::Little, 0);
    }
    Reader::raw_from_read(File::open(path)?, Class::Bits64, Order::Little, 0)
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

/// Finds the DTD that recognizes a headerless file by its first bytes (spec 5.4), and determines how to read the file.
fn raw_file(path: &Path, options: &OpenOptions) -> Result<Option<(Schema, RecognizedFile)>> {
    let fail = |error: &dyn std::fmt::Display| Error::new(path, error);
    let mut candidates: Vec<Schema> = match &options.dtd {
        Some(schema) => vec![schema.clone()],
        None => built_in::of_raw_files(),
    };
    // Most files match no DTD and need not be copied.
    let mut head = Vec::new();
    File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).map_err(|e| fail(&e))?;
    candidates.retain(|schema| {
        begins_as(&FormatRef::Shared(Arc::clone(&schema.format)), &head, Class::Bits64) != Some(false)
    });
    if candidates.is_empty() {
        return Ok(None);
    }
    let reader = open_raw(path, options.mapped).map_err(|e| fail(&e))?;
    let bytes = reader.input().unwrap_or_default();
    let mut first_error = None;
    for schema in candidates {
        let format = FormatRef::Shared(Arc::clone(&schema.format));
        match recognize(&format, bytes, Class::Bits64) {
            Ok(Some(file)) => return Ok(Some((schema, file))),
            Ok(None) => {}
            Err(error) => {
                first_error.get_or_insert_with(|| fail(&metatf::explain(&format, &error)));
            }
        }
    }
    first_error.map_or(Ok(None), Err)
}
