//! `sort`: sorts the records of one or more traces by time or by another field.

mod clock;
mod fit;
mod input;
mod key;
mod runs;
mod source;
mod survey;
mod work;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::input::Reopenable;
use crate::options::{MemoryArgs, ThreadArgs};
use crate::output;
use crate::pack::{PROFILES, PackArgs};
use crate::raw::RawArgs;
use crate::target::Target;
use clock::{Clock, Times};
use input::Order;
use key::Keys;
use metatf::container::WriteOptions;
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_cli::Progress;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::Survey;
use work::Work;

const MORE: &str = "\
Records of all sections are sorted by the field with the role \"time\", or by the
field --by. Records with equal values keep their order; those of the trace listed
first come first. Comments and records without the field stay after the record
that precedes them in their section. Values are compared as unsigned numbers, or
as signed numbers if the format of the field is \"signed\". Records that exceed
--memory are sorted in parts, which are stored in temporary files (see TMPDIR).
The new trace contains the same records and tables, but its groups and metadata
records may differ.

Several traces become one. Each trace has its own clock. Its clock_sync records
relate this clock to the wall clock, and times between two clock_sync records are
interpolated. If a trace contains no such record, the start time in its user
metadata is used. The new trace uses the clock of the trace that started first,
and the times of the other traces are adjusted, unless --by is used.

Tables are merged: equal elements are stored once, and offsets to them are
adjusted. The DTDs of the traces may differ if all records can be converted to one
of these DTDs by name without loss; `metatfc diff --dtds` shows the differences. A
corrupt trace is an error; with --salvage, its intact records are sorted.

A field with the role or source \"process\" identifies the process of a record. If
the records contain no such field, use --source FIELD. This adds the field to each
record and stores the number of the trace, starting at 1. The new trace contains
the user metadata of the trace that started first, and an object `merge` that
lists all traces with their numbers and user metadata.

Examples:
  metatfc sort mps.log -o mps.mtf
  metatfc sort --by size T.mtf -o sorted.mtf
  metatfc sort events.*.mtf -o all.mtf
  metatfc sort client.mtf server.mtf --source process -o both.mtf
  metatfc sort --by time part1.mtf part2.mtf -o - | metatfc dump -";

/// Sort the records of a trace by time, or those of several traces into one
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The traces; `-` reads standard input
    #[arg(required = true, value_name = "TRACE")]
    inputs: Vec<PathBuf>,
    /// The new trace; `-` writes to standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Field to sort by: its name or path [default: the fields of role "time"]
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// Field in which to store the number of each record's input trace; added if no record has a field with this name
    #[arg(long, value_name = "FIELD")]
    source: Option<String>,
    /// Omit corrupt parts of the traces
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    raw: RawArgs,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    pack: PackArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// A trace to sort.
struct Given {
    file: Reopenable,
    schema: Schema,
    /// The class, byte order and DTD name of the trace.
    write: WriteOptions,
    survey: Survey,
    clock: Option<Arc<Clock>>,
}

