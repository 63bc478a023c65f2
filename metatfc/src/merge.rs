//! `merge`: the records of several traces as one trace, in the order of their times.

mod clock;
mod fit;
mod input;
mod survey;

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::input::Reopenable;
use crate::options::ThreadArgs;
use crate::output;
use crate::pack::{PROFILES, PackArgs};
use crate::roles;
use crate::sort::key::Keys;
use crate::sort::runs::{MOST, Run, Runs, Writing};
use crate::target::Target;
use clock::{Clock, Times};
use input::{Input, Moving, Order, Out};
use metatf::container::{LossReport, WriteOptions};
use metatf::dynamic::merge::{Keyed, Source as _, TraceSource, merge};
use metatf::dynamic::moves::{MoveOptions, Moves};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_cli::{Progress, number};
use metatf_parser::schema::LeafId;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;
use survey::Survey;

const MORE: &str = "\
Times are the fields of role \"time\", or those that an emitter fills in by
`source = \"clock\"`. Each trace has a clock of its own. Its clock_sync records
compare that with the clock on the wall; between two of them the times lie on a
straight line. A trace without such records has its start in its user metadata.
The new trace has the clock of the trace that began first, and the others' times
are moved to it. --by FIELD takes the values of a field as they are.

Records of one trace keep their order where they are in order. A trace that is
not, is sorted first, in --memory and temporary files (see TMPDIR). Of equal
times those of the first trace come first. A record without a time, and a
comment, stays behind the record before it in its section.

Tables are joined, equal elements once, and offsets into them are moved. The
traces may have different DTDs if all records fit into one of these by name,
without loss: `metatfc compat` tells what differs. Damage is an error; --salvage
merges what is whole.

Processes are told apart by a field of role or source \"process\". Where there is
none, --source FIELD adds one to each record: the number of its trace, from 1.
The user metadata of the new trace is that of the trace that began first; the
object `merge` in it names all traces, with their numbers and user metadata.

Examples:
  metatfc merge events.*.mtf -o all.mtf
  metatfc merge client.mtf server.mtf --source process -o both.mtf
  metatfc merge --by time part1.mtf part2.mtf -o - | metatfc dump -";

/// Merge traces by time: the records of several processes as one trace
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The traces; `-` is standard input
    #[arg(required = true, value_name = "TRACE")]
    inputs: Vec<String>,
    /// The new trace; `-` is standard output
    #[arg(short, long, value_name = "OUT")]
    output: String,
    /// Order by the values of this field, its name or path, as they are
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
    /// The field that gets the number of the trace; added where records have none of this name
    #[arg(long, value_name = "FIELD")]
    source: Option<String>,
    /// Leave out what is damaged
    #[arg(long)]
    salvage: bool,
    /// Memory for records that are being sorted, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, allow_negative_numbers = true, value_parser = number(1..=1_usize << 20))]
    memory: usize,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    pack: PackArgs,
    #[command(flatten)]
    threads: ThreadArgs,
}

/// A trace that is to be merged.
struct Given {
    file: Reopenable,
    schema: Schema,
    /// Class, order of bytes, and the DTD's name.
    write: WriteOptions,
    survey: Survey,
    clock: Option<Arc<Clock>>,
}

/// What all have in common.
struct Work<'a> {
    args: &'a Args,
    given: &'a [Given],
    schema: &'a Schema,
    write: &'a WriteOptions,
    target: &'a Target,
    order: Arc<Order>,
    /// The trace whose clock, and user metadata, the new trace has.
    reference: usize,
    /// By record: the place of the field that has the trace's number.
    numbered: Option<Arc<[Option<usize>]>>,
    /// Offsets that stay as they are: indices of the trace and of the section, and the least.
    kept: RefCell<Vec<(usize, usize, u64)>>,
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
    if given.len() > 1 && fit::is_heap(schema) {
        return failed(format!(
            "{}: its DTD is for the heap of one program: addresses of several would be taken for those of one; \
             `hatf diff` compares two heap traces",
            all.get(fitting).map_or("", |one| one.0)
        ));
    }
    let schema = match &args.source {
        Some(field) => with_source(schema, field)?,
        None => schema.clone(),
    };
    let numbered = args.source.as_deref().map(|field| numbered(&schema, field)).transpose()?;
    let order = match &args.by {
        Some(by) => Order::Field(Keys::new(&schema, Some(by), "the new trace")?),
        None => {
            let times = Times::new(&schema).map_err(Failure::Failed)?;
            let clock = given.get(reference).and_then(|one| one.clock.clone());
            Order::Times(times, clock.unwrap_or_else(|| Arc::new(Clock::default())))
        }
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
        // The trace is given up, and its temporary file removed with `target`.
        out.abandon();
        return Err(target.cause(failure));
    }
    let sink = out.finish().map_err(|e| target.failure(&schema.format, &e))?;
    target.keep(sink)
}

