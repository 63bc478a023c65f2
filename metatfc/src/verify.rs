//! `verify`: reads an entire trace, and reports losses if it is corrupt.

mod columns;
mod references;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::input::{self, Reopenable};
use crate::options::ThreadArgs;
use crate::output;
use crate::raw::RawArgs;
use crate::target::Target;
use metatf::Change;
use metatf::container::{FlushEvery, GroupTimes, Sink, TimeRange, Warning, WriteOptions};
use metatf::dynamic::{Line, Schema, Trace, Writer};
use metatf::format::Interpretation::SectionOffset;
use metatf::parallel::Out;
use metatf::reader::Event;
use metatf_cli::Progress;
use metatf_parser::schema::Leaf;
use references::{OfGroup, References, Tables};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const MORE: &str = "\
verify reads the entire trace. It checks the checksums, index, footer and counts,
and every field of every record and stream element. Every offset in a field must
refer to the start of an element. For a corrupt trace, verify prints the first
error and the lost ranges of bytes, with the number of lost records if known.

A trace that has not been closed by its writer is unfinished: it is still being
written, or the writer was killed. Everything in it is intact, but records may be
missing at the end.

Exit status:
  0  all traces are intact
  1  a trace is corrupt
  2  usage error
  3  a trace is unfinished, and no trace is corrupt
  4  --salvage could not write the new trace

Examples:
  metatfc verify *.mtf
  metatfc verify --salvage whole.mtf torn.mtf      write all intact records to a new trace
  metatfc verify capture.pcap
  curl -s https://example.org/T.mtf | metatfc verify -";

/// Check that traces are intact, and salvage corrupt ones
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The traces; `-` reads standard input
    #[arg(required = true)]
    traces: Vec<PathBuf>,
    /// Write the intact records of a single TRACE to a new trace; the exit status still reports any corruption
    #[arg(long, value_name = "OUT")]
    salvage: Option<PathBuf>,
    /// Print nothing for intact traces
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    raw: RawArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.salvage.is_some() && args.traces.len() > 1 {
        return usage("--salvage writes a single trace: specify only one TRACE");
    }
    if args.traces.iter().filter(|path| input::is_standard(path)).count() > 1 {
        return usage("standard input can be read only once");
    }
    let (mut damaged, mut unfinished) = (false, false);
    for path in &args.traces {
        match verify(args, path) {
            Ok(()) => {}
            Err(Failure::Failed(message)) => {
                print_message(&message);
                damaged = true;
            }
            Err(Failure::Printed) => damaged = true,
            Err(Failure::Unfinished) => unfinished = true,
            Err(other) => return Err(other),
        }
    }
    match (damaged, unfinished) {
        (true, _) => Err(Failure::Printed),
        (false, true) => Err(Failure::Unfinished),
        (false, false) => Ok(()),
    }
}

fn verify(args: &Args, path: &Path) -> Result<()> {
    let name = input::name(path);
    let name = &*name;
    let file = args.raw.reopenable(path, &args.dtd, args.salvage.is_some())?;
    let mut schema = None;
    let whole = read_all(args, name, &file, &mut schema);
    match &whole {
        Ok(Read { counts, unfinished: Some(spool) }) => print_message(&format!("{name}: unfinished: {counts}{spool}")),
        Ok(Read { counts, unfinished: None })
            if !args.quiet && !args.salvage.as_deref().is_some_and(input::is_standard) =>
        {
            output::print(&format!("{name}: whole: {counts}\n"))?;
        }
        _ => {}
    }
    // Read the trace again if there are losses to report or records to write.
    if whole.is_err() || args.salvage.is_some() {
        if let Err(Failure::Failed(message)) = &whole {
            print_message(message);
        }
        if let Err(failure) = salvage(args, name, &file, schema, whole.is_err()) {
            let Failure::Failed(message) = failure else { return Err(failure) };
            // The first pass may have printed the same message.
            if !matches!(&whole, Err(Failure::Failed(first)) if *first == message) {
                print_message(&message);
            }
            let Some(to) = &args.salvage else { return Err(Failure::Printed) };
            return Err(Failure::NotWritten(to.display().to_string()));
        }
    }
    match whole {
        Ok(Read { unfinished: Some(_), .. }) => Err(Failure::Unfinished),
        Ok(_) => Ok(()),
        Err(Failure::Failed(_)) => Err(Failure::Printed),
        Err(other) => Err(other),
    }
}

/// The result of reading an intact but possibly unfinished trace.
struct Read {
    /// The number of records, elements and groups.
    counts: String,
    /// A note about where to find the rest of the trace, if the trace was not closed.
    unfinished: Option<String>,
}

