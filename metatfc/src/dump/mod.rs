//! `dump`: prints a trace.

mod condition;
mod groups;
mod hex;
mod resolve;
mod select;
mod text;
mod work;

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::input;
use crate::labels::Labels;
use crate::options::ThreadArgs;
use crate::output::{Output, style_out};
use crate::raw::FileArgs;
use crate::spans::{self, FilterArgs};
use clap::ValueEnum;
use metatf::container::Reader;
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace};
use metatf::reader::Event;
use metatf_cli::{Style, number};
use metatf_page::units::count;
use resolve::Resolver;
use select::Select;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use work::Work;

const MORE: &str = "\
Conditions (--where):
  A condition compares fields with values, or with each other:
    ==  !=  <  <=  >  >=  &  in (1, 2)  not in (1, 2)
  and combines comparisons: && (or `and`), || (or `or`), ! (or `not`), ( )
  Fields have the same names as in JSON, such as size, box.point.x or address_2.
  The last part of a name is enough, such as x. The value of a `vfield` is its
  bytes. A field without a comparison is true unless it is zero or empty.
  @section, @record and @offset can be used like fields.
  Values may be names defined by the DTD: state == zombie, state != \"not found\".
  `&` is true if any of the bits is set: mode & write, mode & \"read|write\",
  mode & 0x6.
  Numbers: 4096, 4_096, 0x1000, -1, 1.5. Strings: \"text\", 'text'. Bytes:
  x\"00ff\".
  A repeated field matches if any of its values matches. A comparison is false if
  the record lacks the field. With a condition, comments, metadata and group
  marks are not printed.

Formats (--format):
  text   one line per record; values follow the DTD's `format` and `unit`
  jsonl  one JSON object per record; `metatfc convert` reads it back
  hex    each field with its offset, bytes and value. If a metadata record set
         the encoding of the field, its offset is printed, too. Offsets refer to
         the file or, for compressed chunks, to the content of the chunk
  lines  a log: a line for each record that is not part of a span. The line
         contains the time, level and thread, the enclosing spans with their
         values, and the values of the record. If the DTD defines events
         (tag.span = \"event\"), only events are printed
  chrome a JSON trace for Perfetto (ui.perfetto.dev), Chrome (chrome://tracing)
         and the Firefox Profiler: spans become slices of their threads, other
         records with a time become instants, and both include their values
`metatfc stat --help` explains spans, and `metatfc stat --spans` shows their
durations. `metatfc convert` writes tables: CSV, SQLite, Parquet and Arrow.

Examples:
  metatfc dump T.mtf | head
  metatfc dump --where 'size >= 0x1000 && thread != 1' --tail 20 T.mtf
  metatfc dump --format jsonl --all T.mtf |
    metatfc convert --dtd D.dtd - copy.mtf
  metatfc dump capture.pcap
  metatfc dump --raw --order little --dtd log.dtd app.log
  record-something | metatfc dump -
  metatfc dump --follow --where 'size > 1000000' T.mtf
  metatfc dump --format chrome T.mtf > T.json
  metatfc dump --format lines --level warn --from 2.5s T.mtf";

/// Print the records of a trace
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    trace: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// Print comments, metadata, tags, constants, offsets and stream elements, too
    #[arg(long)]
    all: bool,
    /// With --all and jsonl: print {"@reset":NAME} when the state of a section is reset within a group
    #[arg(long, requires = "all")]
    resets: bool,
    /// With jsonl: print names of values and flags instead of numbers, and print formats such as `bool` and `uuid` in
    /// readable form, like the text format. Without --all and --resolve, also print strings instead of references to
    /// them; `metatfc convert` adds these strings to the table
    #[arg(long)]
    names: bool,
    /// Print only this section, given by name or number (0 is the global section); may be repeated. With --raw and
    /// --order: the section that the file contains
    #[arg(long, value_name = "NAME")]
    section: Vec<String>,
    /// Print only records with this name; may be repeated
    #[arg(long, value_name = "NAME")]
    record: Vec<String>,
    /// Print only records that match, such as 'size > 4096' (see below)
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Skip the first N matching data records
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = number(0..=u64::MAX))]
    skip: u64,
    /// Print only the first N data records
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number(0..=u64::MAX))]
    head: Option<u64>,
    /// Print only the last N data records
    #[arg(long, value_name = "N", conflicts_with = "head", allow_negative_numbers = true, value_parser = number(0..=usize::MAX))]
    tail: Option<usize>,
    #[command(flatten)]
    dtd: DtdArgs,
    /// Convert a trace of any version to the version of --dtd: records and fields are matched by name, including
    /// earlier names (`was`), and those missing from --dtd are omitted
    #[arg(long, requires = "dtd", conflicts_with_all = ["follow", "salvage", "raw"])]
    by_name: bool,
    /// Continue after corruption: print all intact records, and report the losses on standard error
    #[arg(long)]
    salvage: bool,
    /// Also print the element that a `sectionOffset` field refers to. If the DTD defines roles for labels and strings,
    /// also print the labels of addresses and the strings of numbers. In csv and sql, this text replaces the number
    #[arg(long)]
    resolve: bool,
    #[command(flatten)]
    raw: FileArgs,
    /// Wait for more records at the end of the file and print them as they are written, until the trace is finished.
    /// Groups appear when the writer flushes them
    #[arg(long, conflicts_with_all = ["raw", "salvage", "tail"])]
    follow: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Text,
    Jsonl,
    Hex,
    Lines,
    Chrome,
}

