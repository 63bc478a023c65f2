//! `hatf record`: records the heap of a program.

pub(super) mod options;
mod preset;
pub(super) mod processes;
pub(super) mod rotation;
pub(super) mod summary;
pub(super) mod trace_output;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hatf_host::record::{DumpInto, Follower, Outcome, RecordOptions, TakeDump, WhenFull};
use hatf_lab::HeapTracker;
use hatf_trace::event::Tee;
use hatf_trace::heap::HeapOptions;
use hatf_trace::{Error, EventSink, Result};
use hatf_view::analysis::ReportBuilder;
use hatf_view::calls::Folding;
use hatf_view::verdict::Summary;
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf_cli::{OutputFile, OutputFolder, Style, print_into, stderr, stderr_width};

use super::print_message;
use super::symbolize::write_symbols;
pub(crate) use options::Record;
use options::{PythonBlocks, Record as Options, TraceFormat};
use processes::Processes;
use summary::{Known, Written, print_not_recorded, print_summary};
use trace_output::{TraceForm, TraceWriter, about, about_output, dump, free_name, full, group};

/// Exit status if recording failed.
const FAILED: u8 = 125;

/// Runs the command. If the program ran, returns its exit status. If recording failed, returns [`FAILED`], which
/// distinguishes this failure from a failure of the program.
/// The observers for the report of `--report`.
type Analysis = HeapTracker<ReportBuilder>;

pub(crate) fn run(options: &Options) -> Result<u8> {
    match run_program(options) {
        Err(error @ (Error::System(..) | Error::Trace(_))) => {
            print_message(&full(error).to_string());
            Ok(FAILED)
        }
        result => result,
    }
}

fn run_program(options: &Options) -> Result<u8> {
    if let Some(agent) = options.agent {
        end_with(agent)?;
    }
    let report = || HeapTracker::new(ReportBuilder::new()).with_sizes_only();
    let mut analysis = options.report.then(report);
    let of_process = options.pid.map(hatf_host::record::command_of_process).transpose()?;
    let command = of_process.as_deref().unwrap_or(&options.command);
    let named = || options.output.clone().unwrap_or_else(|| free_name(&stem(command)));
    let output = match options.rotate {
        Some(_) => Some(segments_of(options, command)?),
        None => (!options.no_trace).then(named),
    };
    // Print this before the program runs, while the user can still react.
    if let Some(given) = trace_among(&options.command) {
        let goes = output.as_deref().map_or_else(
            || "no trace is written".to_owned(),
            |output| format!("the trace is written to {}", output.display()),
        );
        print_message(&format!(
            "`-o {given}` comes after the program, so it was passed to the program, and {goes}; put options of hatf \
             record before the program"
        ));
    }
    let known = options.command.first().and_then(|program| hatf_host::record::not_recorded(program));
    if let Some(known) = &known {
        print_message(&known.to_string());
        if known.reason == hatf_host::record::NotRecordedReason::ThreadSanitizer {
            return Ok(FAILED);
        }
    }
    let started = options.command.first().filter(|_| known.is_none());
    let linked_in = started.and_then(|program| hatf_host::record::linked_in(program));
    if let Some(linked_in) = linked_in.as_ref().filter(|linked_in| linked_in.is_refused()) {
        print_not_recorded(linked_in);
    }
    if let Some(process) = options.pid
        && let Some(linked_in) = hatf_host::record::linked_in(OsStr::new(&format!("/proc/{process}/exe")))
    {
        print_message(&format!("{linked_in}; they are recorded only in a program that hatf record starts"));
    }
    let known = Known { not_loaded: known.is_some(), linked_in: linked_in.as_ref() };
    if options.symbolize && (options.format != TraceFormat::Heap || output.as_deref().is_some_and(is_standard_output)) {
        let why = "--symbolize rewrites the trace, so the output must be a file in heap format";
        return Err(Error::Usage(why.to_owned()));
    }
    let (outcome, failure, lost) = match &output {
        Some(path) if options.rotate.is_some() => to_folder(options, path, analysis.as_mut(), known)?,
        Some(path) => to_file(options, path, analysis.as_mut(), known)?,
        None => {
            let into = Into { output: None, started: None, dump: None, processes: None };
            let outcome = record(options, analysis.get_or_insert_with(report), None, known, into)?;
            print_summary(options, &outcome, None, None, known);
            let lost = outcome.recorded.lost;
            (outcome, None, lost)
        }
    };
    let printed = analysis.map_or(Ok(()), |analysis| {
        let (heap, builder) = analysis.into_parts();
        let summary = Summary::new(&builder, &heap, &Folding::default());
        print_into(&summary, stderr_width(), &mut stderr(Style::Text))
    });
    if options.agent.is_some() && outcome.recorded.images > 0 {
        let text = serde_json::json!({ "events": outcome.recorded.events, "lost": lost }).to_string();
        let _ = metatf_cli::stdout(Style::Data).write_all(text.as_bytes());
    }
    // The program ran, so return its status and only print other failures.
    let mut code = outcome.exit_code();
    if code == 0 && outcome.recorded.images == 0 && outcome.followed == 0 {
        // Nothing was recorded. A message above explains why.
        code = FAILED;
    }
    if code == 0 && lost > 0 && options.when_full() != options::WhenFull::Drop {
        code = FAILED;
    }
    let of_traces = [failure, outcome.recorded.sink_error];
    let mut failures: Vec<_> = of_traces.into_iter().flatten().take(1).collect();
    failures.extend(outcome.follow_errors);
    // A closed pipe is not a failure, because its reader wants no more data.
    let is_left = failures.iter().any(|error| !error.is_closed_pipe());
    let failures: Vec<_> = failures.into_iter().chain(printed.map_err(Error::from).err()).collect();
    if failures.is_empty() {
        return Ok(code);
    }
    // Print only a few errors, because a full disk causes the same error in every process.
    for error in failures.iter().take(3) {
        print_message(&format!("the trace is incomplete: {error}"));
    }
    if is_left {
        let spool = outcome.spool.keep().display().to_string();
        print_message(&format!(
            "the recorded events are in {spool}: run `hatf recover {spool}` to write the trace when there is space, or add -o to write it elsewhere"
        ));
    }
    Ok(if code == 0 { FAILED } else { code })
}