/// The new trace must not replace one that it is made of.
fn not_an_input(args: &Args) -> Result<()> {
    if args.inputs.iter().filter(|path| *path == "-").count() > 1 {
        return usage("only one of the traces can come from standard input");
    }
    let Ok(output) = std::fs::canonicalize(&args.output) else { return Ok(()) };
    let is_output = |path: &&String| std::fs::canonicalize(path).is_ok_and(|input| input == output);
    match args.inputs.iter().filter(|path| *path != "-").find(is_output) {
        Some(path) => usage(format!("{path} is a trace to be merged, and the new trace cannot take its place")),
        None => Ok(()),
    }
}

/// Finds the clocks of all traces, and returns the one that began first.
fn clocks(args: &Args, given: &mut [Given]) -> Result<usize> {
    if args.by.is_some() {
        return Ok(0);
    }
    let is_one = given.len() == 1;
    for one in &mut *given {
        let name = one.file.name();
        let Some((clock, left_out)) = Clock::new(std::mem::take(&mut one.survey.points), one.survey.start) else {
            if is_one {
                continue;
            }
            return failed(format!(
                "{name}: nothing says when its clock began: it has no clock_sync record, and no start in its user \
                 metadata; --by FIELD takes the values of a field as times of one clock"
            ));
        };
        if left_out > 0 {
            let records = output::count(left_out, "clock_sync record");
            print_message(&format!("{name}: warning: the clock on the wall goes back: {records} not followed"));
        }
        one.clock = Some(Arc::new(clock));
    }
    let began = given.iter().map(|one| one.clock.as_ref().map_or(0, |clock| clock.real(0)));
    Ok(began.enumerate().min_by_key(|(_, began)| *began).map_or(0, |(index, _)| index))
}

/// Returns the schema with a field in each record that gets the number of its trace, where none has it.
fn with_source(schema: &Schema, field: &str) -> Result<Schema> {
    if schema.dtd.records.iter().any(|record| record.leaves.iter().any(|leaf| leaf.name == field)) {
        return Ok(schema.clone());
    }
    let properties = format!(
        "\n// The number of the trace that the record comes from.\n{field}.width = 1;\n{field}.interpretation = none;\n\
         {field}.role = \"process\";\n"
    );
    let text = metatf_parser::add_field(schema.dtd.text.as_bytes(), field, &properties);
    let parsed = text.map(|text| metatf_parser::parse("the DTD with this field", text.as_bytes()));
    match parsed.map(|parsed| (parsed.dtd, parsed.diagnostics)) {
        Some((Some(dtd), _)) => Ok(Schema::new(dtd)),
        Some((None, errors)) => {
            let first = errors.first().map_or("it has errors", |error| error.message.as_str());
            usage(format!("--source {field}: the DTD with this field is none: {first}"))
        }
        None => usage(format!(
            "--source {field}: the field cannot be added to the DTD: put parentheses around the fields of each record"
        )),
    }
}