impl Format {
    /// Returns the style in which the format escapes terminal control characters.
    fn style(self) -> Style {
        match self {
            Self::Text => style_out(),
            Self::Hex | Self::Lines => Style::Text,
            Self::Jsonl | Self::Chrome => Style::Json,
        }
    }
}

/// A printer for an output format.
trait Printer {
    /// Returns the resolver of names, labels and elements, if `--resolve` is set.
    fn resolver(&mut self) -> Option<&mut Resolver> {
        None
    }

    /// Returns whether the output for a record depends on earlier records.
    fn carries(&mut self) -> bool {
        self.resolver().is_some_and(|resolver| resolver.carries())
    }

    /// Processes an event before it is printed or skipped.
    fn note(&mut self, trace: &Trace<'_>, event: Event) {
        let _ = (trace, event);
    }

    /// Returns whether the printer needs the values of an event even if the event is not printed.
    fn needs(&mut self, event: Event) -> bool {
        self.resolver().is_some_and(|resolver| resolver.needs(event))
    }

    /// Processes the values of an event that it [`needs`](Self::needs).
    fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if let Some(resolver) = self.resolver() {
            resolver.take(trace, event);
        }
    }

    /// Decodes the event that the trace returned last.
    fn decode(&mut self, trace: &mut Trace<'_>, event: Event) -> metatf::Result<()> {
        trace.decode(event)
    }

    /// Returns the decoded values.
    fn owned<'t>(&'t self, trace: &'t Trace<'_>) -> &'t OwnedRecord {
        trace.record()
    }

    /// Omits the padding between columns, whose width depends on earlier output.
    fn leave_gaps(&mut self) {}

    /// Returns the gaps whose padding was omitted since the last call.
    fn gaps(&mut self) -> Vec<text::Gap> {
        Vec::new()
    }

    /// Prints the decoded event.
    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()>;
}

/// A printer of JSON lines (spec 8) in the runtime's format, with labels if the DTD defines any.
struct Json(JsonOptions, Option<Labels>);

impl Printer for Json {
    fn carries(&mut self) -> bool {
        self.1.is_some()
    }

    fn needs(&mut self, event: Event) -> bool {
        matches!(event, Event::Record(at) if self.1.as_ref().is_some_and(|labels| labels.needs(at.record)))
    }

    fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if let (Some(labels), Event::Record(at)) = (&mut self.1, event) {
            labels.learn(trace.schema(), at.record, trace.record());
        }
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        match (&self.1, event) {
            (Some(labels), Event::Record(at)) => labels.print_json(trace, at, out, self.0),
            _ => trace.print_json(event, out, self.0),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.trace);
    let name = &*name;
    let open = || {
        let dtd = DtdArgs { by_name: args.by_name, ..args.dtd.clone() };
        args.raw.open(&args.trace, raw_section(args)?, &dtd, args.salvage)
    };
    if let Some(form) = args.spans()? {
        return spans::run(name, open()?, &args.filter, form);
    }
    let ((schema, reader), at_end) = if args.follow {
        let (opened, at_end) = open_to_follow(args, name)?;
        (opened, Some(at_end))
    } else {
        (open()?, None)
    };
    let records = reader.raw_section().and_then(|number| schema.dtd.section(number));
    // A raw stream section contains only elements.
    let elements = records.is_some_and(|section| section.stream.is_some());
    let all = args.all || elements;
    let mut sections = if args.raw.is_read_as_said() { Vec::new() } else { args.section.clone() };
    // Sections around the records are printed only with --all.
    let is_around = |section: &metatf_parser::schema::Section| schema.format.is_around_records(section.number);
    if elements && !args.all && sections.is_empty() && schema.dtd.sections.iter().any(is_around) {
        sections.extend(records.and_then(|section| section.name.clone()));
    }
    let select = Select::new(&schema, &sections, &args.record, args.condition.as_deref(), all)?;
    let mut printer = printer(args, &schema);
    let mut trace = Trace::new(schema, reader).map_err(|e| Failure::Failed(format!("{name}: {e}")))?;
    trace.reader_mut().set_all(all);
    if args.salvage {
        trace.reader_mut().set_salvage(true);
    }
    let mut output = Output::new(args.format.style());
    // The output of other formats and printers depends on skipped records.
    if !printer.carries()
        && args.format != Format::Hex
        && let Err(error) = select.skip_groups(&mut trace)
    {
        return report(args, name, &trace, Some(error), 0, false);
    }
    if !printer.carries() && groups::can(args, &trace) {
        let (error, records) = groups::run(args, &select, &mut trace, &mut output)?;
        return report(args, name, &trace, error, records, true);
    }
    let mut work = Work::new(args, select, printer, output, at_end, elements);
    let error = work.run(&mut trace)?;
    // Print the output that precedes an error first.
    let delivered = work.finish()?;
    let records = trace.reader().records_read();
    report(args, name, &trace, error, records, delivered || records > 0)
}