/// Interrupts this process when its parent, the agent, ends.
fn end_with(agent: u32) -> Result<()> {
    let problem = || Error::system("the end of the agent");
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::INT))
        .map_err(|error| problem()(error.into()))?;
    // The agent may have ended before.
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned());
    if parent == Some(agent) { Ok(()) } else { Err(Error::Trace("the agent has ended".into())) }
}

/// Records to a file. The file gets its name only after the program has started, so an existing file is left unchanged
/// if the program cannot be started. Returns the outcome, the error in writing the file, if there was one, and the
/// number of events that were lost in all processes.
fn to_file(
    options: &Options,
    path: &Path,
    analysis: Option<&mut Analysis>,
    known: Known<'_>,
) -> Result<(Outcome, Option<Error>, u64)> {
    let name = if is_standard_output(path) { "standard output".to_owned() } else { path.display().to_string() };
    let problem = || Error::system(name.clone());
    if OutputFile::is_being_written(path) {
        let why = "another recording is writing this trace; choose a different name with -o";
        return Err(Error::Trace(format!("{name}: {why}").into()));
    }
    let (mut output, mut sink) = OutputFile::create(path).map_err(problem())?;
    output.mark_as_written();
    // If the output failed, report its error as the cause of all other errors.
    let cause = |failed: Option<io::Error>, error| full(failed.map_or_else(|| about_output(&name, error), problem()));
    // The writer does not flush by itself, because the recorder decides when to flush.
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.preset.trace().apply(&mut write);
    let form = TraceForm::of(options);
    let processes = (!options.no_follow && !is_standard_output(path)).then(|| Processes::new(options, path, &write));
    let (recorded, finished) = {
        let mut trace = TraceWriter::new(&mut *sink, form, &write).map_err(|error| cause(output.error(), error))?;
        let mut started = || {
            if let Some(process) = options.pid.filter(|_| !options.quiet) {
                print_message(&format!("recording process {process} until it ends or until Ctrl-C"));
            }
            output.appear().map_err(problem())
        };
        let take = |_: u32, give: DumpInto<'_>| match OutputFolder::of(path) {
            Ok(folder) => dump(options, &folder, path, &write, give),
            Err(error) => print_message(&format!("could not write the requested trace: {}", problem()(error))),
        };
        let take: Option<TakeDump<'_>> = (!is_standard_output(path)).then_some(&take);
        let into = Into { output: Some(path), started: Some(&mut started), dump: take, processes: processes.as_ref() };
        let recorded = record(options, trace.sink(), analysis, known, into);
        (recorded, trace.finish())
    };
    let mut outcome = recorded?;
    // The spool is removed after the trace has reached the disk.
    let finished = finished.and_then(|()| sink.flush().and_then(|()| output.sync()).map_err(problem()));
    let failure = output.error();
    let failure = match finished {
        Ok(()) => failure.map(|error| full(problem()(error))),
        Err(error) => Some(cause(failure, error)),
    };
    let (place, failure) = match place_of(path, &output) {
        Ok(place) => (place, failure),
        Err(error) => (path.to_owned(), failure.or(Some(error))),
    };
    let path = &*place;
    let is_whole = failure.is_none() && outcome.recorded.sink_error.is_none();
    let written = output.bytes().map(|bytes| Written { path, bytes, is_whole });
    print_summary(options, &outcome, written, processes.as_ref(), known);
    if let Some(processes) = &processes {
        let listed = processes.finish(&outcome);
        outcome.follow_errors.extend(listed.err());
    }
    if options.symbolize {
        if is_whole {
            symbolize(path, || OutputFile::create(path), form, &write);
        }
        for (folder, name) in processes.iter().flat_map(Processes::traces) {
            symbolize(&folder.path().join(&name), || folder.file(name.as_ref()), form, &write);
        }
    }
    let lost = outcome.recorded.lost + processes.as_ref().map_or(0, Processes::lost);
    Ok((outcome, failure, lost))
}

