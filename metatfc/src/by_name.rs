//! `--by-name`, which converts a trace to another version of its DTD (spec 5.3).

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed};
use crate::input;
use metatf::container::{FlushEvery, Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_tools::convert::{ConvertError, ConvertOptions, Converter, Unconvertible};
use metatf_tools::recode::Preset;
use std::io::{BufReader, Seek as _};

/// Returns an opened trace. With `--by-name`, the returned trace is a copy converted to the DTD on the command line.
/// The copy is an unnamed temporary file, so nothing remains after exit.
pub(crate) fn open(
    name: &str,
    (schema, reader): (Schema, Reader<'static>),
    args: &DtdArgs,
) -> Result<(Schema, Reader<'static>)> {
    let wanted = args.dtd.as_deref().filter(|_| args.by_name && reader.dtd_text().is_some());
    let Some(path) = wanted else { return Ok((schema, reader)) };
    let target = Schema::new(dtd::load(path)?);
    let path = input::name(path);
    let mut converter = match converter(&schema, &target) {
        Ok(converter) => converter,
        Err(why) => return failed(format!("{name}: cannot be converted to {path}: {why}")),
    };
    let header = reader.header();
    let mut write = WriteOptions {
        class: header.class,
        order: header.order,
        dtd_url: header.dtd_url.clone(),
        embed_dtd: false,
        flush: FlushEvery::NEVER,
        ..WriteOptions::default()
    };
    Preset::Fast.apply(&mut write);
    let by_source = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let by_target =
        |e: &metatf::Error| Failure::Failed(format!("{name} as {path}: {}", metatf::explain(&target.format, e)));
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| by_source(&e))?;
    let file = tempfile::tempfile().map_err(Failure::temporary_file)?;
    let mut copy = file.try_clone().map_err(Failure::temporary_file)?;
    let mut writer = Writer::new(file, &target, &write).map_err(|e| by_target(&e))?;
    if let Err(error) = converter.copy(&mut trace, &mut writer, true, &mut || {}) {
        writer.abandon();
        return Err(match error {
            ConvertError::Read(error) => by_source(&error),
            ConvertError::Write(error) => by_target(&error),
        });
    }
    writer.finish().map_err(|e| by_target(&e))?;
    copy.rewind().map_err(Failure::temporary_file)?;
    let reader = Reader::from_read(BufReader::with_capacity(1 << 18, copy)).map_err(|e| by_target(&e))?;
    Ok((target, reader))
}

/// Matches records and fields by name. Records and fields that are missing from the target are dropped.
fn converter(source: &Schema, target: &Schema) -> std::result::Result<Converter, Unconvertible> {
    let mut options = ConvertOptions::default();
    match Converter::new(source, target, &options) {
        Err(Unconvertible { fields, records, others, unknown }) if others.is_empty() && unknown.is_empty() => {
            (options.drop, options.drop_records) = (fields, records);
            Converter::new(source, target, &options)
        }
        other => other,
    }
}
