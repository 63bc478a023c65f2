//! `spans`: prints the durations of spans by kind.

mod chrome;
mod filter;
mod lines;
mod report;
mod table;
mod tree;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, print_message, usage};
use crate::output::Output;
use crate::raw::RawArgs;
use crate::{input, output};
use chrome::Chrome;
use clap::ValueEnum;
use filter::{Filter, FilterArgs};
use lines::Lines;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_cli::{Format, FormatOr, OutputOrArgs, Progress, Style};
use metatf_tools::spans::{Does, Found, Kinds, Pairs, Wanted};
use report::{Report, TreeReport};
use std::path::PathBuf;
use table::Table;

const MORE: &str = "\
A span is the time between two records, defined by annotations in the DTD:

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
by process.

Times are in nanoseconds, or in the unit of the field: \"us\", \"ms\" or \"s\".

`self` is the part of the total in which no direct child span was open. The parent
of a span is the span named by its record (role \"parent\"), or else the innermost
open span of its thread. --format tree prints a line for each kind at each
position in the tree. --format html and svg draw the tree as a flame graph of
`self`.

--format lines prints a line for each record that is not part of a span. The line
contains the time, level and thread, the enclosing spans with their values, and
the values of the record. If the DTD defines events (tag.span = \"event\"), only
events are printed.

--format chrome prints a JSON trace for Perfetto (ui.perfetto.dev), Chrome
(chrome://tracing) and the Firefox Profiler: spans become slices of their threads,
other records with a time become instants, and both include their values.

Examples:
  metatfc spans T.mtf
  metatfc spans --format json T.mtf | jq '.kinds[] | {name, p99_ns}'
  metatfc spans --format html T.mtf -o T.html
  metatfc spans --format chrome T.mtf -o T.json
  metatfc spans --format lines --level warn --from 2.5s T.mtf
  metatfc spans --format tree --field path=/index.html T.mtf";

/// Print the durations of spans in a trace by kind: count, total, and percentiles
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    trace: PathBuf,
    #[command(flatten)]
    output: OutputOrArgs<Form>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    dtd: DtdArgs,
    /// Convert a trace of any version to the version of --dtd: records and fields are matched by name, including
    /// earlier names (`was`), and those missing from --dtd are omitted
    #[arg(long, requires = "dtd", conflicts_with_all = ["raw"])]
    by_name: bool,
    #[command(flatten)]
    raw: RawArgs,
}

/// An output format other than the report by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A table of spans nested in other spans
    Tree,
    /// A line for each event, as in a log
    Lines,
    /// A trace for Perfetto, Chrome and the Firefox Profiler
    Chrome,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.trace);
    let name = &*name;
    let dtd = DtdArgs { by_name: args.by_name, ..args.dtd.clone() };
    let (schema, reader) = args.raw.open(&args.trace, &dtd)?;
    let filter = Filter::new(&args.filter, &schema)?;
    let is_stream = matches!(args.output.format, FormatOr::Other(Form::Chrome | Form::Lines));
    let kinds = Kinds::new(&schema, is_stream || filter.needs_values());
    if !kinds.have_spans() && !is_stream {
        return usage(format!("{name}: its DTD does not define spans: see `metatfc spans --help`"));
    }
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| Failure::Failed(format!("{name}: {e}")))?;
    let process = process(trace.reader().container().user_metadata(), name);
    let mut printer = Printer::new(&args.output, process, kinds.have(Does::Event))?;
    let wanted = Wanted {
        around: filter.needs_values() || matches!(args.output.format, FormatOr::Other(Form::Lines)),
        parts: matches!(args.output.format, FormatOr::Other(Form::Chrome)),
        tree: !is_stream,
    };
    let mut pairs = Pairs::new(&kinds, wanted);
    let mut found = Vec::new();
    let mut progress = Progress::new("records");
    let mut error = None;
    loop {
        let entry = match trace.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(damage) => {
                error = Some(damage);
                break;
            }
        };
        progress.step();
        let Event::Record(at) = entry.event else { continue };
        let Some(seen) = kinds.seen(&schema, at.record, entry.record) else { continue };
        pairs.take(trace.reader().records_read(), seen, &mut found);
        for found in found.drain(..).filter(|found| filter.shows(found)) {
            printer.put(found, &mut pairs)?;
        }
    }
    drop(progress);
    pairs.rest(&mut found);
    for found in found.drain(..).filter(|found| filter.shows(found)) {
        printer.put(found, &mut pairs)?;
    }
    match printer {
        Printer::Report(table) => {
            let report = Report::new(name, &table, &pairs);
            match args.output.format {
                FormatOr::Report(format) => output::report(&report, &args.output.with(format))?,
                FormatOr::Other(_) => output::report(&TreeReport(report), &args.output.with(Format::Text))?,
            }
        }
        Printer::Lines(_, output) => output.finish()?,
        Printer::Chrome(chrome, mut output) => {
            chrome.end(output.buffer());
            output.finish()?;
            match pairs.open() + pairs.without_end {
                0 => {}
                1 => print_message(&format!("{name}: 1 span has no end in the trace and is omitted")),
                count => print_message(&format!("{name}: {count} spans have no end in the trace and are omitted")),
            }
        }
    }
    match error {
        // The output that precedes the error has been printed.
        Some(error) => Err(Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, &error)))),
        None => Ok(()),
    }
}

/// The output, which is a table printed at the end, or a stream of spans and events.
enum Printer {
    Report(Table),
    Lines(Lines, Output),
    Chrome(Chrome, Output),
}

impl Printer {
    fn new(options: &OutputOrArgs<Form>, process: Option<(u64, String)>, have_events: bool) -> Result<Self> {
        let create = |style| Output::create(style, options.output.as_deref());
        Ok(match options.format {
            FormatOr::Report(_) | FormatOr::Other(Form::Tree) => Self::Report(Table::default()),
            FormatOr::Other(Form::Lines) => Self::Lines(Lines::new(have_events), create(Style::Text)?),
            FormatOr::Other(Form::Chrome) => {
                let mut output = create(Style::Json)?;
                Self::Chrome(Chrome::begin(process, output.buffer()), output)
            }
        })
    }

    fn put(&mut self, found: Found, pairs: &mut Pairs) -> Result<()> {
        let output = match self {
            Self::Report(table) => {
                if let Found::Span(span) = &found {
                    table.add(span);
                    pairs.tree.add(span.node, span.nanoseconds(), span.own, span.busy);
                }
                return Ok(());
            }
            Self::Lines(lines, output) => {
                lines.put(found, output.buffer());
                output
            }
            Self::Chrome(chrome, output) => {
                chrome.found(&found, output.buffer());
                output
            }
        };
        output.spill()
    }
}

/// Returns the process ID and program name of a telemetry trace, or `None` for other traces. If the program is unknown,
/// its name is the file name of the trace up to the first dot.
fn process(user_metadata: &[Vec<u8>], trace: &str) -> Option<(u64, String)> {
    let parsed = user_metadata.iter().filter_map(|json| serde_json::from_slice::<serde_json::Value>(json).ok());
    let telemetry = parsed.map(|json| json["telemetry"].clone()).find(serde_json::Value::is_object)?;
    let name = || {
        let name = std::path::Path::new(trace).file_name().unwrap_or_default().to_string_lossy();
        name.split('.').next().unwrap_or_default().to_owned()
    };
    Some((telemetry["process"].as_u64()?, telemetry["program"].as_str().map_or_else(name, str::to_owned)))
}
