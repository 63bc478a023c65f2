//! `encode`: writes a trace from JSON lines.

mod references;

use crate::dtd;
use crate::failure::{Failure, Result, failed, usage};
use crate::input;
use crate::options::{ThreadArgs, parse_class, parse_order};
use crate::pack::{PROFILES, PackArgs};
use crate::target::Target;
use metatf::container::{Class, Order, Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_cli::Progress;
use references::{Dangling, References};
use std::borrow::Cow;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;

/// Maximum length of a line. The entire line is read into memory, and its values take several times as much memory.
const MOST_LINE: u64 = 64 << 20;

const MORE: &str = "\
The input has the format printed by `metatfc dump --format jsonl`: one object per
line, with `@section`, `@record` and the fields. Counts, constants and tags may
be omitted. Like the output of `dump --all`, the input may also contain comments,
metadata, groups and stream elements. If a value does not fit its field, encode
writes a metadata record that changes the encoding of the field; with --strict,
it fails. A field that refers to a stream section must contain the offset of an
element.

The output file is created only when it is complete. If a line is invalid, the
error message contains the line number, and no output file is written.

Examples:
  metatfc encode --dtd spans.dtd in.jsonl out.mtf
  metatfc dump --format jsonl --all in.mtf |
    metatfc encode --dtd spans.dtd --codec zstd:19 - out.mtf
  echo '{\"@section\":\"events\",\"@record\":\"end\",\"time\":5,\"thread\":1,\"id\":0,\"bytes\":64}' |
    metatfc encode --dtd spans.dtd - - | metatfc dump -";

/// Write a trace from JSON lines
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The DTD of the trace (a file or the name of a built-in DTD)
    #[arg(long, value_name = "FILE")]
    dtd: PathBuf,
    /// JSON lines; `-` reads standard input
    input: PathBuf,
    /// The trace; `-` writes to standard output
    output: PathBuf,
    /// Version of the trace format: 1 supports an embedded DTD, checksums and compression, 0 is the format of the paper
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=1))]
    version: u8,
    /// Class of the trace: 1 is 32-bit, 2 is 64-bit
    #[arg(long, value_name = "1|2", default_value = "2", value_parser = parse_class)]
    class: Class,
    /// Byte order of records: little or big
    #[arg(long, alias = "byteorder", value_name = "ORDER", default_value = "little", value_parser = parse_order)]
    order: Order,
    #[command(flatten)]
    pack: PackArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Fail if a value does not fit its field
    #[arg(long)]
    strict: bool,
    /// Do not embed the DTD in the trace
    #[arg(long)]
    no_embed_dtd: bool,
    /// Name of the DTD in the trace header (at most 255 bytes) [default: the DTD's file name]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if input::is_standard(&args.dtd) && input::is_standard(&args.input) {
        return usage("the DTD and the records cannot both be read from standard input");
    }
    if args.no_embed_dtd && args.url.as_ref().is_some_and(String::is_empty) {
        return usage("a trace with neither a DTD nor its URL cannot be read: omit --no-embed-dtd or set --url");
    }
    if args.version == 0 && url(args).is_empty() {
        return usage("--version 0 cannot embed the DTD: specify the name of the DTD with --url");
    }
    let schema = Schema::new(dtd::load(&args.dtd)?);
    let options = options(args)?;
    let input = input::lines(&args.input)?;
    let (target, sink) = Target::create(&args.output)?;
    let options = options.flush_every(target.flush());
    let problem = |e| target.failure(&schema.format, &e);
    let mut writer = Writer::new(sink, &schema, &options).map_err(problem)?;
    writer.inner().set_strict(args.strict);
    if let Err(failure) = copy(args, input, &schema, &mut writer) {
        // Abandon the trace without finishing it; dropping `target` removes its temporary file.
        std::mem::forget(writer);
        return Err(target.cause(failure));
    }
    let sink = writer.finish().map_err(problem)?;
    target.keep(sink)
}

/// Returns the name of the DTD for the header.
fn url(args: &Args) -> Cow<'_, str> {
    args.url.as_deref().map_or_else(|| dtd::source_name(&args.dtd), Cow::Borrowed)
}

fn options(args: &Args) -> Result<WriteOptions> {
    let dtd_url = url(args).into_owned();
    if dtd_url.len() > 255 {
        return usage("--url: the name must not be longer than 255 bytes");
    }
    let mut options = WriteOptions {
        version: args.version,
        class: args.class,
        order: args.order,
        dtd_url,
        embed_dtd: !args.no_embed_dtd,
        threads: args.threads.number(),
        ..WriteOptions::default()
    };
    args.pack.apply(&mut options);
    Ok(options)
}

fn copy(
    args: &Args,
    mut input: Box<dyn std::io::BufRead>,
    schema: &Schema,
    writer: &mut Writer<Box<dyn Sink + Send>>,
) -> Result<()> {
    let name = input::name(&args.input);
    let name = &*name;
    let mut progress = Progress::new("lines");
    let (mut line, mut owned) = (Vec::new(), OwnedRecord::default());
    let mut references = References::new(schema, writer);
    let dangling = |d: Dangling| Failure::Failed(format!("{name}:{}: {d}", d.line));
    for number in 1_u64.. {
        line.clear();
        let most = MOST_LINE + 1;
        if input.by_ref().take(most).read_until(b'\n', &mut line).map_err(|e| Failure::io(name, &e))? == 0 {
            break;
        }
        if line.len() as u64 == most {
            return failed(format!("{name}:{number}: the line is longer than {} MiB", MOST_LINE >> 20));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let read = match schema.read_json_in(args.order, &line, &mut owned) {
            Ok(read) => read,
            Err(error) => return failed(format!("{name}:{number}: {error}")),
        };
        let problem = |e| Failure::Failed(format!("{name}:{number}: {}", metatf::explain(&schema.format, &e)));
        writer.write(&read, &owned).map_err(problem)?;
        if let Some(references) = &mut references {
            references.take(number, (&read, &owned), schema, writer).map_err(dangling)?;
        }
        progress.step();
    }
    let Some(references) = &mut references else { return Ok(()) };
    writer.settle().map_err(|e| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, &e))))?;
    references.finish(schema, writer).map_err(dangling)
}
