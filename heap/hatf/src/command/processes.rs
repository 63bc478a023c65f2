//! `hatf processes`: compares the processes of a recording in one table.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Component, Path, PathBuf};

use hatf_host::record::{path_from_json, path_to_json};
use hatf_lab::sites::{Amount, Sites};
use hatf_lab::{Cause, Change, Heap, HeapTracker, ObjectEvent, Observer};
use hatf_trace::event::{Event, EventKind, UserMetadata, shell_words};
use hatf_trace::{Error, Result};
use metatf_cli::OutputArgs;
use metatf_page::{Column, Note, Page, Report, Table, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::lab::Source;
use super::output::show;
use super::record::processes::LIST;
use super::record::trace_output::folder_of;

/// Maximum length of a line in the process list. The arguments of a command are at most 2 MiB.
const LINE_MAX: u64 = 16 << 20;
/// Maximum number of programs kept per process.
const PROGRAMS_MAX: usize = 100;

/// Compare the processes of a recording: programs, times, peaks, leaks and cross-thread frees.
///
/// `hatf record` writes a trace for each process that a program creates, in a directory next to the program's own
/// trace. This command reads all of them. The trace of a program that created no processes is treated as a recording of
/// one process.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf record -o build.mtf make
  hatf processes build.mtf
  hatf processes build.processes --format json | jq '.processes | max_by(.peak.bytes)'")]
pub(crate) struct Processes {
    /// Directory of process traces, or the trace next to it.
    #[arg(value_name = "DIR|TRACE")]
    place: PathBuf,

    /// Number of worker threads; the result does not depend on it [default: the number of cores].
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    threads: Option<usize>,

    #[command(flatten)]
    output: OutputArgs,
}

/// An entry of the process list.
#[derive(Default, Deserialize, Serialize)]
struct Listed {
    number: u64,
    process: Option<u64>,
    parent: Option<u64>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(deserialize_with = "read_path", serialize_with = "write_path")]
    trace: PathBuf,
    began_ns: u64,
    duration_ns: Option<u64>,
    exit: Option<u64>,
    signal: Option<u64>,
    #[serde(default)]
    lost: u64,
}

impl Listed {
    /// Fills in missing values from the process's trace.
    fn complete(&mut self, told: Told) {
        self.process = self.process.or(told.process);
        self.parent = self.parent.or(told.parent);
        self.duration_ns = self.duration_ns.or(told.end.map(|end| end.saturating_sub(self.began_ns)));
        if self.exit.is_none() && self.signal.is_none() {
            (self.exit, self.signal) = (told.exit, told.signal);
        }
        if self.command.is_empty() {
            self.command = told.command;
        }
        self.lost = self.lost.max(told.lost);
    }
}

/// The description of a process in its trace.
#[derive(Default)]
struct Told {
    process: Option<u64>,
    parent: Option<u64>,
    command: Vec<String>,
    exit: Option<u64>,
    signal: Option<u64>,
    /// End time of the process.
    end: Option<u64>,
    lost: u64,
}

fn read_path<'d, D: Deserializer<'d>>(from: D) -> std::result::Result<PathBuf, D::Error> {
    let json = serde_json::Value::deserialize(from)?;
    path_from_json(&json).ok_or_else(|| serde::de::Error::custom("expected a path"))
}

fn write_path<S: Serializer>(path: &Path, to: S) -> std::result::Result<S::Ok, S::Error> {
    path_to_json(path).serialize(to)
}

/// A process and the data of its trace. The data is `None` if the trace cannot be read.
#[derive(Serialize)]
struct Process {
    #[serde(flatten)]
    listed: Listed,
    #[serde(flatten)]
    counted: Option<Counted>,
}

#[derive(Serialize)]
struct Counted {
    /// Allocations and frees.
    events: u64,
    /// Blocks live at the peak, or `None` if the trace contains only sizes.
    peak: Option<Amount>,
    leaked: Option<Amount>,
    /// Blocks freed by a thread other than the allocating thread.
    freed_by_others: Amount,
    /// Programs that the process executed with `exec`, in order.
    programs: Vec<String>,
}