/// Creates the directory for the segments of --rotate.
fn segments_of(options: &Options, command: &[OsString]) -> Result<PathBuf> {
    let refused = |why: &str| Err(Error::Usage(format!("--rotate writes segments to a directory, {why}")));
    if options.format != TraceFormat::Heap {
        return refused("and each segment is a trace in heap format: remove --format");
    }
    if options.output.as_deref().is_some_and(is_standard_output) {
        return refused("so the output cannot be standard output: specify a directory with -o");
    }
    let asked = options.output.clone().unwrap_or_else(|| {
        let mut name = stem(command);
        name.push(".segments");
        name.into()
    });
    let place = rotation::new_folder(&asked)?;
    if place != asked && options.output.is_some() {
        let (asked, place) = (asked.display(), place.display());
        print_message(&format!("{asked} is not empty, so the segments are written to {place}"));
    }
    Ok(place)
}

/// Records to the segments of a directory. Returns the same as [`to_file`].
fn to_folder(
    options: &Options,
    path: &Path,
    analysis: Option<&mut Analysis>,
    known: Known<'_>,
) -> Result<(Outcome, Option<Error>, u64)> {
    let folder = OutputFolder::create(path).map_err(Error::system(path.display().to_string()))?;
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.preset.trace().apply(&mut write);
    let processes = (!options.no_follow).then(|| Processes::new(options, path, &write));
    let mut rotation = rotation::Rotation::new(&folder, options, &write)?;
    let mut started = || {
        if let Some(process) = options.pid.filter(|_| !options.quiet) {
            print_message(&format!("recording process {process} until it ends or until Ctrl-C"));
        }
        Ok(())
    };
    let into = Into { output: Some(path), started: Some(&mut started), dump: None, processes: processes.as_ref() };
    let mut outcome = match record(options, &mut rotation, analysis, known, into) {
        Ok(outcome) => outcome,
        Err(error) => {
            rotation.abandon();
            return Err(error);
        }
    };
    let finished = if outcome.recorded.sink_error.is_none() { rotation.finish() } else { Ok(0) };
    let is_whole = finished.is_ok() && outcome.recorded.sink_error.is_none();
    let written = finished.as_ref().ok().map(|bytes| Written { path, bytes: *bytes, is_whole });
    print_summary(options, &outcome, written, processes.as_ref(), known);
    if let Some(processes) = &processes {
        let listed = processes.finish(&outcome);
        outcome.follow_errors.extend(listed.err());
    }
    let lost = outcome.recorded.lost + processes.as_ref().map_or(0, Processes::lost);
    Ok((outcome, finished.err(), lost))
}

