//! `hatf record`

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hatf::analysis::ReportBuilder;
use hatf::event::{Tee, UserMetadata};
use hatf::hatf10::Hatf10Writer;
use hatf::heap::{HeapOptions, HeapWriter};
use hatf::lab::HeapTracker;
use hatf::record::{DumpInto, Follower, Outcome, RecordOptions, TakeDump, WhenFull};
use hatf::{Error, Event, EventSink, Result};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf::recode::Preset;
use metatf_cli::{OutputFile, Style, print_into, stderr};

use super::processes::Processes;
use super::record_summary::{Known, Written, print_not_recorded, print_summary};
use super::{Record as Options, TraceFormat, print_message};

/// The exit status where recording failed.
const FAILED: u8 = 125;

/// Runs the command. What is no error of the program to run gets a status of its own, as that of the program is passed on.
pub(crate) fn run(options: &Options) -> Result<u8> {
    hatf::record::ignore_file_size_signal();
    match run_program(options) {
        Err(error @ (Error::System(..) | Error::Trace(_))) => {
            print_message(&full(error).to_string());
            Ok(FAILED)
        }
        result => result,
    }
}

fn run_program(options: &Options) -> Result<u8> {
    let mut analysis =
        (options.report || options.no_trace).then(|| HeapTracker::new(ReportBuilder::new()).with_sizes_only());
    let of_process = options.pid.map(hatf::record::command_of_process).transpose()?;
    let command = of_process.as_deref().unwrap_or(&options.command);
    let named = || options.output.clone().unwrap_or_else(|| free_name(command));
    let output = (!options.no_trace).then(named);
    // While the user can still do something about it.
    let known = options.command.first().and_then(|program| hatf::record::not_recorded(program));
    if let Some(known) = &known {
        print_message(&known.to_string());
        if known.reason == hatf::record::NotRecordedReason::ThreadSanitizer {
            return Ok(FAILED);
        }
    }
    let started = options.command.first().filter(|_| known.is_none());
    let linked_in = started.and_then(|program| hatf::record::linked_in(program));
    if let Some(linked_in) = linked_in.as_ref().filter(|linked_in| linked_in.is_refused()) {
        print_not_recorded(linked_in);
    }
    if let Some(process) = options.pid
        && let Some(linked_in) = hatf::record::linked_in(OsStr::new(&format!("/proc/{process}/exe")))
    {
        print_message(&format!("{linked_in}; those of a program that hatf record starts are"));
    }
    let known = Known { not_loaded: known.is_some(), linked_in: linked_in.as_ref() };
    let (outcome, failure) = match &output {
        Some(path) => to_file(options, path, analysis.as_mut(), known)?,
        None => {
            let into = Into { output: None, started: None, dump: None, processes: None };
            let outcome = record(options, &mut NullSink, analysis.as_mut(), known, into)?;
            print_summary(options, &outcome, None, None, known);
            (outcome, None)
        }
    };
    let printed = analysis
        .map_or(Ok(()), |analysis| print_into(&analysis.analysis().report(analysis.heap()), &mut stderr(Style::Text)));
    // The program ran, and its status is what counts: what failed is a message.
    let code = outcome.exit_code();
    let of_traces = [failure, outcome.recorded.sink_error];
    let mut failures: Vec<_> = of_traces.into_iter().flatten().take(1).collect();
    failures.extend(outcome.follow_errors);
    // Who has closed a pipe wants no more.
    let is_left = failures.iter().any(|error| !error.is_closed_pipe());
    let failures: Vec<_> = failures.into_iter().chain(printed.map_err(Error::from).err()).collect();
    if failures.is_empty() {
        return Ok(code);
    }
    // A full disk is the same error for each process.
    for error in failures.iter().take(3) {
        print_message(&format!("the trace is not complete: {error}"));
    }
    if is_left {
        let spool = outcome.spool.keep().display().to_string();
        print_message(&format!(
            "what was recorded is in {spool}: `hatf recover {spool}` makes the trace where there is room, or elsewhere with -o"
        ));
    }
    Ok(if code == 0 { FAILED } else { code })
}

