//! `hatf record`

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hatf::analysis::Analysis;
use hatf::event::{Tee, UserMetadata};
use hatf::hatf10::Hatf10Writer;
use hatf::heap::{HeapOptions, HeapWriter};
use hatf::record::Outcome;
use hatf::{Error, Event, EventSink, Result, trace};
use metatf::container::{FlushEvery, WriteOptions};

use super::{Record as Options, TraceFormat, print_message};

/// The exit status where recording failed.
const FAILED: u8 = 125;

/// Runs the command. What is no error of the program to run gets a status of its own, as that of the program is passed on.
pub(crate) fn run(options: &Options) -> Result<u8> {
    match run_program(options) {
        Err(error @ (Error::System(..) | Error::Trace(_))) => {
            print_message(&error.to_string());
            Ok(FAILED)
        }
        result => result,
    }
}

fn run_program(options: &Options) -> Result<u8> {
    let mut analysis = options.report.then(Analysis::new);
    let named = || options.output.clone().unwrap_or_else(|| free_name(&options.command));
    let output = (!options.no_trace).then(named);
    let outcome = match &output {
        Some(path) => to_file(options, path, analysis.as_mut())?,
        None => {
            let outcome = record(options, &mut NullSink, analysis.as_mut())?;
            print_summary(options, &outcome, None);
            outcome
        }
    };
    if let Some(analysis) = analysis {
        hatf::report::text(&analysis.finish(), &mut io::stderr().lock())?;
    }
    let code = outcome.exit_code();
    if let Some(error) = outcome.sink_error {
        let error = match &output {
            Some(path) => error_of_output(path, error),
            None => error,
        };
        print_message(&format!("the trace is not complete: {error}"));
        return Ok(if code == 0 { FAILED } else { code });
    }
    Ok(code)
}

fn to_file(options: &Options, path: &Path, analysis: Option<&mut Analysis>) -> Result<Outcome> {
    let mut file = trace::create(path)?;
    let named = |error| error_of_output(path, error);
    // The recorder says when.
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.profile.apply(&mut write);
    let (recorded, finished) = match options.format {
        TraceFormat::Heap => {
            let heap = HeapOptions { write, resolution: options.clock, group_records: options.group };
            let mut trace = HeapWriter::new(&mut file, &heap).map_err(named)?;
            (record(options, &mut trace, analysis), trace.finish())
        }
        TraceFormat::Hatf10 => {
            let mut trace = Hatf10Writer::new(&mut file, &write).map_err(named)?;
            (record(options, &mut trace, analysis), trace.finish())
        }
    };
    // Where the program never ran, an empty trace helps nobody.
    let outcome = recorded.inspect_err(|_| drop(std::fs::remove_file(path)))?;
    finished.map_err(named)?;
    let bytes = trace::written(file, path)?;
    print_summary(options, &outcome, Some((path, bytes)));
    Ok(outcome)
}

/// Gives an error of a trace's writer the trace's name.
fn error_of_output(path: &Path, error: Error) -> Error {
    match error {
        Error::System(_, error) => Error::System(path.display().to_string(), error),
        other => Error::Trace(format!("{}: {other}", path.display()).into()),
    }
}

fn record(options: &Options, sink: &mut dyn EventSink, analysis: Option<&mut Analysis>) -> Result<Outcome> {
    let (command, flush) = (&options.command, options.flush.map(Duration::from_secs));
    match analysis {
        None => hatf::record::record_flushing(command, sink, flush),
        Some(analysis) => hatf::record::record_flushing(command, &mut Tee(sink, analysis), flush),
    }
}

/// Prints the summary line, and warnings.
fn print_summary(options: &Options, outcome: &Outcome, file: Option<(&Path, u64)>) {
    if let Some(warning) = outcome.warning() {
        print_message(&warning);
    }
    if options.quiet {
        return;
    }
    let mut line = format!("{} events", outcome.events);
    if let Some((path, bytes)) = file {
        line += &format!(", {bytes} bytes in {}", path.display());
    }
    line += &format!(", {} lost", outcome.lost);
    if outcome.children > 0 {
        line += &format!(", {} child processes not recorded", outcome.children);
    }
    if let Some(signal) = outcome.status.signal() {
        line += &format!("; the program was ended by signal {signal}");
    }
    print_message(&line);
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