#[derive(Serialize)]
struct Found {
    #[serde(skip)]
    title: String,
    processes: Vec<Process>,
}

/// An observer that collects the data of a process.
#[derive(Default)]
struct Counting {
    all: Sites,
    freed_by_others: Amount,
    programs: Vec<String>,
    told: Told,
}

impl Observer for Counting {
    fn event(&mut self, event: &ObjectEvent) -> hatf_lab::Result<()> {
        let is_freed = event.change == Change::Freed && matches!(event.cause, Cause::Call | Cause::Realloc);
        if is_freed && event.thread != event.object.thread {
            self.freed_by_others.sum(Amount { blocks: 1, bytes: event.object.size });
        }
        self.all.count(0, event)
    }

    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        match record.kind {
            EventKind::Image { process, path } => {
                self.told.process.get_or_insert(process);
                if self.programs.len() < PROGRAMS_MAX {
                    self.programs.push(String::from_utf8_lossy(path).into_owned());
                }
            }
            EventKind::Exit { status } => (self.told.exit, self.told.end) = (Some(status), Some(record.time)),
            EventKind::Killed { signal } => (self.told.signal, self.told.end) = (Some(signal), Some(record.time)),
            _ => {}
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let words = user_metadata.get("command").and_then(serde_json::Value::as_array);
        let words = words.into_iter().flatten().filter_map(serde_json::Value::as_str).map(str::to_owned);
        self.told.command.extend(words);
        let number = |value: &serde_json::Value| value.as_u64();
        self.told.parent = self.told.parent.or(user_metadata.get("process").and_then(|of| number(&of["parent"])));
        self.told.lost = user_metadata.get("lost").and_then(number).unwrap_or(self.told.lost);
    }

    fn sampled(&mut self, mean: u64) {
        self.all.sampled(mean);
    }
}

pub(crate) fn run(options: &Processes) -> Result<u8> {
    let mut folder = if options.place.is_dir() { options.place.clone() } else { folder_of(&options.place) };
    // If the program created no other processes, there is no directory, only its own trace.
    let alone = options.place.file_name().filter(|_| options.place.is_file() && !folder.exists());
    let all = if let Some(file) = alone {
        folder = options.place.parent().map(Path::to_path_buf).unwrap_or_default();
        vec![Listed { number: 1, trace: file.into(), ..Listed::default() }]
    } else {
        list(&folder)?
    };
    let title = alone.map_or(&folder, |_| &options.place).display().to_string();
    let mut failed = false;
    let mut processes = Vec::new();
    for mut listed in all {
        let trace = folder.join(&listed.trace);
        let counted = match count(trace, options.threads) {
            Ok((counted, told)) => {
                listed.complete(told);
                Some(counted)
            }
            Err(error) => {
                failed = true;
                super::print_message(&metatf_cli::shown(&error.to_string()));
                None
            }
        };
        processes.push(Process { listed, counted });
    }
    processes.sort_by_key(|process| (process.listed.began_ns, process.listed.number));
    show(&Found { title, processes }, &options.output)?;
    Ok(failed.into())
}

/// A process of a recording and its peak of live bytes.
pub(super) struct PeakOfProcess {
    pub(super) number: u64,
    pub(super) command: String,
    pub(super) trace: PathBuf,
    pub(super) bytes: u64,
}

/// Returns the processes in a directory whose traces can be read.
pub(super) fn peaks(folder: &Path) -> Result<Vec<PeakOfProcess>> {
    let peak = |listed: Listed| {
        let trace = folder.join(&listed.trace);
        let (counted, told) = count(trace.clone(), None).ok()?;
        let command = if listed.command.is_empty() { told.command } else { listed.command };
        let bytes = counted.peak.unwrap_or_default().bytes;
        Some(PeakOfProcess { number: listed.number, command: shell_words(&command), trace, bytes })
    };
    Ok(list(folder)?.into_iter().filter_map(peak).collect())
}

