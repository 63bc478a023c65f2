//! `recode`: the same records in another encoding.

use crate::dtd::{self, DtdArgs};
use crate::encode::{FilterArg, parse_codec, parse_size};
use crate::explain::explain;
use crate::failure::{Failure, Result, failed, usage};
use crate::input;
use crate::progress::Progress;
use crate::target::Target;
use metatf::container::{Codec, WriteOptions};
use metatf::dynamic::{Schema, Trace};
use metatf::recode::{self, Groups, Options, Plan};

const MORE: &str = "\
What records say stays: values, order, comments, groups, stream elements,
tables, user metadata, the DTD. Only the encoding changes: the metadata records
that set width and interpretation of fields are dropped, and planned anew.

Plans (the named ones are those of the paper's section 3.3):
  naive             as the DTD says; a field is widened where a value needs it
  small-size        widths 1, 2, 4, 8: narrow where that pays until the next
                    wide value
  same-size         a run of one value becomes `default`
  combined-size     both
  base-offset-1     a run of values near one another becomes `baseOffset`, one
                    byte each
  base-offset-2     the same, two bytes each
  best-base-offset  the better of the two, run by run
  stride            a run of values with one difference becomes `stride`
  best              for each field the smallest of the above
  optimal           for each field the cheapest way through widths 0 to 8, none,
                    delta, stride, default and baseOffset

A run is encoded where it saves more than its metadata records take. A field
that is a section offset or a section stride stays one; constants, the tag and
byte arrays have no encoding to plan.

Examples:
  metatfc recode in.mtf out.mtf                      the smallest there is
  metatfc recode in.mtf plain.mtf --plan naive --codec stored
  metatfc recode in.mtf out.mtf --plan small-size --fields size
  metatfc recode in.mtf out.mtf --plan stride --fields alloc.address,free.address
  metatfc recode in.mtf - --codec zstd:19 | metatfc verify -";

/// Write a trace again in another encoding: the same records, smaller
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` is standard input
    input: String,
    /// The new trace; `-` is standard output
    output: String,
    /// How the encoding is chosen
    #[arg(long, value_name = "PLAN", default_value_t = Plan::Optimal)]
    plan: Plan,
    /// Plan these fields only: names, paths, or RECORD.PATH; others are naive [default: every field]
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    fields: Vec<String>,
    /// stored, lz4, zstd or zlib, with a level if wanted (zstd:19, zlib:9)
    #[arg(long, value_name = "CODEC", default_value = "zstd", value_parser = parse_codec)]
    codec: Codec,
    /// Transpose the bytes of records of one size before they are compressed
    #[arg(long, value_enum, value_name = "FILTER", default_value_t)]
    filter: FilterArg,
    /// Close a chunk at this many bytes of content (K and M may follow the number)
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = parse_size)]
    chunk: usize,
    /// Start a group when this many values were written (K and M may follow), at the end of a block; 0: one group
    /// [default: the groups of the trace]
    #[arg(long, value_name = "SIZE", value_parser = parse_group)]
    group: Option<usize>,
    /// Plan this many records at a time
    #[arg(long, value_name = "RECORDS", default_value = "256K", value_parser = parse_block)]
    block: usize,
    /// 1: chunks, with the DTD, checksums and compression. 0: the paper's layout
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    version: u8,
    /// Leave the DTD out of the trace
    #[arg(long)]
    no_embed_dtd: bool,
    #[command(flatten)]
    dtd: DtdArgs,
}

fn parse_block(text: &str) -> Result<usize, String> {
    parse_size(text).ok().filter(|n| *n <= 1 << 20).ok_or_else(|| "1 to 1M".to_owned())
}

fn parse_group(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(usize::MAX) } else { parse_size(text) }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.input);
    let reader = input::trace(&args.input, false)?;
    let schema = dtd::find(&reader, name, &args.dtd, false)?;
    if let Some(field) = recode::unknown_field(&schema.format, &args.fields) {
        return usage(format!("--fields: {name} has no numeric field `{field}`; `metatfc show` lists its fields"));
    }
    let write = write_options(args, &reader, &schema)?;
    let plan = Options {
        plan: args.plan,
        fields: args.fields.clone(),
        block: args.block,
        groups: args.group.map_or(Groups::Keep, Groups::Bytes),
    };
    let problem = |name: &str, e: &metatf::Error| match e.kind {
        metatf::ErrorKind::Io(std::io::ErrorKind::BrokenPipe) => Failure::Closed,
        _ => Failure::Failed(format!("{name}: {}", explain(&schema.format, e))),
    };
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(name, &e))?;
    let (target, sink) = Target::create(&args.output)?;
    let mut progress = Progress::silent("records");
    let recoded = recode::recode(&mut trace, sink, &write, plan, || progress.step());
    drop(progress);
    match recoded {
        Ok((sink, _)) => target.keep(sink),
        Err(recode::Failure::Read(error)) => Err(problem(name, &error)),
        Err(recode::Failure::Write(error)) => Err(problem(target.name(), &error)),
    }
}

fn write_options(args: &Args, reader: &metatf::container::Reader<'_>, schema: &Schema) -> Result<WriteOptions> {
    let header = reader.header();
    if args.no_embed_dtd && header.dtd_url.is_empty() {
        return failed("--no-embed-dtd: the trace names no DTD in its header, so its copy could not be read");
    }
    let _ = schema;
    Ok(WriteOptions {
        version: args.version,
        class: header.class,
        order: header.order,
        dtd_url: header.dtd_url.clone(),
        embed_dtd: !args.no_embed_dtd,
        codec: args.codec,
        filter: args.filter.into(),
        chunk_size: args.chunk,
        ..WriteOptions::default()
    })
}