/// Records into a file, which gets its name when the program runs: where that cannot be started, what has the name stays as it
/// is. The error beside the outcome is one of the file.
fn to_file(
    options: &Options,
    path: &Path,
    analysis: Option<&mut HeapTracker<ReportBuilder>>,
    known: Known<'_>,
) -> Result<(Outcome, Option<Error>)> {
    let name = if is_standard_output(path) { "standard output".to_owned() } else { path.display().to_string() };
    let problem = || Error::system(name.clone());
    let (mut output, mut sink) = OutputFile::create(path).map_err(problem())?;
    // Where the output failed, that is the cause, whatever became of it on the way.
    let cause = |failed: Option<io::Error>, error| full(failed.map_or_else(|| about_output(&name, error), problem()));
    // The recorder says when.
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.preset.trace().apply(&mut write);
    let form = Form::of(options);
    let processes = (!options.no_follow && !is_standard_output(path)).then(|| Processes::new(options, path, &write));
    let (recorded, finished) = {
        let mut trace = TraceWriter::new(&mut *sink, form, &write).map_err(|error| cause(output.error(), error))?;
        let mut started = || {
            if let Some(process) = options.pid.filter(|_| !options.quiet) {
                print_message(&format!("recording process {process} until it ends, or until an interrupt (Ctrl-C)"));
            }
            output.appear().map_err(problem())
        };
        let take = |_: u32, give: DumpInto<'_>| dump(options, path, &write, give);
        let take: Option<TakeDump<'_>> = (!is_standard_output(path)).then_some(&take);
        let into = Into { output: Some(path), started: Some(&mut started), dump: take, processes: processes.as_ref() };
        let recorded = record(options, trace.sink(), analysis, known, into);
        (recorded, trace.finish())
    };
    let mut outcome = recorded?;
    let finished = finished.and_then(|()| sink.flush().map_err(problem()));
    let failure = output.error();
    let failure = match finished {
        Ok(()) => failure.map(|error| full(problem()(error))),
        Err(error) => Some(cause(failure, error)),
    };
    let is_whole = failure.is_none() && outcome.recorded.sink_error.is_none();
    let written = output.bytes().map(|bytes| Written { path, bytes, is_whole });
    if output.is_replaced() {
        print_message(&format!("{name}: another program has put its own file there: the trace of this one is lost"));
    }
    print_summary(options, &outcome, written, processes.as_ref(), known);
    if let Some(processes) = &processes {
        let listed = processes.finish(&outcome);
        outcome.follow_errors.extend(listed.err());
    }
    Ok((outcome, failure))
}

/// Writes a trace which gets its name when it is whole; returns what `give` does.
pub(super) fn write_whole<T>(
    path: &Path,
    form: Form,
    write: &WriteOptions,
    give: impl FnOnce(&mut dyn EventSink) -> Result<T>,
) -> Result<T> {
    let name = path.display().to_string();
    let problem = || Error::system(name.clone());
    let (output, mut sink) = OutputFile::create(path).map_err(problem())?;
    let mut trace = TraceWriter::new(&mut *sink, form, write).map_err(|error| about_output(&name, error))?;
    let given = give(trace.sink());
    let finished = trace.finish();
    if let Some(error) = output.error() {
        return Err(full(problem()(error)));
    }
    let given = given.map_err(|error| about_output(&name, error))?;
    finished.map_err(|error| about_output(&name, error))?;
    output.keep(sink).map_err(problem())?;
    Ok(given)
}

/// Writes what `hatf record --keep` has at this moment beside the trace that is written at the end: into `TRACE.dump1.mtf`, or with
/// the next number that is free.
pub(super) fn dump(options: &Options, trace: &Path, write: &WriteOptions, give: DumpInto<'_>) {
    let stem = trace.with_extension("");
    let named = |number: u32| {
        let mut name = stem.as_os_str().to_owned();
        name.push(format!(".dump{number}.mtf"));
        PathBuf::from(name)
    };
    let Some(path) = (1..=u32::MAX).map(named).find(|path| !path.exists()) else { return };
    match write_whole(&path, Form::of(options), write, give) {
        Ok(()) if options.quiet => {}
        Ok(()) => {
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            print_message(&format!("asked for: {bytes} bytes in {}", path.display()));
        }
        Err(error) => print_message(&format!("a trace was asked for: {error}")),
    }
}

/// How a trace is written, beside what its container needs to know.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Its DTD.
    pub(super) format: TraceFormat,
    /// The nanoseconds of a tick.
    pub(super) resolution: u64,
    /// About how many records a group has.
    pub(super) group_records: u64,
    /// See [`HeapOptions::plain`].
    pub(super) plain: bool,
}

impl Form {
    /// Returns what the options of `hatf record` ask for.
    pub(super) fn of(options: &Options) -> Self {
        Self {
            format: options.format,
            resolution: options.clock,
            group_records: group(options),
            plain: is_plain(options.preset.trace()),
        }
    }
}

/// Returns about how many records a group has: fewer than are asked for, where this process may not have the memory (`ulimit -d`, or that
/// of a container, of which the program is to have the half).
pub(super) fn group(options: &Options) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit) } == 0;
    let own = if known { limit.rlim_cur } else { u64::MAX };
    let fitting = (own.min(hatf::record::memory_left() / 2) / GROUP_RECORD_BYTES).max(GROUP_LEAST);
    options.group.min(fitting)
}

/// Bytes of memory for each record of a group, with some to spare.
const GROUP_RECORD_BYTES: u64 = 512;
/// Records of a group at least, however little memory there is.
const GROUP_LEAST: u64 = 1000;

/// Whether the traces of a preset are written plainly.
pub(super) fn is_plain(preset: Preset) -> bool {
    preset == Preset::Fast
}

