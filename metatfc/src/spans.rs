//! `spans`: how long spans took, by kind.

mod chrome;
mod pairs;
mod seen;
mod table;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, print_message, usage};
use crate::input;
use crate::output::Output;
use crate::raw::RawArgs;
use chrome::Chrome;
use clap::ValueEnum;
use metatf::dynamic::Trace;
use metatf::reader::Event;
use metatf_cli::{Progress, Style};
use pairs::Pairs;
use seen::Kinds;
use table::Table;

const MORE: &str = "\
A span is what lies between two records. The DTD says which by annotations:

  request:  (tag, time, thread, id) { tag.span = \"begin\"; }
  answered: (tag, time, thread, id) { tag.span = \"end\"; }
  time.role = \"time\"; thread.role = \"thread\"; id.role = \"span\";

A span ends with the record that has its number (role \"span\"), or, where records
have none, the one that its thread began last. It is of the kind that its
beginning names: the string whose number is in it (role \"string_id\"), or else
the record. \"enter\" and \"leave\" tell when a thread works on a span that has a
number: `busy` is the sum of these times. Traces of metatf-tracing have all that.
Numbers and threads are those of a process where a field has that role.

Times are nanoseconds, or what the field's unit says: \"us\", \"ms\", \"s\".

--format chrome prints a JSON trace that Perfetto (ui.perfetto.dev), Chrome
(chrome://tracing) and the Firefox Profiler open: spans as slices of their
threads, other records that have a time as instants.

Examples:
  metatfc spans T.mtf
  metatfc spans --format json T.mtf | jq '.kinds[] | {name, p99_ns}'
  metatfc spans --format chrome T.mtf > T.json";

/// Print how long the spans of a trace took, by kind: count, total, and percentiles
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` is standard input
    trace: String,
    /// How to print
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    raw: RawArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table, and a histogram for each kind
    #[default]
    Text,
    /// One JSON object
    Json,
    /// A trace for Perfetto, Chrome and the Firefox Profiler
    Chrome,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.trace);
    let (schema, reader) = args.raw.open(&args.trace, &args.dtd)?;
    let kinds = Kinds::new(&schema);
    if !kinds.have_spans() && args.format != Format::Chrome {
        return usage(format!("{name}: no record of its DTD begins a span: see `metatfc spans --help`"));
    }
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| Failure::Failed(format!("{name}: {e}")))?;
    let style = if args.format == Format::Text { Style::Text } else { Style::Json };
    let mut output = Output::new(style);
    let mut chrome = (args.format == Format::Chrome).then(|| Chrome::begin(output.buffer()));
    let (mut pairs, mut table) = (Pairs::default(), Table::default());
    let mut progress = Progress::new("records");
    let mut error = None;
    loop {
        let entry = match trace.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(found) => {
                error = Some(found);
                break;
            }
        };
        progress.step();
        let Event::Record(at) = entry.event else { continue };
        let Some(seen) = kinds.seen(&schema, at.record, entry.record) else { continue };
        let done = pairs.take(&seen);
        match (&mut chrome, &done) {
            (Some(chrome), Some(done)) => chrome.done(done, output.buffer()),
            (Some(chrome), None) if seen.does.is_none() => chrome.instant(pairs.name(&seen), &seen, output.buffer()),
            (None, Some(done)) => table.add(done),
            (_, None) => {}
        }
        output.spill()?;
    }
    drop(progress);
    match (args.format, chrome) {
        (_, Some(chrome)) => chrome.end(output.buffer()),
        (Format::Json, _) => table.json(&pairs, output.buffer()),
        _ => table.text(&pairs, output.buffer()),
    }
    output.flush()?;
    if args.format == Format::Chrome && pairs.open() > 0 {
        print_message(&format!("{name}: {} spans have not ended, and are left out", pairs.open()));
    }
    match error {
        // What came before it is printed.
        Some(error) => Err(Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, &error)))),
        None => Ok(()),
    }
}