impl Args {
    /// Returns the form of spans and events to print, or `None` if records are printed.
    fn spans(&self) -> Result<Option<spans::Form<'static>>> {
        let form = match self.format {
            Format::Lines => spans::Form::Lines,
            Format::Chrome => spans::Form::Chrome,
            _ if self.filter.is_given() => {
                return usage(
                    "--level, --from, --to and --field select spans and events: add --format lines or --format chrome, or \
                     select records with --where",
                );
            }
            _ => return Ok(None),
        };
        let sections = !self.section.is_empty() && !self.raw.is_read_as_said();
        let options = [
            ("--all", self.all),
            ("--names", self.names),
            ("--section", sections),
            ("--record", !self.record.is_empty()),
            ("--where", self.condition.is_some()),
            ("--skip, --head and --tail", self.skip > 0 || self.head.is_some() || self.tail.is_some()),
            ("--salvage", self.salvage),
            ("--resolve", self.resolve),
            ("--follow", self.follow),
        ];
        match options.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => usage(format!(
                "{option}: no effect on spans and events, which are selected by --level, --from, --to and --field"
            )),
            None => Ok(Some(form)),
        }
    }
}

fn printer(args: &Args, schema: &Schema) -> Box<dyn Printer> {
    match args.format {
        Format::Jsonl => {
            let options = JsonOptions { all: args.all, resolve: args.resolve, resets: args.resets, names: args.names };
            Box::new(Json(options, if args.resolve { Labels::new(schema) } else { None }))
        }
        Format::Hex => Box::new(hex::Hex::new(schema)),
        // `spans` prints lines and timelines.
        Format::Text | Format::Lines | Format::Chrome => {
            Box::new(text::Text::new(schema, args.all, Resolver::new(schema, args.resolve)))
        }
    }
}

/// Prints the warnings, the error and the losses after `records` records.
fn report(
    args: &Args,
    name: &str,
    trace: &Trace<'_>,
    error: Option<metatf::Error>,
    records: u64,
    delivered: bool,
) -> Result<()> {
    let container = trace.reader().container();
    let error = error.map(|e| format!("{name}: {}", metatf::explain(&trace.schema().format, &e)));
    if !args.salvage {
        return match error {
            Some(error) if records > 0 => {
                let whole = if records == 1 { "record before it is" } else { "records before it are" };
                failed(format!(
                    "{error}; {} {whole} intact; to also print intact records after it, use --salvage",
                    count(records)
                ))
            }
            Some(error) => failed(error),
            None => Ok(()),
        };
    }
    let loss = container.loss_report();
    match loss {
        // If there was an error and no other loss, only the data after the error is missing, so print only the error.
        Some(loss) if error.is_none() || !loss.is_empty() => {
            for line in loss.to_string().lines() {
                print_message(&format!("{name}: salvage: {line}"));
            }
        }
        None if error.is_none() => print_message(&format!("{name}: salvage: nothing was lost")),
        _ => {}
    }
    if let Some(error) = &error {
        print_message(error);
    }
    let whole = error.is_none() && loss.is_none_or(metatf::container::LossReport::is_empty);
    if delivered || whole { Ok(()) } else { Err(Failure::Printed) }
}

/// Returns the section specified for a file without a header.
fn raw_section(args: &Args) -> Result<Option<&str>> {
    let mut named = args.section.iter().filter(|name| !name.is_empty());
    let section = named.next();
    if args.raw.is_read_as_said() && named.next().is_some() {
        return usage("with --raw and --order, --section can be given only once");
    }
    Ok(section.map(String::as_str))
}

fn open_to_follow(args: &Args, name: &str) -> Result<((Schema, Reader<'static>), Arc<AtomicBool>)> {
    if input::is_standard(&args.trace) {
        return usage("--follow needs a file; standard input is always read until it ends");
    }
    let (reader, at_end) = input::follow(&args.trace)?;
    let schema = dtd::find(&reader, name, &args.dtd, false)?;
    Ok(((schema, reader), at_end))
}