/// Reads the entire trace, including stream elements. Stores the schema in `found` as soon as it is known.
fn read_all(args: &Args, name: &str, file: &Reopenable, found: &mut Option<Schema>) -> Result<Read> {
    let (schema, reader) = args.raw.reopen(file, &args.dtd, false)?;
    let schema = found.insert(schema).clone();
    let fail = |e: &metatf::Error| failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let mut trace = match Trace::new(schema.clone(), reader) {
        Ok(trace) => trace,
        Err(error) => return fail(&error),
    };
    trace.reader_mut().set_all(true);
    let mut progress = Progress::new("records");
    let (mut elements, mut groups) = (0_usize, 1_usize);
    let mut tables = Tables::default();
    let read = trace.par_groups().threads(args.threads.number()).streamed(count, |counts| {
        elements += counts.elements;
        groups += counts.groups;
        progress.add(counts.events);
        tables.take(counts.references)
    });
    drop(progress);
    if let Err(error) = read {
        return fail(&error);
    }
    match trace.reader_mut().group_times() {
        Ok(None) => {}
        Ok(Some(times)) => check_times(args, name, file, &times)?,
        Err(error) => return fail(&error),
    }
    let container = trace.reader().container();
    // Warnings have already been printed when they occurred.
    if container.warnings().iter().any(|warning| warning.is_loss()) {
        return Err(Failure::Printed);
    }
    let (declared, found) = (container.header().nrecords, trace.reader().records_read());
    if declared != 0 && declared != found {
        return failed(format!("{name}: {}", Warning::Records { declared, found }));
    }
    check_labels(args, name, file, &fail)?;
    let is_open = container.warnings().iter().any(|warning| matches!(warning, Warning::NotClosed));
    let unfinished = is_open.then(|| {
        let spool = spool(container.user_metadata());
        spool.map_or_else(String::new, |folder| {
            format!("; events that the recorder has not yet written to the trace are in {folder:?}")
        })
    });
    let records = trace.reader().records_read();
    let counts = format!(
        "{}, {}, {}",
        output::count(records, "record"),
        output::count(elements, "stream element"),
        output::count(groups, "group")
    );
    Ok(Read { counts, unfinished })
}

/// Checks the labels of chunks that are stored in columns. Readers that need only some fields trust them.
fn check_labels(
    args: &Args,
    name: &str,
    file: &Reopenable,
    fail: &dyn Fn(&metatf::Error) -> Result<Read>,
) -> Result<()> {
    let open = || args.raw.reopen(file, &args.dtd, false);
    if !columns::has_columns(&mut open()?.1) {
        return Ok(());
    }
    let open = || {
        let (schema, reader) = open()?;
        Trace::new(schema, reader).map_err(Unreadable::Trace)
    };
    match columns::first_wrong(open) {
        Ok(None) => Ok(()),
        Ok(Some(leaf)) => failed(format!(
            "{name}: the columns labeled `{leaf}` contain other values than the records, so readers of single fields get \
             wrong values; `metatfc convert` writes a trace with correct columns"
        )),
        Err(Unreadable::Trace(error)) => fail(&error).map(drop),
        Err(Unreadable::File(failure)) => Err(failure),
    }
}

/// The reason why a trace cannot be read again.
enum Unreadable {
    File(Failure),
    Trace(metatf::Error),
}