/// Returns where each record has the field for the number of its trace.
fn numbered(schema: &Schema, field: &str) -> Result<Arc<[Option<usize>]>> {
    let mut places = Vec::new();
    for record in &schema.dtd.records {
        let ids = (0..=u8::MAX).map(LeafId).zip(&record.leaves);
        let found = ids.into_iter().find(|(_, leaf)| leaf.name == field && record.tag.is_some());
        let place = match found {
            None => None,
            Some((id, leaf)) => match roles::place(record, id).filter(|_| leaf.is_numeric() && leaf.constant.is_none())
            {
                Some(place) => Some(place),
                None => return usage(format!("--source: {}.{field} is no number that stands once", record.name)),
            },
        };
        places.push(place);
    }
    if places.iter().all(Option::is_none) {
        return usage(format!("--source {field}: no record has a number of this name"));
    }
    Ok(places.into())
}

impl Given {
    fn new(args: &Args, path: &str, progress: &mut Progress) -> Result<Self> {
        let file = Reopenable::new(path, !args.salvage)?;
        let reader = file.open(args.salvage)?;
        let name = file.name();
        let schema = dtd::find(&reader, name, &args.dtd, args.salvage)?;
        let header = reader.header();
        let write = WriteOptions {
            class: header.class,
            order: header.order,
            dtd_url: header.dtd_url.clone(),
            ..WriteOptions::default()
        };
        let keys = Keys::new(&schema, args.by.as_deref(), name)?;
        let times = match args.by {
            Some(_) => None,
            None => Some(Times::new(&schema).map_err(|error| Failure::Failed(format!("{name}: {error}")))?),
        };
        let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
        let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
        trace.reader_mut().set_salvage(args.salvage);
        let survey = Survey::new((name, args.salvage), &mut trace, (&keys, times.as_ref()), progress)?;
        drop(trace);
        Ok(Self { file, schema, write, survey, clock: None })
    }
}

