//! `recode`: writes the same records in another encoding.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed, usage};
use crate::input;
use crate::options::ThreadArgs;
use crate::pack::{PROFILES, PackArgs, SLOW, parse_size};
use crate::raw::RawArgs;
use crate::target::Target;
use metatf::container::WriteOptions;
use metatf::dynamic::{Schema, Trace};
use metatf_cli::Progress;
use metatf_tools::convert::{ConvertOptions, Converter, Unconvertible};
use metatf_tools::recode::{self, Groups, Options, Plan, Preset};
use std::path::PathBuf;

const MORE: &str = "\
The new trace contains the same records in the same order, with the same values,
comments, groups, stream elements, tables, user metadata and DTD. Only the
encoding changes: recode plans new metadata records, which set the widths and
interpretations of fields.

Plans (named as in section 3.3 of the paper, if described there):
  naive             as in the DTD; a field is widened when a value requires it
  small-size        uses widths 1, 2, 4 and 8; a field is narrowed if this saves
                    bytes before the next wide value
  same-size         runs of equal values become `default`
  combined-size     small-size and same-size combined
  base-offset-1     runs of values close to each other become `baseOffset`, with
                    one byte each
  base-offset-2     the same, with two bytes each
  best-base-offset  base-offset-1 or base-offset-2, whichever is better for a run
  stride            runs of values with a constant difference become `stride`
  best              for each field, the smallest of the above
  optimal           for each field, the cheapest path through widths 0 to 8, none,
                    delta, stride, default and baseOffset

Metadata between records makes compression worse, so the smallest content does
not always compress best. Without --plan, recode encodes compressed content with
both the naive and the optimal plan, on the first block and on every 16th block
after it. The shorter result determines the plan.

A run is encoded only if this saves more bytes than its metadata records use.
Section offsets and section strides are kept. The encoding of constants, tags and
byte arrays is fixed.

--dtd converts the records to another DTD. Records are matched by name, first in
the section of the same name; fields are matched by their path in the record.
Section strides may be stored in another section. An offset into a table becomes
the offset of the same element in the new table. Fields that only the new DTD
defines are set to their default or constant, or to 0. If the new DTD lacks a
field, recode fails and lists the field; to drop the field, use --drop.

Examples:
  metatfc recode in.mtf out.mtf                      with the default preset
  metatfc recode in.mtf plain.mtf --plan naive --codec stored
  metatfc recode in.mtf out.mtf --plan small-size --fields size
  metatfc recode in.mtf out.mtf --plan stride --fields alloc.address,free.address
  metatfc recode heap.mtf split.mtf --dtd HATF10-split --preset archive
  metatfc recode split.mtf small.mtf --dtd HATF10 --drop time,thread
  metatfc recode in.mtf - --codec zstd:19 | metatfc verify -
  metatfc recode capture.pcap capture.mtf
  metatfc recode capture.mtf capture.pcap --to-raw";

/// Rewrite a trace with an encoding that stores the same records in fewer bytes
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    input: PathBuf,
    /// The new trace; `-` writes to standard output
    output: PathBuf,
    /// Plan for choosing the encoding [default: set by the preset]
    #[arg(long, value_name = "PLAN")]
    plan: Option<Plan>,
    /// Plan only these fields, given by name, path or RECORD.PATH; all other fields use the plan naive [default: all
    /// fields]
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    fields: Vec<String>,
    #[command(flatten)]
    pack: PackArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Start a new group at the end of a block once the values of the current group exceed this many bytes, such as
    /// 64K; 0 writes a single group [default: the groups of the trace]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = parse_group)]
    group: Option<usize>,
    /// Plan this many records at a time, such as 64K [default: set by the preset]
    #[arg(long, value_name = "RECORDS", allow_negative_numbers = true, value_parser = parse_block)]
    block: Option<usize>,
    /// Convert the records to this DTD by name (a file or the name of a built-in DTD). With --raw and without
    /// --source-dtd: the DTD of the input
    #[arg(long, value_name = "TARGET")]
    dtd: Option<PathBuf>,
    /// Drop these fields (`time`, `alloc.time`); the matching fields of the new DTD are set to their default
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',', requires = "dtd")]
    drop: Vec<String>,
    /// Drop these records
    #[arg(long, value_name = "RECORD,..", value_delimiter = ',', requires = "dtd")]
    drop_record: Vec<String>,
    /// Version of the trace format: 1 supports an embedded DTD, checksums and compression, 0 is the format of the paper
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    version: u8,
    /// Write the records of one section, with the widths of the DTD, to a file without a header that --raw can read
    #[arg(long, conflicts_with_all = ["plan", "version", "group", "no_embed_dtd"])]
    to_raw: bool,
    /// Do not embed the DTD in the trace
    #[arg(long)]
    no_embed_dtd: bool,
    /// DTD to use if the trace does not embed one (a file or the name of a built-in DTD)
    #[arg(long, value_name = "FILE")]
    source_dtd: Option<PathBuf>,
    /// Read the trace with this DTD, even if the trace embeds another DTD
    #[arg(long, value_name = "FILE", conflicts_with = "source_dtd")]
    force_dtd: Option<PathBuf>,
    /// Allow an embedded DTD of more than 256 KiB
    #[arg(long)]
    large_dtd: bool,
    #[command(flatten)]
    raw: RawArgs,
}