impl From<Failure> for Unreadable {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

impl From<metatf::Error> for Unreadable {
    fn from(error: metatf::Error) -> Self {
        Self::Trace(error)
    }
}

/// Reads the trace again to check that the times of each group include the times of its records.
fn check_times(args: &Args, name: &str, file: &Reopenable, times: &GroupTimes) -> Result<()> {
    let (schema, reader) = args.raw.reopen(file, &args.dtd, false)?;
    let fail = |e: metatf::Error| Failure::Failed(format!("{name}: {e}"));
    let mut trace = Trace::new(schema, reader).map_err(fail)?;
    let mut found = Vec::new();
    let read = trace.par_groups().threads(args.threads.number()).ordered(
        |group| group.reader_mut().find_times(&times.leaves),
        |range| {
            found.push(range);
            Ok(())
        },
    );
    read.map_err(fail)?;
    let chunks = trace.reader_mut().chunks().map_err(fail)?;
    let starts = chunks.iter().filter(|chunk| chunk.is_group_start());
    for ((stated, found), chunk) in times.groups.iter().zip(found).zip(starts) {
        if !stated.contains(found) {
            let TimeRange { lowest, highest } = found;
            let stated = match stated.lowest <= stated.highest {
                true => format!("the times {} to {}", stated.lowest, stated.highest),
                false => "no times".to_owned(),
            };
            return failed(format!(
                "{name}: offset {}: the records of the group that begins here have times from {lowest} to {highest}, but the \
                 chunk with the times of groups states {stated}",
                chunk.offset
            ));
        }
    }
    Ok(())
}

/// Returns the recorder's spool directory named by the user metadata, if the directory exists.
fn spool(user_metadata: &[Vec<u8>]) -> Option<PathBuf> {
    let named = |json: &Vec<u8>| {
        serde_json::from_slice::<serde_json::Value>(json).ok()?.get("spool")?.as_str().map(PathBuf::from)
    };
    user_metadata.iter().filter_map(named).find(|folder| folder.is_dir())
}

/// The counts and references of part of a group.
#[derive(Default)]
struct Counts {
    events: u64,
    elements: usize,
    groups: usize,
    references: OfGroup,
}

/// Number of events after which a reader reports its counts.
const REPORT_EVERY: u64 = 1 << 16;

/// Reads a group, counts its events, and collects references.
fn count(group: &mut Trace<'_>, out: &mut Out<'_, Counts>) -> metatf::Result<()> {
    match count_events(group, out) {
        Err(Some(error)) => Err(error),
        Ok(()) | Err(None) => Ok(()),
    }
}

/// Counts like [`count`]; returns `Err(None)` if the thread that receives the counts has stopped.
fn count_events(group: &mut Trace<'_>, out: &mut Out<'_, Counts>) -> std::result::Result<(), Option<metatf::Error>> {
    let mut counts = Counts::default();
    let mut step = |counts: &mut Counts| {
        counts.events += 1;
        if counts.events < REPORT_EVERY || out.send(std::mem::take(counts)) { Ok(()) } else { Err(None) }
    };
    let mut references = References::new(group.schema());
    loop {
        // Most events are records; other events occur between runs of records.
        match &mut references {
            None => group.try_for_run(|_| step(&mut counts))?,
            Some(references) => {
                while references.record(group)? {
                    step(&mut counts)?;
                }
            }
        }
        let Some(entry) = group.next_entry()? else { break };
        let event = entry.event;
        match event {
            Event::Element(..) => counts.elements += 1,
            Event::Group(_) => counts.groups += 1,
            _ => {}
        }
        if let Some(references) = &mut references {
            references.event(group, event, &mut counts.references);
        }
        step(&mut counts)?;
    }
    if let Some(references) = &mut references {
        references.end_group(&mut counts.references);
    }
    let _ = out.send(counts);
    Ok(())
}

/// Reads the intact records, writes them if requested, and reports losses.
fn salvage(args: &Args, name: &str, file: &Reopenable, schema: Option<Schema>, report: bool) -> Result<()> {
    let (schema, reader) = match schema.filter(|_| !args.raw.is_given() && file.is_trace()) {
        Some(schema) => (schema, file.open(true)?),
        None => args.raw.reopen(file, &args.dtd, true)?,
    };
    let options = WriteOptions {
        class: reader.header().class,
        order: reader.header().order,
        dtd_url: reader.header().dtd_url.clone(),
        threads: args.threads.number(),
        flush: FlushEvery::NEVER,
        ..WriteOptions::default()
    };
    let fail = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| fail(&e))?;
    trace.reader_mut().set_all(true);
    trace.reader_mut().set_salvage(true);
    let mut copy = match &args.salvage {
        Some(path) => Some(Copy::new(path, &schema, &options)?),
        None => None,
    };
    let mut progress = Progress::new("records");
    let error = loop {
        match trace.next_entry() {
            Ok(Some(entry)) => {
                let event = entry.event;
                let written = copy.as_mut().map_or(Ok(()), |copy| copy.write(&trace, event, &schema));
                if let Err(failure) = written {
                    // Abandon the copy, which removes its temporary file.
                    if let Some(copy) = copy {
                        std::mem::forget(copy.writer);
                    }
                    return Err(failure);
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
        progress.step();
    };
    drop(progress);
    let written = copy.map(|copy| copy.finish(&trace, &schema)).transpose()?;
    if report {
        report_loss(name, &trace, error.is_some());
    }
    let records = output::count(usize::try_from(trace.reader().records_read()).unwrap_or(usize::MAX), "record");
    match written {
        Some(to) => print_message(&format!("{name}: {records} salvaged into {to}")),
        None => print_message(&format!("{name}: {records} can be salvaged")),
    }
    Ok(())
}

fn report_loss(name: &str, trace: &Trace<'_>, ended_early: bool) {
    let (declared, found) = (trace.reader().container().header().nrecords, trace.reader().records_read());
    match trace.reader().container().loss_report() {
        Some(report) if !report.is_empty() => {
            for line in report.to_string().lines() {
                print_message(&format!("{name}: lost: {line}"));
            }
        }
        _ if ended_early => print_message(&format!("{name}: lost: everything after the error")),
        _ if declared > found => {
            print_message(&format!("{name}: lost: {} records, according to the header", declared - found))
        }
        _ => print_message(&format!("{name}: no records were lost")),
    }
}

/// The new trace.
struct Copy {
    target: Target,
    writer: Writer<Box<dyn Sink + Send>>,
    user: usize,
    /// The numbers of the stream sections that offsets in records refer to.
    pointed_at: BTreeSet<u8>,
    /// The numbers of the stream sections whose elements were moved to different offsets.
    moved: BTreeSet<u8>,
}

impl Copy {
    fn new(path: &Path, schema: &Schema, options: &WriteOptions) -> Result<Self> {
        let (target, sink) = Target::create(path)?;
        let writer = Writer::new(sink, schema, options).map_err(|e| target.failure(&schema.format, &e))?;
        Ok(Self { target, writer, user: 0, pointed_at: pointed_at(schema), moved: BTreeSet::new() })
    }

    fn write(&mut self, trace: &Trace<'_>, event: Event, schema: &Schema) -> Result<()> {
        self.copy_user(trace)
            .and_then(|()| self.copy(trace, event, schema))
            .map_err(|error| self.target.failure(&schema.format, &error))
    }

    fn copy(&mut self, trace: &Trace<'_>, event: Event, schema: &Schema) -> metatf::Result<()> {
        let owned = trace.record();
        match event {
            Event::Record(at) | Event::Comment(at) => self.writer.record(at.section, at.record, owned),
            Event::Element(at, shared) => {
                let offset = self.writer.element(at.section, shared, owned)?;
                if trace.reader().container().header().version == 1 && offset != at.offset {
                    self.moved.extend(schema.section(at.section).map(|s| s.number));
                }
                Ok(())
            }
            Event::Metadata(at, metadata) => {
                if let Ok(Change::Interpretation(SectionOffset(number))) = metadata.change() {
                    self.pointed_at.insert(number);
                }
                self.writer.write(&Line::Metadata(at.section, metadata), owned)
            }
            Event::Group(_) => self.writer.write(&Line::Group, owned),
            Event::Reset(section) => self.writer.write(&Line::Reset(section), owned),
            Event::Section(..) => Ok(()),
        }
    }

    /// Copies user metadata read since the last call.
    fn copy_user(&mut self, trace: &Trace<'_>) -> metatf::Result<()> {
        let all = trace.reader().container().user_metadata();
        for json in all.iter().skip(self.user) {
            if let Ok(json) = std::str::from_utf8(json) {
                self.writer.inner().user_metadata(json)?;
            }
        }
        self.user = all.len();
        Ok(())
    }

    /// Finishes the trace and returns its name.
    fn finish(mut self, trace: &Trace<'_>, schema: &Schema) -> Result<String> {
        self.copy_user(trace).map_err(|error| self.target.failure(&schema.format, &error))?;
        let sink = self.writer.finish().map_err(|error| self.target.failure(&schema.format, &error))?;
        if let Some(number) = self.moved.intersection(&self.pointed_at).next() {
            let section = schema.dtd.sections.iter().find(|s| s.number == *number).and_then(|s| s.name.as_deref());
            return failed(format!(
                "{}: records contain offsets into section {}, whose elements would be moved; \
                 to see the intact records, run `metatfc dump --salvage --resolve`",
                self.target.name(),
                section.unwrap_or_default()
            ));
        }
        let name = self.target.name().to_owned();
        self.target.keep(sink)?;
        Ok(name)
    }
}

/// Returns the numbers of the stream sections that offsets in leaves may refer to.
fn pointed_at(schema: &Schema) -> BTreeSet<u8> {
    use metatf_parser::schema::Interpretation;
    let leaves = schema.dtd.records.iter().flat_map(|r| &r.leaves);
    let number = |leaf: &Leaf| match leaf.interpretation {
        Interpretation::SectionOffset(number) => Some(number),
        _ => None,
    };
    leaves.filter_map(number).collect()
}
