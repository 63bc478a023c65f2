//! What a file is, and by which DTD it is read (spec 5.3, 5.4).

use crate::plan::{RecordKind, kinds};
use crate::{Result, check, heap, samples};
use metatf::ErrorKind;
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::reader::{FormatRef, RecognizedFile, recognize};
use metatf_parser::MOST_EMBEDDED_BYTES;
use serde::Serialize;
use std::sync::Arc;

/// A file with the DTD that it is read by.
pub struct File {
    name: String,
    bytes: Arc<[u8]>,
    pub(crate) schema: Schema,
    /// Where the DTD is from.
    dtd: DtdFrom,
    /// How it is read where it has no header.
    raw: Option<RecognizedFile>,
}

/// Where the DTD of a file is from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DtdFrom {
    /// The file itself.
    Embedded,
    /// A built-in one, of this name.
    BuiltIn(String),
    /// The one in the page.
    Page,
}

/// What an open file is.
#[derive(Serialize)]
pub struct Opened {
    /// Its name.
    name: String,
    /// Its length.
    bytes: usize,
    /// Whether it has a header.
    trace: bool,
    /// Version of the trace file: 0, or 1 with chunks.
    version: u8,
    /// 32 or 64.
    bits: u8,
    /// `little` or `big`.
    order: &'static str,
    /// Data records as the header says; 0 where it does not.
    records: u64,
    /// Where its DTD is from.
    dtd_from: DtdFrom,
    /// The DTD.
    dtd: String,
    /// Whether it is a heap trace.
    heap: bool,
    /// The kinds of records by the numbers that rows name them by.
    kinds: Vec<RecordKind>,
}

/// Opens a file: a trace, or one that a built-in DTD, or else the page's, knows by its first bytes.
///
/// # Errors
/// It is neither, or it has a DTD with mistakes, or none is at hand.
pub fn open(bytes: Vec<u8>, name: &str, page: &str) -> Result<File> {
    let (schema, dtd, raw) = match Reader::from_slice(&bytes) {
        Ok(reader) => {
            let (schema, dtd) = dtd_of(&reader, name, page)?;
            (schema, dtd, None)
        }
        Err(error) if matches!(error.kind, ErrorKind::NotATrace(..)) => {
            let (schema, dtd, file) = known(&bytes, name, page)?;
            (schema, dtd, Some(file))
        }
        Err(error) => return Err(format!("{name}: {error}")),
    };
    let file = File { name: name.to_owned(), bytes: bytes.into(), schema, dtd, raw };
    file.trace()?;
    Ok(file)
}

/// Finds the DTD of a trace: its own, a built-in one of the name that it has, or that of the page.
fn dtd_of(reader: &Reader<'_>, name: &str, page: &str) -> Result<(Schema, DtdFrom)> {
    if let Some(text) = reader.dtd_text() {
        if text.len() > MOST_EMBEDDED_BYTES {
            return Err(format!(
                "{name}: its DTD has {} KiB; at most {} are read",
                text.len() >> 10,
                MOST_EMBEDDED_BYTES >> 10
            ));
        }
        let schema = Schema::parse("the DTD that it embeds", text).map_err(|error| format!("{name}: {error}"))?;
        return Ok((schema, DtdFrom::Embedded));
    }
    if let Some(error) = reader.opening_error() {
        return Err(format!("{name}: {error}"));
    }
    let url = reader.header().dtd_url.as_str();
    if let Some((dtd, text)) = samples::built_in(url) {
        let schema = Schema::parse(dtd, text.as_bytes()).map_err(|error| error.to_string())?;
        return Ok((schema, DtdFrom::BuiltIn(dtd.to_owned())));
    }
    let parsed = Schema::parse(check::NAME, page.as_bytes());
    let schema = parsed.map_err(|error| {
        format!("{name}: it embeds no DTD and names {url:?}, which is not built in; the DTD in the page would read it, but {error}")
    })?;
    Ok((schema, DtdFrom::Page))
}

/// Finds the DTD that says how a file without a header begins.
fn known(bytes: &[u8], name: &str, page: &str) -> Result<(Schema, DtdFrom, RecognizedFile)> {
    let built_in = samples::DTDS.iter().filter(|(_, text)| text.contains("\"magic\""));
    let built_in =
        built_in.map(|(dtd, text)| (Schema::parse(dtd, text.as_bytes()), DtdFrom::BuiltIn((*dtd).to_owned())));
    let own = std::iter::once_with(|| (Schema::parse(check::NAME, page.as_bytes()), DtdFrom::Page));
    let mut tried = Vec::new();
    for (schema, dtd) in built_in.chain(own) {
        let Ok(schema) = schema else { continue };
        match recognize(&shared(&schema), bytes, Class::Bits64) {
            Ok(Some(file)) => return Ok((schema, dtd, file)),
            Ok(None) => tried.extend(match dtd {
                DtdFrom::BuiltIn(name) => Some(name.trim_end_matches(".dtd").to_owned()),
                _ => schema.format.raw.is_some().then(|| "the DTD in the page".to_owned()),
            }),
            Err(error) => {
                let error = metatf::explain(&schema.format, &error);
                return Err(format!("{name}: it begins as a file of {dtd:?} does, but {error}"));
            }
        }
    }
    let compressed = bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || bytes.starts_with(&[0x1f, 0x8b]);
    let more = if compressed { "; it is compressed: unpack it first" } else { "" };
    Err(format!("{name}: it is no trace, and it does not begin as a file of {} does{more}", tried.join(", ")))
}

fn shared(schema: &Schema) -> FormatRef {
    FormatRef::Shared(Arc::clone(&schema.format))
}

impl File {
    /// A reader at the beginning of the file.
    ///
    /// # Errors
    /// The file.
    pub fn trace(&self) -> Result<Trace<'_>> {
        let opened = match &self.raw {
            None => Reader::from_slice(&self.bytes),
            Some(file) => Reader::raw_from_slice(&self.bytes, Class::Bits64, Order::Little, 0).map(|mut reader| {
                reader.set_raw_file(file.order, file.section, file.parts.iter().cloned());
                reader
            }),
        };
        let opened = opened.and_then(|container| Trace::new(self.schema.clone(), container));
        opened.map_err(|error| self.explain(&error))
    }

    /// An error of the file in words.
    pub(crate) fn explain(&self, error: &metatf::Error) -> String {
        format!("{}: {}", self.name, metatf::explain(&self.schema.format, error))
    }

    /// The bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    ///
    /// # Errors
    /// The file.
    pub fn summary(&self) -> Result<Opened> {
        let trace = self.trace()?;
        let header = trace.reader().container().header();
        Ok(Opened {
            name: self.name.clone(),
            bytes: self.bytes.len(),
            trace: self.raw.is_none(),
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
            kinds: kinds(&self.schema),
        })
    }
}
