//! Recognizes files and finds their DTDs (spec 5.3, 5.4).

use crate::converted::{self, Converted};
use crate::plan::{RecordKind, kinds};
use crate::{Result, check, heap, samples};
use metatf::ErrorKind;
use metatf::container::{Class, LossReport, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::reader::{FormatRef, RecognizedFile, recognize};
use metatf_parser::MOST_EMBEDDED_BYTES;
use serde::Serialize;
use std::sync::Arc;

/// A file with its DTD.
pub struct File {
    name: String,
    bytes: Arc<[u8]>,
    pub(crate) schema: Schema,
    /// The origin of the DTD.
    dtd: DtdFrom,
    how: How,
}

/// The way in which a file is read.
#[derive(Default)]
struct How {
    /// The recognized layout of a file without a header.
    raw: Option<RecognizedFile>,
    /// Whether the file is damaged and its undamaged parts after the damage are also read (spec 5.2).
    salvage: bool,
    /// The trace converted from the file.
    converted: Option<Converted>,
}

/// The origin of a DTD.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DtdFrom {
    /// The file itself.
    Embedded,
    /// The built-in DTD of this name.
    BuiltIn(String),
    /// The DTD on the page.
    Page,
}

/// The properties of an open file.
#[derive(Serialize)]
pub struct Opened {
    /// File name.
    name: String,
    /// Size in bytes.
    bytes: usize,
    /// Whether the file has a trace header.
    trace: bool,
    /// Version of the trace file: 0, or 1 for a file with chunks.
    version: u8,
    /// Word size of the trace in bits: 32 or 64.
    bits: u8,
    /// Byte order: `little` or `big`.
    order: &'static str,
    /// Number of data records according to the header, or 0 if the header does not contain it.
    records: u64,
    /// Origin of the DTD.
    dtd_from: DtdFrom,
    /// The DTD text.
    dtd: String,
    /// Whether the file is a heap trace.
    heap: bool,
    /// Original format of a heap trace that was converted.
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'static str>,
    /// The kinds of records. Rows refer to them by index.
    kinds: Vec<RecordKind>,
}

/// Opens a file, which may be compressed. It may be a trace, a file that a built-in DTD or the page's DTD recognizes by
/// its first bytes, or a heap trace in another format, which is converted to a trace.
///
/// # Errors
/// Returns an error if the format is not recognized, or if its DTD has errors or is missing.
pub fn open(bytes: Vec<u8>, name: &str, page: &str) -> Result<File> {
    let bytes: Arc<[u8]> = converted::unpacked(bytes, name)?.into();
    let (schema, dtd, how) = recognized(&bytes, name, page)?;
    let bytes = how.converted.as_ref().map_or(bytes, |made| Arc::clone(&made.trace));
    let file = File { name: name.to_owned(), bytes, schema, dtd, how };
    file.trace()?;
    Ok(file)
}

/// Recognizes a file.
fn recognized(bytes: &Arc<[u8]>, name: &str, page: &str) -> Result<(Schema, DtdFrom, How)> {
    let of = |reader: &Reader<'_>, how| dtd_of(reader, name, page).map(|(schema, dtd)| (schema, dtd, how));
    let error = match Reader::from_slice(bytes) {
        Ok(reader) => {
            let salvage = reader.opening_error().is_some();
            return of(&reader, How { salvage, ..How::default() });
        }
        Err(error) => error,
    };
    let mut tried = Vec::new();
    let is_trace = !matches!(error.kind, ErrorKind::NotATrace(..));
    if !is_trace {
        match known(bytes, name, page)? {
            Ok((schema, dtd, raw)) => return Ok((schema, dtd, How { raw: Some(raw), ..How::default() })),
            Err(names) => tried = names,
        }
    }
    // The header is damaged, but there may be intact chunks after it.
    if let Ok(reader) = Reader::salvage_slice(bytes) {
        return of(&reader, How { salvage: true, ..How::default() });
    }
    if is_trace {
        return Err(format!("{name}: {error}"));
    }
    let made = converted::heap(bytes, name, &tried)?;
    let trace = Arc::clone(&made.trace);
    let reader = Reader::from_slice(&trace).map_err(|error| error.to_string())?;
    of(&reader, How { converted: Some(made), ..How::default() })
}

/// Finds the DTD of a trace. This is the embedded DTD, the built-in DTD that the header names, or the DTD on the page.
fn dtd_of(reader: &Reader<'_>, name: &str, page: &str) -> Result<(Schema, DtdFrom)> {
    if let Some(text) = reader.dtd_text() {
        if text.len() > MOST_EMBEDDED_BYTES {
            return Err(format!(
                "{name}: its DTD is {} KiB long, but the maximum is {} KiB",
                text.len() >> 10,
                MOST_EMBEDDED_BYTES >> 10
            ));
        }
        let schema = Schema::parse("the embedded DTD", text).map_err(|error| format!("{name}: {error}"))?;
        return Ok((schema, DtdFrom::Embedded));
    }
    let url = reader.header().dtd_url.as_str();
    if let Some((dtd, text)) = samples::built_in(url) {
        let schema = Schema::parse(dtd, text.as_bytes()).map_err(|error| error.to_string())?;
        return Ok((schema, DtdFrom::BuiltIn(dtd.to_owned())));
    }
    let parsed = Schema::parse(check::NAME, page.as_bytes());
    let schema = parsed.map_err(|error| {
        let embeds = reader
            .opening_error()
            .map_or("it does not embed a DTD".to_owned(), |error| format!("its DTD is corrupt ({error})"));
        format!(
            "{name}: {embeds}, and the DTD {url:?} is not built in; the DTD on the page cannot be used either: {error}"
        )
    })?;
    Ok((schema, DtdFrom::Page))
}