/// Reads the process list of a directory.
fn list(folder: &Path) -> Result<Vec<Listed>> {
    let path = folder.join(LIST);
    let name = path.display().to_string();
    let wrong = |number: u64, why: String| Error::Trace(format!("{name}: line {number}: {why}").into());
    let mut file = BufReader::new(File::open(&path).map_err(Error::system(name.clone()))?);
    let mut all = Vec::new();
    for number in 1.. {
        let mut line = Vec::new();
        let length = file.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).map_err(Error::system(name.clone()))?;
        if length == 0 {
            break;
        }
        if length as u64 == LINE_MAX {
            return Err(wrong(number, "the line is longer than 16 MiB".to_owned()));
        }
        let listed: Listed = serde_json::from_slice(&line).map_err(|error| wrong(number, error.to_string()))?;
        if !is_beside(&listed.trace) {
            return Err(wrong(number, "the trace is neither in the directory nor next to it".to_owned()));
        }
        all.push(listed);
    }
    Ok(all)
}

/// Returns whether a trace is in the directory or, like the program's own trace, next to the directory.
fn is_beside(trace: &Path) -> bool {
    let parts: Vec<_> = trace.components().collect();
    matches!(parts[..], [Component::Normal(_)] | [Component::ParentDir, Component::Normal(_)])
}

fn count(trace: PathBuf, threads: Option<usize>) -> Result<(Counted, Told)> {
    let mut tracker = HeapTracker::new(Counting::default()).with_sizes_only();
    Source::new(trace, None, threads).read(&mut tracker)?;
    let (heap, counting) = tracker.into_parts();
    let all = counting.all.report().first().copied().unwrap_or_default();
    let known = |amount: Amount| (!heap.has_sizes_only()).then_some(amount);
    let counted = Counted {
        events: heap.totals().events,
        peak: known(all.peak),
        leaked: known(all.leaked),
        freed_by_others: counting.freed_by_others,
        programs: counting.programs,
    };
    Ok((counted, counting.told))
}

impl Report for Found {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        let count = self.processes.len() as u64;
        page.push(Note::new(if count == 1 { "{} process" } else { "{} processes" }).with([Value::Count(count)]));
        let names = [
            "",
            "process",
            "parent",
            "began",
            "ended",
            "exit",
            "events",
            "peak",
            "leaked",
            "freed by others",
            "program",
        ];
        let mut table = Table::new(names.map(Column::new));
        for Process { listed, counted } in &self.processes {
            let number = |number: Option<u64>| number.map_or(Value::Unknown, |number| Value::text(number.to_string()));
            let amount = |of: fn(&Counted) -> Option<Amount>| {
                counted.as_ref().and_then(of).map_or(Value::Unknown, |amount| Value::Bytes(amount.bytes))
            };
            table.row([
                number(Some(listed.number)),
                number(listed.process),
                number(listed.parent),
                Value::Time(listed.began_ns),
                listed.duration_ns.map_or(Value::Unknown, |time| Value::Time(listed.began_ns.saturating_add(time))),
                match (listed.exit, listed.signal) {
                    (Some(status), _) => Value::text(status.to_string()),
                    (None, Some(signal)) => Value::text(format!("signal {signal}")),
                    (None, None) => Value::Unknown,
                },
                counted.as_ref().map_or(Value::Unknown, |counted| Value::Count(counted.events)),
                amount(|counted| counted.peak),
                amount(|counted| counted.leaked),
                counted.as_ref().map_or(Value::Unknown, |counted| Value::Count(counted.freed_by_others.blocks)),
                Value::Lines(programs(listed, counted.as_ref())),
            ]);
        }
        page.push(table);
        page
    }
}

/// Returns the command of a process, followed by the programs that it executed with `exec`.
fn programs(listed: &Listed, counted: Option<&Counted>) -> Vec<String> {
    let later = counted.into_iter().flat_map(|counted| &counted.programs);
    match (&listed.command[..], counted) {
        ([], None) => vec!["unknown".to_owned()],
        ([], Some(_)) => later.cloned().collect(),
        (command, _) => {
            std::iter::once(command.join(" ")).chain(later.map(|program| format!("-> {program}"))).collect()
        }
    }
}
