//! Measures the size of traces with a DTD by writing them like a program, with default compression.

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, failed};
use crate::input::{self, Reopenable};
use crate::raw::RawArgs;
use metatf::container::{FlushEvery, Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_tools::convert::{ConvertError, ConvertOptions, Converter, Unconvertible};
use metatf_tools::recode::Preset;
use serde::Serialize;
use std::ops::AddAssign;
use std::path::Path;

/// The size of traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Size {
    /// The size of all records in bytes, before compression.
    pub(super) records: u64,
    /// The size of the files in bytes.
    pub(super) files: u64,
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.files += other.files;
    }
}

/// An input trace, which is rewritten with one DTD after another.
pub(super) struct Source {
    file: Reopenable,
    raw: RawArgs,
    dtd: DtdArgs,
    threads: usize,
}

impl Source {
    /// Opens a trace. `dtd` is used if the trace does not embed a DTD.
    pub(super) fn open(path: &Path, dtd: &Path, threads: usize) -> Result<Self> {
        let (raw, named) = (RawArgs::default(), (!input::is_standard(dtd)).then(|| dtd.to_owned()));
        let dtd = DtdArgs { dtd: named, any_version: true, ..DtdArgs::default() };
        let file = raw.reopenable(path, &dtd, false)?;
        Ok(Self { file, raw, dtd, threads })
    }

    /// Writes the trace with the DTD `target`, whose name in messages is `dtd`. Calls `step` for every record.
    pub(super) fn write(&self, target: &Schema, dtd: &str, step: &mut dyn FnMut()) -> Result<(Written, Size)> {
        let name = self.file.name();
        let (schema, reader) = self.raw.reopen(&self.file, &self.dtd, false)?;
        let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
        let mut converter = match Converter::new(&schema, target, &ConvertOptions::default()) {
            Ok(converter) => converter,
            Err(Unconvertible { fields, records, others, .. }) => {
                let missing = [fields, records, others].concat().join(", ");
                return failed(format!("{name}: {dtd} lacks {missing}; for details, run `metatfc diff {dtd} {name}`"));
            }
        };
        let header = reader.header();
        let mut write = WriteOptions {
            class: header.class,
            order: header.order,
            dtd_url: "lint.dtd".to_owned(),
            embed_dtd: false,
            threads: self.threads,
            // Flush like a file that appears when it is complete, so that sizes do not depend on the time that writing
            // takes.
            flush: FlushEvery::NEVER,
            ..WriteOptions::default()
        };
        Preset::Default.apply(&mut write);
        let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
        let place = tempfile::NamedTempFile::new().map_err(Failure::temporary_file)?;
        let sink = place.reopen().map_err(Failure::temporary_file)?;
        let by_target = |e: &metatf::Error| failed(format!("{name} as {dtd}: {}", metatf::explain(&target.format, e)));
        // Use the same writer as programs. Unlike `convert`, it widens a field when a value requires it,
        // and does not start over at each block.
        let mut writer = match Writer::new(sink, target, &write) {
            Ok(writer) => writer,
            Err(error) => return by_target(&error),
        };
        if let Err(error) = converter.copy(&mut trace, &mut writer, false, step) {
            writer.abandon();
            return match error {
                ConvertError::Read(error) => Err(problem(&error)),
                ConvertError::Write(error) => by_target(&error),
            };
        }
        if let Err(error) = writer.finish() {
            return by_target(&error);
        }
        let written = Written { place };
        let size = written.size()?;
        Ok((written, size))
    }
}

/// A trace in a temporary file.
pub(super) struct Written {
    place: tempfile::NamedTempFile,
}

impl Written {
    pub(super) fn reader(&self) -> Result<Reader<'static>> {
        let opened = metatf_cli::open_trace(self.place.path(), false);
        opened.map_err(Failure::temporary_file)
    }

    fn size(&self) -> Result<Size> {
        let mut reader = self.reader()?;
        let chunks = reader.chunks().map_err(Failure::temporary_file)?;
        let records = chunks.iter().filter(|chunk| chunk.is_data()).map(|chunk| u64::from(chunk.raw_len)).sum();
        let files = self.place.as_file().metadata().map_err(Failure::temporary_file)?.len();
        Ok(Size { records, files })
    }
}