impl Work<'_> {
    /// Writes all records.
    fn all(&self, out: &mut Out) -> Result<()> {
        for json in self.user() {
            out.inner().user_metadata(&json).map_err(|e| self.failure(&e))?;
        }
        let records = self.given.iter().map(|one| one.survey.records).sum();
        let mut progress = Progress::new("records").of(records);
        let mut put = |out: &mut Out, keyed: &Keyed| {
            progress.step();
            out.record(keyed.section, keyed.record, &keyed.owned).map_err(|e| self.failure(&e))
        };
        let mut inputs = Vec::new();
        if self.given.len() <= MOST {
            for index in 0..self.given.len() {
                inputs.push(Box::new(self.input(index, out)?));
            }
        } else {
            let mut runs = self.first_runs(out)?;
            while runs.len() > MOST {
                runs = self.join(runs, out)?;
            }
            for run in runs {
                inputs.push(Box::new(Input::Run(run.open(self.schema)?)));
            }
        }
        merge(&mut inputs, out, &mut put)?;
        for input in &inputs {
            self.done(input);
        }
        self.check_offsets(out)
    }

    /// Merges as many traces at a time as may be open.
    fn first_runs(&self, out: &mut Out) -> Result<Vec<Run>> {
        let indices: Vec<usize> = (0..self.given.len()).collect();
        let run = |indices: &[usize]| {
            let inputs = indices.iter().map(|index| self.input(*index, out).map(Box::new));
            self.run_of(inputs.collect::<Result<Vec<_>>>()?, out)
        };
        indices.chunks(MOST).map(run).collect()
    }

    fn join(&self, runs: Vec<Run>, out: &mut Out) -> Result<Vec<Run>> {
        let (mut joined, mut inputs) = (Vec::new(), Vec::new());
        for run in runs {
            inputs.push(Box::new(Input::Run(run.open(self.schema)?)));
            if inputs.len() == MOST {
                joined.push(self.run_of(std::mem::take(&mut inputs), out)?);
            }
        }
        if !inputs.is_empty() {
            joined.push(self.run_of(inputs, out)?);
        }
        Ok(joined)
    }

    /// Writes a run; what goes into tables goes to the new trace.
    fn run_of(&self, mut inputs: Vec<Box<Input<'_>>>, out: &mut Out) -> Result<Run> {
        let mut writing = Writing::new(self.schema, self.write)?;
        merge(&mut inputs, out, &mut |_, keyed| writing.put(keyed))?;
        inputs.iter().for_each(|input| self.done(input));
        writing.finish()
    }

    /// A trace as a source, sorted if it is not in order.
    fn input(&self, index: usize, out: &mut Out) -> Result<Input<'_>> {
        let Some(given) = self.given.get(index) else { return failed("a trace is missing") };
        let (name, salvage) = (given.file.name(), self.args.salvage);
        let reader = given.file.open(salvage)?;
        let problem =
            |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&given.schema.format, e)));
        let mut trace = Trace::new(given.schema.clone(), reader).map_err(|e| problem(&e))?;
        trace.reader_mut().set_salvage(salvage);
        let moves = Moves::new(&given.schema, self.schema, &MoveOptions::default());
        let moves = moves.map_err(|unmoved| Failure::Failed(format!("{name}: {unmoved}")))?;
        let times = given.clock.as_ref().filter(|_| index != self.reference).map(Arc::clone);
        let first = match &*self.order {
            Order::Field(_) => given.survey.first,
            Order::Times(_, to) => {
                let moved = |from: &Arc<Clock>| to.time(from.real(given.survey.first_time));
                input::key_of(times.as_ref().map_or(given.survey.first_time, moved))
            }
        };
        let number = self.numbered.as_ref().map(|places| (Arc::clone(places), index as u64 + 1));
        let keys = input::keys(Arc::clone(&self.order), times, number);
        let source = TraceSource::new(trace, moves, first, keys);
        let (target, target_schema) = (self.target, self.schema);
        let mut moving = Moving { index, source, name, schema: &given.schema, target, target_schema, salvage };
        if given.survey.is_sorted {
            return Ok(Input::Trace(Box::new(moving)));
        }
        let mut runs = Runs::new(self.schema, self.write, self.args.memory << 20);
        let mut keyed = Keyed::default();
        while moving.next(out, &mut keyed)? {
            runs.add(std::mem::take(&mut keyed))?;
        }
        self.done(&Input::Trace(Box::new(moving)));
        runs.into_run()?.open(self.schema).map(Input::Run)
    }

    /// Says what is to be said of a trace that was read, and notes the offsets that could not be moved.
    fn done(&self, input: &Input<'_>) {
        let Input::Trace(moving) = input else { return };
        let (name, container) = (moving.name, moving.source.trace().reader().container());
        for warning in container.warnings() {
            print_message(&format!("{name}: warning: {warning}"));
        }
        if let Some(loss) = container.loss_report().filter(|loss| !LossReport::is_empty(loss)) {
            for line in loss.to_string().lines() {
                print_message(&format!("{name}: salvage: {line}"));
            }
        }
        let kept = moving.source.moves().kept_offsets();
        self.kept.borrow_mut().extend(kept.map(|(section, offset)| (moving.index, section, offset)));
    }

    /// An offset at which a trace has no element stays as it is. Another trace's element must not stand there now.
    fn check_offsets(&self, out: &Out) -> Result<()> {
        let kept = self.kept.borrow();
        let wrong = kept
            .iter()
            .filter(|_| self.given.len() > 1)
            .find(|(_, section, offset)| out.next_offset(*section) > *offset);
        let Some((index, section, offset)) = wrong else { return Ok(()) };
        let section = self.schema.section(*section).and_then(|section| section.name.as_deref()).unwrap_or_default();
        failed(format!(
            "{}: it has offset {offset} of section {section}, and no element there; the table of all traces has one",
            self.given.get(*index).map_or("", |given| given.file.name())
        ))
    }

    /// Returns the user metadata of the new trace.
    fn user(&self) -> Vec<String> {
        let mut user = self.given.get(self.reference).map(|given| given.survey.user.clone()).unwrap_or_default();
        if self.given.len() > 1 {
            let traces = (1_usize..).zip(self.given).map(|(number, given)| {
                let (name, user) = (given.file.name(), given.survey.metadata());
                json!({"number": number, "name": name, "records": given.survey.records, "user": user})
            });
            user.push(json!({"merge": {"traces": traces.collect::<Vec<Value>>()}}).to_string());
        }
        user
    }

    fn failure(&self, error: &metatf::Error) -> Failure {
        self.target.failure(&self.schema.format, error)
    }
}
