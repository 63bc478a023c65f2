//! `sort`: sorts the records of a trace by a field.

pub(crate) mod key;
pub(crate) mod runs;

use crate::dtd::DtdArgs;
use crate::failure::{Failure, Result, failed};
use crate::input;
use crate::options::{MemoryArgs, ThreadArgs};
use crate::pack::{PROFILES, PackArgs};
use crate::raw::RawArgs;
use crate::target::Target;
use key::Keys;
use metatf::container::{Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use metatf::format::{Interpretation, LeafKind};
use metatf::reader::{At, Event};
use metatf_cli::Progress;
use metatf_tools::merge::Keyed;
use runs::Runs;
use std::path::PathBuf;

const MORE: &str = "\
Records of all sections are sorted by the field --by. Records with equal values
keep their order. Comments and records without the field stay after the record
that precedes them. Values are compared as unsigned numbers, or as signed numbers
if the format of the field is \"signed\".

The new trace contains the same records and tables, but its groups and metadata
records may differ. Records that exceed --memory are sorted in parts, which are
stored in temporary files (see TMPDIR).

Examples:
  metatfc sort --by time T.mtf sorted.mtf
  metatfc sort mps.log mps.mtf
  metatfc sort --memory 64 T.mtf - | metatfc dump -";

/// Sort the records of a trace by a field
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The trace; `-` reads standard input
    input: PathBuf,
    /// The new trace; `-` writes to standard output
    output: PathBuf,
    /// Field to sort by: its name or path [default: the fields of role "time"]
    #[arg(long, value_name = "FIELD")]
    by: Option<String>,
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

pub(crate) fn run(args: &Args) -> Result<()> {
    let name = input::name(&args.input);
    let name = &*name;
    let (schema, reader) = args.raw.open(&args.input, &args.dtd)?;
    let keys = Keys::new(&schema, args.by.as_deref(), name)?;
    let header = reader.header();
    let mut write = WriteOptions {
        class: header.class,
        order: header.order,
        dtd_url: header.dtd_url.clone(),
        threads: args.threads.number(),
        ..WriteOptions::default()
    };
    let records = header.nrecords;
    args.pack.apply(&mut write);
    let problem = |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&schema.format, e)));
    let mut trace = Trace::new(schema.clone(), reader).map_err(|e| problem(&e))?;
    trace.reader_mut().set_all(true);
    let (target, sink) = Target::create(&args.output)?;
    let write = write.flush_every(target.flush());
    let mut writer = Writer::new(sink, &schema, &write).map_err(|e| target.failure(&schema.format, &e))?;
    let mut sorting = Sorting {
        name,
        keys,
        runs: Runs::new(&schema, &write, args.memory.bytes()),
        streams: Streams::new(&schema),
        groups: 0,
        last: 0,
    };
    let mut progress = Progress::new("records").of(records);
    let done = sorting.read(&mut trace, &mut writer, &mut progress).and_then(|()| {
        for json in trace.reader().container().user_metadata() {
            if let Ok(json) = std::str::from_utf8(json) {
                writer.inner().user_metadata(json).map_err(|e| target.failure(&schema.format, &e))?;
            }
        }
        sorting.runs.write(&mut writer, &mut |writer, keyed| {
            let put = writer.record(keyed.section, keyed.record, &keyed.owned);
            put.map_err(|e| target.failure(&schema.format, &e))
        })
    });
    drop(progress);
    if let Err(failure) = done {
        // Abandon the trace; dropping `target` removes its temporary file.
        writer.abandon();
        return Err(target.cause(failure));
    }
    let sink = writer.finish().map_err(|e| target.failure(&schema.format, &e))?;
    target.keep(sink)
}

/// The stream sections whose elements are values of records. The writer creates these elements again.
struct Streams {
    /// For each section, whether records stride through it.
    strided: Vec<bool>,
    /// For each section, whether offsets in records refer to it.
    pointed_at: Vec<bool>,
}

impl Streams {
    fn new(schema: &Schema) -> Self {
        let format = &schema.format;
        let sections = format.sections.len();
        let mut streams = Self { strided: vec![false; sections], pointed_at: vec![false; sections] };
        for leaf in format.records.iter().flat_map(|record| record.leaves.iter()) {
            if let LeafKind::Number { interpretation, .. } = leaf.kind {
                streams.note(schema, interpretation);
            }
        }
        streams
    }

    fn note(&mut self, schema: &Schema, interpretation: Interpretation) {
        let model = |model: u16| schema.format.models.get(usize::from(model)).map(|model| model.section);
        let (list, number) = match interpretation {
            Interpretation::SectionStride(number, _) => (&mut self.strided, Some(number)),
            Interpretation::Predicted(number) => (&mut self.strided, model(number)),
            Interpretation::SectionOffset(number) => (&mut self.pointed_at, Some(number)),
            _ => return,
        };
        let index = number.and_then(|number| schema.format.section_index(number));
        if let Some(known) = index.and_then(|index| list.get_mut(index)) {
            *known = true;
        }
    }
}

/// The work in progress.
struct Sorting<'a> {
    name: &'a str,
    keys: Keys,
    runs: Runs<'a>,
    streams: Streams,
    groups: u32,
    /// The key of the previous record.
    last: u64,
}

impl Sorting<'_> {
    /// Reads all records, and passes table elements to the writer.
    fn read<S: Sink>(&mut self, trace: &mut Trace<'_>, writer: &mut Writer<S>, progress: &mut Progress) -> Result<()> {
        let schema = trace.schema().clone();
        loop {
            let entry = trace.next_entry();
            let problem =
                |e: &metatf::Error| Failure::Failed(format!("{}: {}", self.name, metatf::explain(&schema.format, e)));
            let Some(entry) = entry.map_err(|e| problem(&e))? else { return Ok(()) };
            match entry.event {
                Event::Record(at) | Event::Comment(at) => {
                    let key = self.keys.of(at.record, entry.record).unwrap_or(self.last);
                    self.last = key;
                    let owned = entry.record.clone();
                    self.runs.add(Keyed { key, section: at.section, record: at.record, owned })?;
                }
                Event::Element(at, shared) => self.element(writer, at, shared, entry.record)?,
                Event::Metadata(_, metadata) if metadata.property & 7 == 7 => {
                    let number = u8::try_from(metadata.values[0]).unwrap_or(0);
                    self.streams.note(&schema, Interpretation::SectionStride(number, 1));
                }
                Event::Group(_) => self.groups += 1,
                Event::Metadata(..) | Event::Section(..) | Event::Reset(_) => {}
            }
            progress.step();
        }
    }

    fn element<S: Sink>(&mut self, writer: &mut Writer<S>, at: At, shared: bool, owned: &OwnedRecord) -> Result<()> {
        let is = |list: &[bool]| list.get(at.section).copied().unwrap_or(false);
        if is(&self.streams.strided) {
            return Ok(());
        }
        if is(&self.streams.pointed_at) && !shared && self.groups > 0 {
            return failed(format!(
                "{}: each group has its own table, and tables cannot be merged: sort a trace with only one group",
                self.name
            ));
        }
        let shared = shared || is(&self.streams.pointed_at);
        writer.element(at.section, shared, owned).map(drop).map_err(|e| Failure::Failed(format!("{}: {e}", self.name)))
    }
}
