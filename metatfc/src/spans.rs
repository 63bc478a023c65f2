//! Spans: their durations by kind (`stat --spans`), and lines or a trace of them and of events (`dump`).

mod chrome;
mod filter;
mod lines;
mod report;
mod table;
mod tree;

use crate::failure::{Failure, Result, print_message, usage};
use crate::output::{self, Output};
use chrome::Chrome;
use filter::Filter;
use lines::Lines;
use metatf::container::Reader;
use metatf::dynamic::{Schema, Trace};
use metatf::reader::Event;
use metatf_cli::{Format, OutputArgs, Progress, Style};
use metatf_tools::spans::{Does, Found, Kinds, Pairs, Wanted};
use report::{Report, TreeReport};
use table::Table;

pub(crate) use filter::FilterArgs;

/// The output form of spans and events.
#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    /// A report of the durations by kind; as text, by position in the tree of spans if the flag is set.
    Report(&'a OutputArgs, bool),
    /// A line for each event, as in a log.
    Lines,
    /// A trace for Perfetto, Chrome and the Firefox Profiler.
    Chrome,
}

/// Prints the spans and events of a trace that match `filter`. Messages refer to the trace as `name`.
pub(crate) fn run(
    name: &str,
    (schema, reader): (Schema, Reader<'static>),
    filter: &FilterArgs,
    form: Form<'_>,
) -> Result<()> {
    let filter = Filter::new(filter, &schema)?;
    let is_stream = !matches!(form, Form::Report(..));
    let kinds = Kinds::new(&schema, is_stream || filter.needs_values());
    if !kinds.have_spans() && !is_stream {
        return usage(format!("{name}: its DTD does not define spans: see `metatfc stat --help`"));
    }
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| Failure::Failed(format!("{name}: {e}")))?;
    let process = process(trace.reader().container().user_metadata(), name);
    let mut printer = Printer::new(form, process, kinds.have(Does::Event));
    let wanted = Wanted {
        around: filter.needs_values() || matches!(form, Form::Lines),
        parts: matches!(form, Form::Chrome),
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
        Printer::Report(table, output, is_tree) => {
            let report = Report::new(name, &table, &pairs);
            if is_tree && output.format == Format::Text {
                output::report(&TreeReport(report), output)?;
            } else {
                output::report(&report, output)?;
            }
        }
        Printer::Lines(_, mut output) => output.flush()?,
        Printer::Chrome(chrome, mut output) => {
            chrome.end(output.buffer());
            output.flush()?;
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
enum Printer<'a> {
    Report(Table, &'a OutputArgs, bool),
    Lines(Lines, Output),
    Chrome(Chrome, Output),
}

impl<'a> Printer<'a> {
    fn new(form: Form<'a>, process: Option<(u64, String)>, have_events: bool) -> Self {
        match form {
            Form::Report(output, is_tree) => Self::Report(Table::default(), output, is_tree),
            Form::Lines => Self::Lines(Lines::new(have_events), Output::new(Style::Text)),
            Form::Chrome => {
                let mut output = Output::new(Style::Json);
                Self::Chrome(Chrome::begin(process, output.buffer()), output)
            }
        }
    }

    fn put(&mut self, found: Found, pairs: &mut Pairs) -> Result<()> {
        let output = match self {
            Self::Report(table, ..) => {
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