/// A trace of either DTD.
pub(super) enum TraceWriter<'w> {
    Heap(HeapWriter<'w>),
    Hatf10(Hatf10Writer<'w>),
}

impl<'w> TraceWriter<'w> {
    /// Begins a trace.
    pub(super) fn new(
        sink: &'w mut dyn Sink,
        Form { format, resolution, group_records, plain }: Form,
        write: &WriteOptions,
    ) -> Result<Self> {
        match format {
            TraceFormat::Heap => {
                let heap = HeapOptions { write: write.clone(), resolution, group_records, plain };
                HeapWriter::new(sink, &heap).map(Self::Heap)
            }
            TraceFormat::Hatf10 => Hatf10Writer::new(sink, write).map(Self::Hatf10),
        }
    }

    pub(super) fn sink(&mut self) -> &mut dyn EventSink {
        match self {
            Self::Heap(writer) => writer,
            Self::Hatf10(writer) => writer,
        }
    }

    pub(super) fn finish(self) -> Result<()> {
        match self {
            Self::Heap(writer) => writer.finish(),
            Self::Hatf10(writer) => writer.finish(),
        }
        .map(drop)
    }
}

/// Gives an error of a trace's writer the trace's name.
pub(super) fn about_output(name: &str, error: Error) -> Error {
    match error {
        Error::System(_, error) => Error::System(name.to_owned(), error),
        other => Error::Trace(format!("{name}: {other}").into()),
    }
}

/// Says what to do where an output has no room.
pub(super) fn full(error: Error) -> Error {
    let elsewhere = ", or name a file elsewhere with -o";
    let (advice, elsewhere) = match &error {
        Error::System(_, cause) if cause.raw_os_error() == Some(libc::EMFILE) => ("raise the limit (ulimit -n)", ""),
        Error::System(_, cause) if cause.kind() == io::ErrorKind::FileTooLarge => {
            ("raise the limit (ulimit -f)", elsewhere)
        }
        Error::System(_, cause)
            if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
        {
            ("make room", elsewhere)
        }
        _ => return error,
    };
    Error::Trace(format!("{error}: {advice}{elsewhere}").into())
}

fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Where a recording goes.
struct Into<'a> {
    output: Option<&'a Path>,
    started: Option<&'a mut dyn FnMut() -> Result<()>>,
    dump: Option<TakeDump<'a>>,
    processes: Option<&'a Processes<'a>>,
}

fn record<'a>(
    options: &Options,
    sink: &mut dyn EventSink,
    analysis: Option<&mut HeapTracker<ReportBuilder>>,
    known: Known<'a>,
    Into { output, started, dump, processes }: Into<'a>,
) -> Result<Outcome> {
    let output_to_error = options.output.as_deref().is_some_and(is_standard_output);
    let how = RecordOptions {
        flush: options.flush.map(Duration::from_secs),
        group: group(options),
        output_to_error,
        started,
        spool: options.spool.clone(),
        spool_bytes: options.spool_size,
        sample: options.sample.unwrap_or(0),
        only_threads: options.only_threads.clone(),
        only_modules: options.only_modules.clone(),
        sizes_only: options.sizes_only,
        start_off: options.start_off,
        toggle_signal: options.toggle_signal,
        control: options.control.clone(),
        keep: options.keep,
        dump,
        dump_signal: options.dump_signal,
        private: options.private,
        stacks: options.stacks(),
        usable: options.usable(),
        processors: options.processors,
        pages: options.pages(),
        python: options.python,
        linked_in: known.linked_in.filter(|_| !options.no_linked_in),
        when_full: match options.when_full {
            super::WhenFull::Wait => WhenFull::Wait,
            super::WhenFull::Drop => WhenFull::Drop,
            super::WhenFull::Stop => WhenFull::Stop,
        },
        about: super::recover::about(options, output),
        follower: processes.map(|processes| processes as &dyn Follower),
        follow_most: options.follow_most,
        follow_programs: options.follow.clone(),
        ..RecordOptions::default()
    };
    match analysis {
        None => record_what(options, sink, how),
        Some(analysis) => record_what(options, &mut Tee(sink, analysis), how),
    }
}

/// Runs the program, or records a process that runs.
fn record_what(options: &Options, sink: &mut dyn EventSink, how: RecordOptions<'_>) -> Result<Outcome> {
    match options.pid {
        Some(process) => hatf::record::record_process(process, sink, how),
        None => hatf::record::record_with(&options.command, sink, how),
    }
}

/// `PROGRAM.mtf`, or with a number if that is there: a trace is not overwritten unasked.
fn free_name(command: &[OsString]) -> PathBuf {
    let program = command.first().map(PathBuf::from).unwrap_or_default();
    let stem = program.file_name().unwrap_or(OsStr::new("trace")).to_owned();
    let name = |middle: String| {
        let mut name = stem.clone();
        name.push(middle);
        name.push(".mtf");
        PathBuf::from(name)
    };
    let numbered = (1..).map(|n: u32| name(format!(".{n}")));
    let mut names = std::iter::once(name(String::new())).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_else(|| name(String::new()))
}

/// A sink for those who only want the report.
struct NullSink;

impl EventSink for NullSink {
    fn event(&mut self, _: &Event<'_>) -> Result<()> {
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> Result<()> {
        Ok(())
    }
}