fn parse_block(text: &str) -> Result<usize, String> {
    parse_size(text).ok().filter(|n| *n <= 1 << 20).ok_or_else(|| "expected a number from 1 to 1M".to_owned())
}

fn parse_group(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(usize::MAX) } else { parse_size(text) }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.input);
    let name = &*name;
    // A file without a header has no embedded DTD, so here `--dtd` has the same meaning as for other commands.
    let is_source = args.raw.is_given() && args.source_dtd.is_none() && args.force_dtd.is_none();
    let source = DtdArgs {
        dtd: args.source_dtd.clone().or_else(|| args.dtd.clone().filter(|_| is_source)),
        force_dtd: args.force_dtd.clone(),
        large_dtd: args.large_dtd,
        by_name: false,
        any_version: true,
    };
    let (schema, reader) = args.raw.open(&args.input, &source)?;
    let converter = if is_source { None } else { converter(args, name, &schema)? };
    let target_schema = converter.as_ref().map_or(&schema, Converter::target).clone();
    if let Some(field) = recode::unknown_field(&target_schema.format, &args.fields) {
        let dtd_name = args.dtd.as_deref().map_or(name.into(), input::name);
        return usage(format!("--fields: {dtd_name} has no numeric field `{field}`; `metatfc show` lists its fields"));
    }
    let write = write_options(args, &reader)?;
    let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let records = reader.header().nrecords;
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
    let (target, sink) = Target::create(&args.output)?;
    let mut progress = Progress::new("records").of(records);
    if args.pack.preset == Preset::Archive {
        progress = progress.slow(SLOW);
    }
    let options = plan_options(args, &target_schema);
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

/// Returns the converter of the fields, if `--dtd` is set.
fn converter(args: &Args, name: &str, schema: &Schema) -> Result<Option<Converter>> {
    let Some(path) = &args.dtd else { return Ok(None) };
    if input::is_standard(path) && input::is_standard(&args.input) {
        return usage("the DTD and the trace cannot both be read from standard input");
    }
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
fn plan_options(args: &Args, schema: &Schema) -> Options {
    let preset = args.pack.preset.options();
    let large = if schema.format.models.is_empty() { 0 } else { Preset::Archive.options().block };
    Options {
        plan: args.plan.unwrap_or(if args.to_raw { Plan::Naive } else { preset.plan }),
        others: if args.plan.is_some() || args.to_raw { Vec::new() } else { preset.others },
        fields: args.fields.clone(),
        block: args.block.unwrap_or(preset.block.max(large)),
        groups: args.group.map_or(preset.groups, Groups::Bytes),
        argument_bytes: preset.argument_bytes,
    }
}

fn write_options(args: &Args, reader: &metatf::container::Reader<'_>) -> Result<WriteOptions> {
    let header = reader.header();
    let dtd_url = args.dtd.as_deref().map_or(header.dtd_url.as_str().into(), dtd::source_name);
    if args.no_embed_dtd && dtd_url.is_empty() {
        return failed("--no-embed-dtd: the DTD has no name for the header, so the new trace would be unreadable");
    }
    if args.version == 0 && !args.to_raw && dtd_url.is_empty() {
        return failed(
            "--version 0 cannot embed the DTD, and the header names no DTD: write the DTD to a file with \
             `metatfc show --format dtd`, and add --dtd FILE",
        );
    }
    let mut write = WriteOptions {
        version: if args.to_raw { 0 } else { args.version },
        raw: args.to_raw,
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
