//! `hatf recover`

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use hatf::forms::TraceReader;
use hatf::record::{End, FollowedProcess, Recovered, Spooled};
use hatf::{Error, EventSource, Result};
use metatf_cli::{OutputFile, Style, stdout};
use serde_json::{Value, json};

use super::print_message;
use super::record::processes::{LIST, folder_of, trace_of};
use super::record::trace_output::{free_name, of_about, write_whole};

/// Make the trace of a recording that was cut off because `hatf record` was killed, or that had none.
///
/// Events are in a spool from the moment at which they are recorded. What the unfinished trace lacks comes from there. The trace
/// takes the place of the unfinished one, and the spool is removed. So it is for each process that the program made. Without FOLDER the spools
/// are listed that are there.
///
/// A program with an allocator of the crate `hatf-record` makes a spool itself where HATF_OUTPUT names a folder. Of such a spool FOLDER
/// the trace is FOLDER.mtf, or FOLDER.1.mtf if that is there.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf recover
  hatf recover perl.mtf
  hatf recover /dev/shm/hatf-spool-1234-0
  hatf recover /dev/shm/hatf-spool-1234-0 -o perl.mtf")]
pub(crate) struct Recover {
    /// The spool, or the unfinished trace.
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// The trace to write [default: the one that was being recorded, or FOLDER.mtf].
    #[arg(short, long, value_name = "TRACE", requires = "folder")]
    output: Option<PathBuf>,

    /// Leave the spool where it is.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(options: &Recover) -> Result<u8> {
    let Some(given) = &options.folder else { return list() };
    let folder = &spool_of(given)?;
    let spooled = Spooled::open(folder)?;
    let processes = spooled.processes();
    // A process that made its spool itself has said no name.
    let named = spooled.is_standalone() && spooled.about()["output"].is_null();
    let named = options.output.clone().or_else(|| named.then(|| free_name(without_slash(folder).as_os_str())));
    let mut of_program = spooled.about().clone();
    if let Some(output) = named.as_ref().filter(|_| spooled.process().is_none()) {
        of_program["output"] = json!(std::path::absolute(output)?);
    }
    let (trace, recovered) = recover(&spooled, spooled.about().clone(), named.as_deref())?;
    let mut lines = Vec::new();
    for process in &processes {
        let process = spooled.open_process(process)?;
        let own = process.about()["output"].as_str().map(PathBuf::from);
        // A process that nobody saw yet has what was kept for the program.
        let is_seen = own.is_some() && process.about()["output"] != spooled.about()["output"];
        let output = match process.process() {
            Some(which) if named.is_some() || !is_seen => trace_of(&of_program, &which),
            _ => own,
        };
        if let Some(folder) = output.as_deref().and_then(Path::parent) {
            std::fs::create_dir_all(folder).map_err(Error::system(folder.display().to_string()))?;
        }
        let (path, recovered) = recover(&process, process.about().clone(), output.as_deref())?;
        lines.push((path.clone(), line(&process, &path, &recovered)));
        if !options.keep {
            process.remove();
        }
    }
    if spooled.process().is_none() {
        list_recovered(&trace, lines, line(&spooled, &trace, &recovered))?;
    }
    if !options.keep {
        spooled.remove();
    }
    Ok(0)
}

/// Returns the folder of a spool that is named by it, or by the unfinished trace.
fn spool_of(given: &Path) -> Result<PathBuf> {
    if !given.is_file() {
        return Ok(given.to_owned());
    }
    let is_for = |spooled: &Spooled| {
        spooled.about()["output"].as_str().map(Path::new) == std::path::absolute(given).ok().as_deref()
    };
    let named = || {
        Spooled::left_behind().into_iter().find(|folder| Spooled::open(folder).is_ok_and(|spooled| is_for(&spooled)))
    };
    Spooled::of_trace(given).or_else(named).ok_or_else(|| {
        Error::Trace(
            format!("{}: no spool is left of its recording: all that is to be had of it is in it", given.display())
                .into(),
        )
    })
}

/// Returns the path of a folder without a slash at its end.
fn without_slash(folder: &Path) -> PathBuf {
    folder.components().collect()
}