/// Finds the DTD that recognizes a file without a header. If no DTD recognizes the file, returns the names of the DTDs
/// that were tried.
fn known(
    bytes: &[u8],
    name: &str,
    page: &str,
) -> Result<std::result::Result<(Schema, DtdFrom, RecognizedFile), Vec<String>>> {
    let built_in = samples::DTDS.iter().filter(|(_, text)| text.contains("\"magic\""));
    let built_in =
        built_in.map(|(dtd, text)| (Schema::parse(dtd, text.as_bytes()), DtdFrom::BuiltIn((*dtd).to_owned())));
    let own = std::iter::once_with(|| (Schema::parse(check::NAME, page.as_bytes()), DtdFrom::Page));
    let mut tried = Vec::new();
    for (schema, dtd) in built_in.chain(own) {
        let Ok(schema) = schema else { continue };
        match recognize(&shared(&schema), bytes, Class::Bits64) {
            Ok(Some(file)) => return Ok(Ok((schema, dtd, file))),
            Ok(None) => tried.extend(match dtd {
                DtdFrom::BuiltIn(name) => Some(name.trim_end_matches(".dtd").to_owned()),
                _ => schema.format.raw.is_some().then(|| "the DTD on the page".to_owned()),
            }),
            Err(error) => {
                let error = metatf::explain(&schema.format, &error);
                return Err(format!("{name}: it begins like a file of a known DTD, but {error}"));
            }
        }
    }
    Ok(Err(tried))
}

fn shared(schema: &Schema) -> FormatRef {
    FormatRef::Shared(Arc::clone(&schema.format))
}

impl File {
    /// Returns a reader at the beginning of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn trace(&self) -> Result<Trace<'_>> {
        let opened = match &self.how.raw {
            None if self.how.salvage => Reader::salvage_slice(&self.bytes),
            None => Reader::from_slice(&self.bytes),
            Some(file) => Reader::raw_from_slice(&self.bytes, Class::Bits64, Order::Little, 0).map(|mut reader| {
                reader.set_raw_file(file.order, file.section, file.parts.iter().cloned());
                reader
            }),
        };
        let opened = opened.and_then(|container| Trace::new(self.schema.clone(), container));
        let mut trace = opened.map_err(|error| self.explain(&error))?;
        trace.reader_mut().set_salvage(self.how.salvage);
        Ok(trace)
    }

    /// Enables reading of the undamaged parts after damage. Returns false if this is already enabled, or impossible as
    /// in version 0 (spec 5.2).
    pub(crate) fn read_on(&mut self) -> bool {
        let is_version_0 = |trace: Trace<'_>| trace.reader().container().header().version == 0;
        let How { raw, salvage, converted } = &self.how;
        if *salvage || converted.is_some() || (raw.is_none() && self.trace().is_ok_and(is_version_0)) {
            return false;
        }
        self.how.salvage = true;
        true
    }

    /// Returns a message if the trace is known to be damaged.
    pub(crate) fn damage(&self) -> Option<String> {
        let damaged =
            || format!("{} is corrupt: rows marked “lost” replace the parts that could not be read", self.name);
        self.converted_damage().or_else(|| self.how.salvage.then(damaged))
    }

    /// Returns the reason why the converted trace is incomplete, if it is.
    pub(crate) fn converted_damage(&self) -> Option<String> {
        let damage = self.how.converted.as_ref()?.damage.as_ref()?;
        Some(format!("{}: {damage}; the trace contains only the part before the corruption", self.name))
    }

    /// Returns a summary of the losses of a damaged trace that was read to the end.
    pub(crate) fn summed_up(&self, report: &LossReport) -> String {
        let lost = match report.records_lost() {
            Some(1) => "1 record or stream element was lost".to_owned(),
            Some(lost) => format!("{lost} records and stream elements were lost"),
            None => "an unknown number of records was lost".to_owned(),
        };
        format!("{} is corrupt: {lost}", self.name)
    }

    /// Formats an error in the file as a message.
    pub(crate) fn explain(&self, error: &metatf::Error) -> String {
        format!("{}: {}", self.name, metatf::explain(&self.schema.format, error))
    }

    /// Returns the bytes of the unpacked trace.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Returns the file name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the result of the conversion, if the file was converted to a trace.
    #[must_use]
    pub fn converted(&self) -> Option<&Converted> {
        self.how.converted.as_ref()
    }

    /// Returns the properties of the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn summary(&self) -> Result<Opened> {
        let trace = self.trace()?;
        let header = trace.reader().container().header();
        Ok(Opened {
            name: self.name.clone(),
            bytes: self.bytes.len(),
            trace: self.how.raw.is_none(),
            version: header.version,
            bits: match header.class {
                Class::Bits32 => 32,
                Class::Bits64 => 64,
            },
            order: match trace.reader().order() {
                Order::Little => "little",
                Order::Big => "big",
            },
            records: header.nrecords,
            dtd_from: self.dtd.clone(),
            dtd: self.schema.dtd.text.clone(),
            heap: heap::is_heap(&self.bytes),
            form: self.how.converted.as_ref().map(|made| made.form),
            kinds: kinds(&self.schema),
        })
    }
}
