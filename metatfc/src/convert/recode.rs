//! Writes the records of a trace in another encoding, with another DTD or without a header.

use super::Args;
use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed, usage};
use crate::input;
use crate::pack::SLOW;
use crate::target::Target;
use metatf::container::WriteOptions;
use metatf::dynamic::{Schema, Trace};
use metatf_cli::Progress;
use metatf_tools::convert::{ConvertOptions, Converter, Unconvertible};
use metatf_tools::recode::{self, Groups, Options, Plan, Preset};
use std::path::Path;

/// Encodes a trace again, converting it to the DTD of `--to-dtd` if given. If `to_raw` is set, the output has no header.
pub(super) fn run(args: &Args, file: &Path, to_raw: bool) -> Result<()> {
    let name = &*input::name(file);
    let source = DtdArgs { any_version: true, ..args.dtd.clone() };
    let (schema, reader) = args.raw.open(file, &source)?;
    let converter = converter(args, file, &schema)?;
    let target_schema = converter.as_ref().map_or(&schema, Converter::target).clone();
    if let Some(field) = recode::unknown_field(&target_schema.format, &args.fields) {
        let dtd_name = args.to_dtd.as_deref().map_or(name.into(), input::name);
        return usage(format!("--fields: {dtd_name} has no numeric field `{field}`; `metatfc show` lists its fields"));
    }
    let write = write_options(args, &reader, to_raw)?;
    let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let records = reader.header().nrecords;
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
    let (target, sink) = Target::create(args.output())?;
    let mut progress = Progress::new("records").of(records);
    if args.pack.preset == Preset::Archive {
        progress = progress.slow(SLOW);
    }
    let options = plan_options(args, &target_schema, to_raw);
    let recoded = match converter {
        None => recode::recode(&mut trace, sink, &write, options, || progress.step()),
        Some(mut converter) => {
            recode::recode_converted(&mut trace, &mut converter, sink, &write, options, &mut || progress.step())
        }
    };
    drop(progress);
    match recoded {
        Ok((sink, _)) => target.keep(sink),
        Err(recode::Failure::Read(error)) => Err(problem(&error)),
        Err(recode::Failure::Write(error)) => Err(target.failure(&target_schema.format, &error)),
    }
}

/// Returns the converter to the DTD given by `--to-dtd`, if any.
fn converter(args: &Args, file: &Path, schema: &Schema) -> Result<Option<Converter>> {
    let Some(path) = &args.to_dtd else { return Ok(None) };
    let name = input::name(file);
    let target = Schema::new(dtd::load(path)?);
    let options = ConvertOptions { drop: args.drop.clone(), drop_records: args.drop_record.clone() };
    let Unconvertible { fields, records, unknown, others } = match Converter::new(schema, &target, &options) {
        Ok(converter) => return Ok(Some(converter)),
        Err(unconvertible) => unconvertible,
    };
    if !unknown.is_empty() {
        return usage(format!("{name}: its DTD does not define {}", unknown.join(", ")));
    }
    let (mut lines, path) = (Vec::new(), input::name(path));
    if !records.is_empty() {
        lines.push(format!("{path} has no record {} (to drop them, use --drop-record)", records.join(", ")));
    }
    if !fields.is_empty() {
        lines.push(format!("{path} has no field {} (to drop them, use --drop)", fields.join(", ")));
    }
    lines.extend(others.into_iter().map(|other| format!("{other} (target: {path}; use --drop or --drop-record)")));
    failed(lines.into_iter().map(|line| format!("{name}: {line}")).collect::<Vec<_>>().join("\nmetatfc: "))
}

/// Returns the preset's plan, with overriding options applied. Models start each block without state, so traces with
/// models use the block size of the largest preset.
fn plan_options(args: &Args, schema: &Schema, to_raw: bool) -> Options {
    let preset = args.pack.preset.options();
    let large = if schema.format.models.is_empty() { 0 } else { Preset::Archive.options().block };
    Options {
        plan: args.plan.unwrap_or(if to_raw { Plan::Naive } else { preset.plan }),
        others: if args.plan.is_some() || to_raw { Vec::new() } else { preset.others },
        fields: args.fields.clone(),
        block: args.block.unwrap_or(preset.block.max(large)),
        groups: args.group.map_or(preset.groups, Groups::Bytes),
        argument_bytes: preset.argument_bytes,
    }
}

fn write_options(args: &Args, reader: &metatf::container::Reader<'_>, to_raw: bool) -> Result<WriteOptions> {
    let header = reader.header();
    let dtd_url = args.to_dtd.as_deref().map_or(header.dtd_url.as_str().into(), dtd::source_name);
    if args.no_embed_dtd && dtd_url.is_empty() {
        return failed("--no-embed-dtd: the DTD has no name for the header, so the new trace would be unreadable");
    }
    if args.version() == 0 && !to_raw && dtd_url.is_empty() {
        return failed(
            "--version 0 cannot embed the DTD, and the header names no DTD: write the DTD to a file with \
             `metatfc show --format dtd`, and add --to-dtd FILE",
        );
    }
    let mut write = WriteOptions {
        version: if to_raw { 0 } else { args.version() },
        raw: to_raw,
        class: header.class,
        order: header.order,
        dtd_url: dtd_url.into_owned(),
        embed_dtd: !args.no_embed_dtd,
        threads: args.threads.number(),
        ..WriteOptions::default()
    };
    args.pack.apply(&mut write);
    Ok(write)
}
