//! `stat`: prints statistics of a trace, or the durations of its spans.

mod content;
mod report;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, usage};
use crate::input;
use crate::options::ThreadArgs;
use crate::output;
use crate::raw::RawArgs;
use crate::spans::{self, FilterArgs};
use clap::ValueEnum;
use content::{Content, Counted, TELL};
use metatf::container::{Codec, Filter, Reader};
use metatf::dynamic::{Schema, Trace};
use metatf::parallel::Out;
use metatf_cli::{OutputArgs, Progress};
use report::Report;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

const MORE: &str = "\
The report shows how many bytes of the records each leaf uses before compression.
The interpretations default, stride and sectionStride use 0 bytes. `metadata`
counts the records that change widths and interpretations. For leaves with named
values (`values`, `flags`, format `bool`), the report shows how often each value
occurs. It also counts the tags of a record that accepts all other tags
(`tag.value = other;`).

With --spans, the report shows the number, the total and the percentiles of the
durations of spans, by kind. A span is the time between two records, defined by
annotations in the DTD:

  request:  (tag, time, thread, id) { tag.span = \"begin\"; }
  answered: (tag, time, thread, id) { tag.span = \"end\"; }
  time.role = \"time\"; thread.role = \"thread\"; id.role = \"span\";

A span ends at the end record that contains its number (role \"span\"). If spans
have no numbers, a span ends at the next end record in its thread. If end records
name the kind of span that they end (\"end request\"), each such kind has its own
numbers. The first record of a span determines its kind: the kind is the string
whose number the record contains (role \"string_id\"), or else the type of the
record. \"enter\" and \"leave\" records mark when a thread works on a numbered span;
`busy` is the sum of these times. Traces of metatf-tracing contain all of these
records. If a field has the role \"process\", numbers and threads are distinguished
by process. Times are in nanoseconds, or in the unit of the field: \"us\", \"ms\" or
\"s\".

`self` is the part of the total in which no direct child span was open. The parent
of a span is the span named by its record (role \"parent\"), or else the innermost
open span of its thread. --spans=tree prints a line for each kind at each position
in the tree. --format html and svg draw the tree as a flame graph of `self`. For
lines of events, and for a trace of the spans, see `metatfc dump --help`.

Examples:
  metatfc stat T.mtf
  metatfc stat capture.pcap
  metatfc stat --spans T.mtf
  metatfc stat --spans --format json T.mtf | jq '.kinds[] | {name, p99_ns}'
  metatfc stat --spans --format html T.mtf -o T.html
  metatfc stat --spans=tree --field path=/index.html T.mtf
  metatfc stat --format json T.mtf | jq '.sections[] | {name, stored_bytes}'";

/// Print statistics of a trace: records by type, bytes by leaf, compression by section, or durations of spans
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    trace: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    raw: RawArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Print the durations of spans by kind, or by their position in the tree of spans
    #[arg(long, value_name = "BY", num_args = 0..=1, require_equals = true, default_missing_value = "kind")]
    spans: Option<SpansBy>,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The rows of a report about spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SpansBy {
    /// A row for each kind of span
    Kind,
    /// A row for each kind of span at each position in the tree
    Tree,
}

/// The chunks of one section.
#[derive(Clone, Debug, Default, Serialize)]
struct Chunks {
    #[serde(rename = "chunks")]
    count: u64,
    #[serde(rename = "raw_bytes")]
    raw: u64,
    #[serde(rename = "stored_bytes")]
    stored: u64,
    codecs: BTreeMap<&'static str, u64>,
    filters: BTreeMap<&'static str, u64>,
    /// The number of chunks for each pair of codec and filter.
    #[serde(skip)]
    ways: BTreeMap<(&'static str, &'static str), u64>,
}

/// All statistics.
struct Stat {
    content: Content,
    schema: Schema,
    /// The chunks of a version 1 trace by section number, or under `None` if they are not data chunks.
    chunks: BTreeMap<Option<u8>, Chunks>,
    /// The size of the file and the size of its header, in bytes.
    file: (u64, u64),
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.trace);
    let name = &*name;
    if let Some(by) = args.spans {
        let form = spans::Form::Report(&args.output, by == SpansBy::Tree);
        return spans::run(name, args.raw.open(&args.trace, &args.dtd)?, &args.filter, form);
    }
    if args.filter.is_given() {
        return usage("--level, --from, --to and --field select spans: add --spans");
    }
    let file = args.raw.reopenable(&args.trace, &args.dtd, false)?;
    let (schema, reader) = args.raw.reopen(&file, &args.dtd, false)?;
    let fail = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let mut stat = Stat {
        content: Content::first(&schema),
        chunks: BTreeMap::new(),
        file: (file.bytes(), reader.header().len),
        schema: schema.clone(),
    };
    if reader.raw_section().is_none() {
        stat.count_chunks(file.open(false)?);
    }
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| fail(&e))?;
    trace.reader_mut().set_all(true);
    let counted = stat.count(&mut trace, args.threads.number());
    // Print the counts even if there was an error.
    output::report(&Report::new(name, &stat, &trace), &args.output)?;
    counted.map_err(|e| fail(&e))
}

impl Stat {
    /// Counts the chunks listed in the index or, if there is no index, the chunks found by their headers. Ignores
    /// errors, because they are reported when the trace is read.
    fn count_chunks(&mut self, mut reader: Reader<'_>) {
        let Ok(chunks) = reader.chunks().map(<[_]>::to_vec) else { return };
        for (n, chunk) in chunks.iter().enumerate() {
            let counts = self.chunks.entry(chunk.is_data().then_some(chunk.section)).or_default();
            counts.count += 1;
            counts.raw += u64::from(chunk.raw_len);
            counts.stored += u64::from(chunk.stored_len);
            let codec = Codec::name_of(chunk.codec).unwrap_or("unknown");
            let filter = reader.filter_of(n).ok().and_then(Filter::name_of).unwrap_or("unknown");
            *counts.codecs.entry(codec).or_default() += 1;
            *counts.filters.entry(filter).or_default() += 1;
            *counts.ways.entry((codec, filter)).or_default() += 1;
        }
    }

    /// Counts records, including the records before an error.
    fn count(&mut self, trace: &mut Trace<'_>, threads: usize) -> metatf::Result<()> {
        let mut progress = Progress::new("records");
        let schema = self.schema.clone();
        let count = |group: &mut Trace<'_>, out: &mut Out<'_, Counted>| {
            let mut content = Content::new(&schema);
            let counted = content.count(group, &mut || out.send(Counted::Events(TELL)));
            let _ = out.send(Counted::Content(content));
            counted
        };
        let take = |counted| {
            match counted {
                Counted::Events(events) => progress.add(events),
                Counted::Content(content) => self.content.add(content),
            }
            Ok(())
        };
        trace.par_groups().threads(threads).streamed(count, take)
    }
}
