//! `telemetry`: reads the events of a running or killed program, and changes which events it emits.

use crate::failure::{Failure, Result, print_message};
use crate::labels::Labels;
use crate::output::{self, Output};
use crate::target::Target;
use metatf::container::Sink;
use metatf::dynamic::{Item, JsonOptions, Trace};
use metatf::reader::Event;
use metatf_cli::{Style, shown};
use metatf_telemetry::control::print as kinds_text;
use metatf_telemetry::postmortem::{Buffers, Found, locate};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufReader, BufWriter, Seek as _, Write as _};
use std::path::{Path, PathBuf};

const MORE: &str = "\
A program with telemetry (crate `metatf-telemetry`) writes its events to buffers
that outlive the program. The buffers are a file in /dev/shm, or in the directory
set by METATF_TELEMETRY_FOLDER. WHERE is one of
  the ID of a process, killed or running
  its buffers file
  its unfinished trace, which names the buffers file
  its core dump, if it ran with METATF_TELEMETRY_MEMORY=core

Without --output, the last events of each kind and thread are printed as JSON
lines, newest first. With --output, the command writes all events to a trace: the
events of the unfinished trace and the events that only the buffers contain. The
buffers file is kept; remove it when you no longer need it.

If the unfinished trace cannot be read, the command fails and writes nothing. If
the trace is missing, or if the trace or the buffers are partly corrupt, the
command prints the losses and exits with status 1. In the new trace, events known
to be missing are counted as dropped.

The program's DTD defines the names of the kinds of events (`tag.kind`). KINDS is
a space-separated list of names, a number with one bit per kind, `all` or `none`.
The program applies the change within 100 ms.

Examples:
  metatfc telemetry 4711
  metatfc telemetry events.mtf -o whole.mtf && metatfc stat whole.mtf
  metatfc telemetry 4711 --kinds
  metatfc telemetry 4711 --set-kinds 'Arena Pool'
  metatfc telemetry 4711 --set-kinds '+Object -Pool'";

/// Read the events of a running or killed program, or change which events it emits
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A process ID, buffers file, trace or core dump
    #[arg(value_name = "WHERE")]
    place: String,
    /// Write all events to this trace
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Number of events to print for each kind and thread
    #[arg(long, value_name = "N", default_value_t = 10, conflicts_with_all = ["output", "kinds", "set_kinds"])]
    last: usize,
    /// Print all kinds of events and the enabled kinds
    #[arg(long, conflicts_with_all = ["output", "set_kinds"])]
    kinds: bool,
    /// Enable these kinds and disable all others. If every name starts with + or -, only the named kinds change
    #[arg(long, value_name = "KINDS", allow_hyphen_values = true, conflicts_with = "output")]
    set_kinds: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let buffers = open(&args.place)?;
    match (&args.output, &args.set_kinds) {
        _ if args.kinds => {
            let known = buffers.kinds();
            let on = kinds_text(buffers.control(), &known);
            output::print(&format!("kinds: {}\non: {on}\n", known.join(" ")))
        }
        (_, Some(kinds)) => buffers.set_kinds(kinds).map(drop).map_err(|error| failure(&error)),
        (Some(path), None) => write(&buffers, path),
        (None, None) => print(&buffers, args.last),
    }
}

/// Finds the buffers of a program.
fn open(place: &str) -> Result<Buffers> {
    locate(place).map_err(|error| failure(&error))
}

/// Converts a telemetry error, whose message names the file.
fn failure(error: &metatf_telemetry::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn write(buffers: &Buffers, path: &Path) -> Result<()> {
    let (target, sink) = Target::create(path)?;
    let (found, sink) = buffers.recover(sink).map_err(|error| target.cause(failure(&error)))?;
    target.keep(sink)?;
    print_message(&format!(
        "{}: recovered {} records from the trace and {} more from the buffers, {} threads",
        buffers.path().display(),
        found.in_trace,
        found.in_buffers,
        found.threads.len()
    ));
    report(&found)
}

/// Prints warnings and losses. Returns a failure if there are losses, even though the output is complete otherwise.
fn report(found: &Found) -> Result<()> {
    found.warnings.iter().for_each(|warning| print_message(&format!("warning: {warning}")));
    found.lost.iter().for_each(|lost| print_message(lost));
    if found.lost.is_empty() { Ok(()) } else { Err(Failure::Printed) }
}

/// The number of events and the last lines for each kind and thread.
type Last = BTreeMap<(String, u64), (u64, VecDeque<Vec<u8>>)>;

fn print(buffers: &Buffers, most: usize) -> Result<()> {
    // Recover a trace first, because its records are sorted by time.
    let mut file = tempfile::tempfile().map_err(Failure::temporary_file)?;
    let sink: Box<dyn Sink + Send> = Box::new(BufWriter::new(file.try_clone().map_err(Failure::temporary_file)?));
    let (found, mut sink) = buffers.recover(sink).map_err(|error| failure(&error))?;
    sink.flush().map_err(Failure::temporary_file)?;
    file.rewind().map_err(Failure::temporary_file)?;
    let mut trace = Trace::from_read(BufReader::new(file)).map_err(Failure::temporary_file)?;
    let fail = Failure::temporary_file::<metatf::Error>;
    let schema = trace.schema().clone();
    let options = JsonOptions { names: true, resolve: true, ..JsonOptions::default() };
    let mut labels = Labels::new(&schema);
    let mut last = Last::new();
    while let Some(entry) = trace.next_entry().map_err(fail)? {
        let Event::Record(at) = entry.event else { continue };
        let record = schema.record(at.record);
        let key = schema.section(at.section).zip(record.and_then(|record| record.tag));
        let row = key.and_then(|(section, tag)| buffers.kind_of(section.number, tag));
        let thread = row.and_then(|(_, leaf)| entry.record.get(leaf?)).map_or(0, |item| match item {
            Item::Number(number) => number,
            Item::Bytes(_) => 0,
        });
        if let Some(labels) = &mut labels {
            labels.learn(&schema, at.record, entry.record);
        }
        let (count, lines) = last.entry((row.map_or("telemetry", |(kind, _)| kind).to_owned(), thread)).or_default();
        *count += 1;
        if most == 0 {
            continue;
        }
        let mut line = if lines.len() == most { lines.pop_front().unwrap_or_default() } else { Vec::new() };
        line.clear();
        match &labels {
            Some(labels) => labels.print_json(&mut trace, at, &mut line, options),
            None => trace.print_json(Event::Record(at), &mut line, options),
        }
        .map_err(fail)?;
        lines.push_back(line);
    }
    let names: BTreeMap<u64, &str> =
        found.threads.iter().map(|(thread, name)| (u64::from(*thread), name.as_str())).collect();
    let mut output = Output::new(Style::Json);
    for ((kind, thread), (count, lines)) in &last {
        let title = match names.get(thread) {
            Some(name) => {
                format!("# {kind}, thread {thread} ({}): {} of {count}, newest first\n", shown(name), lines.len())
            }
            None => format!("# {kind}: {} of {count}, newest first\n", lines.len()),
        };
        output.buffer().extend_from_slice(title.as_bytes());
        for line in lines.iter().rev() {
            output.buffer().extend_from_slice(line);
        }
        output.spill()?;
    }
    output.flush()?;
    report(&found)
}