impl Args {
    /// Returns whether records are ordered by unchanged values, as opposed to times on a common clock.
    fn is_by_value(&self) -> bool {
        self.by.is_some() || self.inputs.len() == 1
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    not_an_input(args)?;
    let mut progress = Progress::new("records");
    let given = args.inputs.iter().map(|path| Given::new(args, path, &mut progress));
    let mut given = given.collect::<Result<Vec<_>>>()?;
    drop(progress);
    let reference = clocks(args, &mut given)?;
    let all: Vec<_> = given.iter().map(|one| (one.file.name(), &one.schema)).collect();
    let (fitting, schema) = fit::target(&all)?;
    let orders = given.iter().map(|one| one.write.order);
    if fit::has_nested(schema) && orders.clone().zip(orders.skip(1)).any(|(one, next)| one != next) {
        return failed("the traces have different byte orders, so the records in their byte arrays would be misread");
    }
    let schema = match &args.source {
        Some(field) => source::with_field(schema, field)?,
        None => schema.clone(),
    };
    let numbered = args.source.as_deref().map(|field| source::places(&schema, field)).transpose()?;
    let order = if args.is_by_value() {
        Order::Field(Keys::new(&schema, args.by.as_deref(), "the new trace")?)
    } else {
        let times = Times::new(&schema).map_err(Failure::Failed)?;
        let clock = given.get(reference).and_then(|one| one.clock.clone());
        Order::Times(times, clock.unwrap_or_else(|| Arc::new(Clock::default())))
    };
    let mut write = given.get(fitting).map_or_else(WriteOptions::default, |one| one.write.clone());
    write.threads = args.threads.number();
    args.pack.apply(&mut write);
    let (target, sink) = Target::create(&args.output)?;
    let write = write.flush_every(target.flush());
    let mut out = Writer::new(sink, &schema, &write).map_err(|e| target.failure(&schema.format, &e))?;
    let order = Arc::new(order);
    let work = Work {
        args,
        given: &given,
        schema: &schema,
        write: &write,
        target: &target,
        order,
        reference,
        numbered,
        kept: RefCell::default(),
    };
    if let Err(failure) = work.all(&mut out) {
        // Abandon the trace; dropping `target` removes its temporary file.
        out.abandon();
        return Err(target.cause(failure));
    }
    let sink = out.finish().map_err(|e| target.failure(&schema.format, &e))?;
    target.keep(sink)
}

/// Checks that the new trace does not replace one of the inputs.
fn not_an_input(args: &Args) -> Result<()> {
    if args.inputs.iter().filter(|path| crate::input::is_standard(path)).count() > 1 {
        return usage("only one of the traces can be read from standard input");
    }
    let Ok(output) = std::fs::canonicalize(&args.output) else { return Ok(()) };
    let is_output = |path: &&PathBuf| std::fs::canonicalize(path).is_ok_and(|input| input == output);
    match args.inputs.iter().filter(|path| !crate::input::is_standard(path)).find(is_output) {
        Some(path) => usage(format!("{} is also an input: choose another name for the output", path.display())),
        None => Ok(()),
    }
}

/// Determines the clocks of all traces and returns the index of the trace that started first.
fn clocks(args: &Args, given: &mut [Given]) -> Result<usize> {
    if args.is_by_value() {
        return Ok(0);
    }
    for one in &mut *given {
        let name = one.file.name();
        let Some((clock, left_out)) = Clock::new(std::mem::take(&mut one.survey.points), one.survey.start) else {
            return failed(format!(
                "{name}: the start time of the trace is unknown, because it has neither a clock_sync record nor a \
                 start time in its user metadata; to order records by the values of a field, use --by FIELD"
            ));
        };
        if left_out > 0 {
            let records = output::count(left_out, "clock_sync record");
            print_message(&format!("{name}: warning: the wall clock was set back: {records} ignored"));
        }
        one.clock = Some(Arc::new(clock));
    }
    let began = given.iter().map(|one| one.clock.as_ref().map_or(0, |clock| clock.real(0)));
    Ok(began.enumerate().min_by_key(|(_, began)| *began).map_or(0, |(index, _)| index))
}

impl Given {
    fn new(args: &Args, path: &Path, progress: &mut Progress) -> Result<Self> {
        let file = args.raw.reopenable(path, &args.dtd, args.salvage)?;
        let (schema, reader) = args.raw.reopen(&file, &args.dtd, args.salvage)?;
        let name = file.name();
        // Check this before looking up fields.
        if args.inputs.len() > 1 && fit::is_heap(&schema) {
            return failed(format!(
                "{name}: traces that describe the heap of one program cannot be merged, because addresses of different \
                 programs would be confused; to compare two heap traces, use `hatf diff`"
            ));
        }
        let header = reader.header();
        let write = WriteOptions {
            class: header.class,
            order: header.order,
            dtd_url: header.dtd_url.clone(),
            ..WriteOptions::default()
        };
        let keys = Keys::new(&schema, args.by.as_deref(), name)?;
        let times = if args.is_by_value() {
            None
        } else {
            Some(Times::new(&schema).map_err(|error| Failure::Failed(format!("{name}: {error}")))?)
        };
        let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
        let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
        trace.reader_mut().set_salvage(args.salvage);
        let survey = Survey::new((name, args.salvage), &mut trace, (&keys, times.as_ref()), progress)?;
        drop(trace);
        Ok(Self { file, schema, write, survey, clock: None })
    }
}
