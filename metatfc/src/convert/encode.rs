//! Writes a trace from JSON lines.

mod references;

use super::Args;
use crate::dtd;
use crate::failure::{Failure, Result, failed, usage};
use crate::input;
use crate::target::Target;
use metatf::container::{Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Strides, Writer};
use metatf::internals::{Dangling, References};
use metatf_cli::Progress;
use std::borrow::Cow;
use std::io::{BufRead as _, Read as _};
use std::path::Path;

/// Maximum length of a line. The entire line is read into memory, and its values take several times as much memory.
const MOST_LINE: u64 = 64 << 20;

pub(super) fn run(args: &Args, file: &Path) -> Result<()> {
    let dtd = args.dtd_of_records()?;
    if args.no_embed_dtd && args.url.as_ref().is_some_and(String::is_empty) {
        return usage("a trace with neither a DTD nor its URL cannot be read: omit --no-embed-dtd or set --url");
    }
    let url = args.url.as_deref().map_or_else(|| dtd::source_name(dtd), Cow::Borrowed);
    if args.version() == 0 && url.is_empty() {
        return usage("--version 0 cannot embed the DTD: specify the name of the DTD with --url");
    }
    if url.len() > 255 {
        return usage("--url: the name must not be longer than 255 bytes");
    }
    let schema = Schema::new(dtd::load(dtd)?);
    let options = options(args, url.into_owned());
    let lines = (input::lines(file)?, &*input::name(file));
    let (target, sink) = Target::create(args.output())?;
    let options = options.flush_every(target.flush());
    let problem = |e| target.failure(&schema.format, &e);
    let mut writer = Writer::new(sink, &schema, &options).map_err(problem)?;
    writer.inner().set_strict(args.strict);
    if let Err(failure) = copy(lines, &schema, &mut writer) {
        // Abandon the trace without finishing it; dropping `target` removes its temporary file.
        std::mem::forget(writer);
        return Err(target.cause(failure));
    }
    let sink = writer.finish().map_err(problem)?;
    target.keep(sink)
}

fn options(args: &Args, dtd_url: String) -> WriteOptions {
    let mut options = WriteOptions {
        version: args.version(),
        class: args.raw.class(),
        order: args.raw.order(),
        dtd_url,
        embed_dtd: !args.no_embed_dtd,
        threads: args.threads.number(),
        ..WriteOptions::default()
    };
    args.pack.apply(&mut options);
    options
}

fn copy(
    (mut input, name): (Box<dyn std::io::BufRead>, &str),
    schema: &Schema,
    writer: &mut Writer<Box<dyn Sink + Send>>,
) -> Result<()> {
    let mut progress = Progress::new("lines");
    let (mut line, mut owned, mut strides) = (Vec::new(), OwnedRecord::default(), Strides::new(schema));
    let mut references = References::new(schema);
    if references.is_some() {
        writer.note_elements();
    }
    let dangling = |d: Dangling| Failure::Failed(format!("{name}:{}: {}", d.number, references::explain(schema, &d)));
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
        let read = match writer.read_json(&line, &mut owned, &mut strides) {
            Ok(read) => read,
            Err(error) => return failed(format!("{name}:{number}: {error}")),
        };
        let problem = |e| Failure::Failed(format!("{name}:{number}: {}", metatf::explain(&schema.format, &e)));
        writer.write(&read, &owned).map_err(problem)?;
        if let Some(references) = &mut references {
            writer.check_line(references, number, (&read, &owned)).map_err(dangling)?;
        }
        progress.step();
    }
    let Some(references) = &mut references else { return Ok(()) };
    writer.settle().map_err(|e| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, &e))))?;
    writer.check_end(references).map_err(dangling)
}