/// Returns what the list of processes has of one.
fn line(spooled: &Spooled, trace: &Path, recovered: &Recovered) -> Value {
    let exit = if let End::Exit(status) = recovered.end { Some(status) } else { None };
    let mut line = json!({
        "number": 1, "command": spooled.command(), "trace": trace.file_name().map(|name| name.to_string_lossy()),
        "began_ns": recovered.began, "exit": exit, "bytes": trace.metadata().map_or(0, |metadata| metadata.len()),
        "events": recovered.events, "lost": recovered.lost, "recovered": true,
    });
    if let Some(FollowedProcess { number, process, parent, .. }) = spooled.process() {
        (line["number"], line["process"], line["parent"]) = (number.into(), process.into(), parent.into());
    }
    line
}

/// Completes the list of processes: those that had ended before are in it. Where the program made none there is no list.
fn list_recovered(trace: &Path, lines: Vec<(PathBuf, Value)>, mut program: Value) -> Result<()> {
    let folder = folder_of(trace);
    if !folder.exists() {
        return Ok(());
    }
    program["trace"] = Path::new("..").join(trace.file_name().unwrap_or_default()).to_string_lossy().into();
    let here = lines.into_iter().filter(|(path, _)| path.parent() == Some(&folder)).map(|(_, line)| line);
    let lines: Vec<_> = here.chain([program]).collect();
    let list = folder.join(LIST);
    let before = fs::read_to_string(&list).unwrap_or_default();
    let is_new = |text: &&str| {
        let number = serde_json::from_str::<Value>(text).map_or(Value::Null, |line| line["number"].clone());
        !number.is_null() && lines.iter().all(|line| line["number"] != number)
    };
    let text: String = before.lines().filter(is_new).map(|line| format!("{line}\n")).collect();
    let text = lines.iter().fold(text, |text, line| format!("{text}{line}\n"));
    let problem = || Error::system(list.display().to_string());
    let (output, mut sink) = OutputFile::create(&list).map_err(problem())?;
    sink.write_all(text.as_bytes()).map_err(problem())?;
    output.keep(sink).map_err(problem())
}

/// Makes the trace of one process, and returns where it is.
fn recover(spooled: &Spooled, about: Value, output: Option<&Path>) -> Result<(PathBuf, Recovered)> {
    let unfinished = about["output"].as_str().map(PathBuf::from);
    let Some(path) = output.map(Path::to_owned).or_else(|| unfinished.clone()) else {
        return Err(Error::Usage("the recording had no file to write to: name one with -o".to_owned()));
    };
    let name = path.display().to_string();
    let (form, write) = of_about(&about);
    let mut unfinished = unfinished.and_then(|path| of_recording(&path, spooled));
    let source = unfinished.as_mut().map(|reader| reader as &mut dyn EventSource);
    let recovered = write_whole(&path, form, &write, |sink| spooled.recover(source, sink))?;
    let (events, lost) = (recovered.events, recovered.lost);
    print_message(&format!(
        "{events} records in {name}, {} of them from the spool, {lost} lost",
        events - recovered.from_trace
    ));
    Ok((path, recovered))
}

/// Opens the unfinished trace, if it is there and is this recording's.
fn of_recording(path: &Path, spooled: &Spooled) -> Option<TraceReader> {
    let open = || TraceReader::open(path).ok();
    let mut reader = open()?;
    // User metadata stand before the first event.
    let _ = reader.next();
    let recording = reader.user_metadata().get("recording").cloned();
    if recording.is_some() && recording.as_ref() == spooled.recording() { open() } else { None }
}

/// Prints the spools that are there.
fn list() -> Result<u8> {
    let mut out = stdout(Style::Text);
    let folders = Spooled::left_behind();
    for folder in &folders {
        match Spooled::open(folder) {
            Ok(spooled) => {
                let output = spooled.about()["output"].as_str().unwrap_or("no file").to_owned();
                writeln!(out, "{}: {}, for {output}", folder.display(), spooled.program())?;
            }
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    if folders.is_empty() {
        writeln!(out, "no spool was left behind")?;
    }
    out.flush()?;
    Ok(0)
}