/// Returns the path of a trace that was written as `path`. If the file has lost this name in the meantime, copies the
/// trace to a new name in the same directory, or in the current directory if the old directory is gone.
fn place_of(path: &Path, output: &OutputFile) -> Result<PathBuf> {
    if !output.is_replaced() {
        return Ok(path.to_owned());
    }
    let name = path.display();
    let stem = path.with_extension("");
    let mut last = None;
    for stem in [stem.as_os_str(), stem.file_name().unwrap_or_default()] {
        let place = free_name(stem);
        let copied = OutputFile::create(&place).and_then(|(copy, mut sink)| {
            output.copy(&mut sink)?;
            copy.keep(sink)
        });
        match copied {
            Ok(()) => {
                let place_name = place.display();
                print_message(&format!(
                    "{name}: the file was replaced, renamed or removed during recording; the trace is in {place_name}"
                ));
                return Ok(place);
            }
            Err(error) => last = Some(full(Error::system(place.display().to_string())(error))),
        }
    }
    let why = last.map_or_else(String::new, |error| format!("; {error}"));
    Err(Error::Trace(format!("{name}: the file was replaced, renamed or removed during recording{why}").into()))
}

/// Writes function names into a complete trace. Leaves the trace unchanged if symbolization fails.
fn symbolize(
    trace: &Path,
    create: impl FnOnce() -> io::Result<(OutputFile, Box<dyn Sink + Send>)>,
    form: TraceForm,
    write: &WriteOptions,
) {
    let TraceForm { resolution, group_records, plain, .. } = form;
    let heap = HeapOptions { write: write.clone(), resolution, group_records, plain };
    if let Err(error) = write_symbols(trace, create, &heap) {
        print_message(&format!("{}: could not write function names: {error}", trace.display()));
    }
}

fn is_standard_output(path: &Path) -> bool {
    path == Path::new("-")
}

/// Destinations of a recording.
struct Into<'a> {
    output: Option<&'a Path>,
    started: Option<&'a mut dyn FnMut() -> Result<()>>,
    dump: Option<TakeDump<'a>>,
    processes: Option<&'a Processes<'a>>,
}

fn record<'a>(
    options: &Options,
    sink: &mut dyn EventSink,
    analysis: Option<&mut Analysis>,
    known: Known<'a>,
    Into { output, started, dump, processes }: Into<'a>,
) -> Result<Outcome> {
    let output_to_error = options.output.as_deref().is_some_and(is_standard_output);
    let how = RecordOptions {
        flush: rotation::flush(options),
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
        labels: options.label.iter().cloned().collect(),
        stacks: options.stacks(),
        usable: options.usable(),
        processors: options.processors,
        pages: options.pages(),
        resident: !options.no_resident,
        python: options.python.is_some(),
        python_objects: options.python == Some(PythonBlocks::Objects),
        linked_in: known.linked_in.filter(|_| !options.no_linked_in),
        record_linked_in: !options.no_linked_in && options.pid.is_none(),
        when_full: match options.when_full() {
            options::WhenFull::Wait => WhenFull::Wait,
            options::WhenFull::Drop => WhenFull::Drop,
            options::WhenFull::Stop => WhenFull::Stop,
        },
        patience: Duration::from_nanos(options.patience),
        about: about(options, output),
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

/// Runs the program, or records a running process.
fn record_what(options: &Options, sink: &mut dyn EventSink, how: RecordOptions<'_>) -> Result<Outcome> {
    match options.pid {
        Some(process) => hatf_host::record::record_process(process, sink, how),
        None => hatf_host::record::record_with(&options.command, sink, how),
    }
}

/// Returns the trace that an `-o` option among the program's arguments appears to name.
fn trace_among(command: &[OsString]) -> Option<String> {
    let words: Vec<_> = command.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let names = words.iter().enumerate().filter_map(|(place, word)| match word.strip_prefix("--output=") {
        Some(name) => Some(name),
        None if word == "-o" || word == "--output" => words.get(place + 1).map(|name| &**name),
        None => word.strip_prefix("-o"),
    });
    let is_trace = |name: &&str| Path::new(name).extension().is_some_and(|extension| extension == "mtf");
    names.filter(is_trace).map(str::to_owned).next()
}

/// Returns the program's name, from which the trace's name is derived.
fn stem(command: &[OsString]) -> OsString {
    let program = command.first().map(Path::new).and_then(Path::file_name);
    program.unwrap_or(OsStr::new("trace")).to_owned()
}
