//! `hatf recover`: completes the traces of interrupted recordings.

use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use hatf_host::record::{End, FollowedProcess, Recovered, Spooled, path_from_json, path_to_json};
use hatf_trace::event::{SEGMENT, UserMetadata};
use hatf_trace::forms::{self, Segments, TraceReader};
use hatf_trace::{Error, EventSource, Result};
use metatf_cli::{OutputFile, OutputFolder, Style, stdout};
use serde_json::{Value, json};

use super::print_message;
use super::record::processes::{LIST, trace_of};
use super::record::trace_output::folder_of;
use super::record::trace_output::{WrittenTrace, free_name, of_about};

/// Complete the trace of a recording that was interrupted because `hatf record` was killed, or create it if none was
/// written.
///
/// Every event is written to the spool as it is recorded, so events missing from the unfinished trace are recovered
/// from there. The completed trace replaces the unfinished one, and the spool is removed. This is done for every
/// process of the recording. Without DIR, the command lists the available spools.
///
/// A program that uses an allocator of the crate `hatf-record` creates its spool itself if HATF_OUTPUT names a
/// directory. The trace of such a spool DIR is DIR.mtf, or DIR.1.mtf if that file exists.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf recover
  hatf recover perl.mtf
  hatf recover /dev/shm/hatf-spool-1234-0
  hatf recover /dev/shm/hatf-spool-1234-0 -o perl.mtf")]
pub(crate) struct Recover {
    /// Spool directory or unfinished trace.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Trace to write [default: the unfinished trace, or DIR.mtf].
    #[arg(short, long, value_name = "TRACE", requires = "folder")]
    output: Option<PathBuf>,

    /// Keep the spool.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(options: &Recover) -> Result<u8> {
    let Some(given) = &options.folder else { return list() };
    let folder = &spool_of(given)?;
    let spooled = Spooled::open(folder)?;
    let processes = spooled.processes()?;
    // A process that created its own spool specifies no trace name, so choose one.
    let named = spooled.is_standalone() && spooled.about()["output"].is_null();
    let named = options.output.clone().or_else(|| named.then(|| free_name(without_slash(folder).as_os_str())));
    let mut of_program = spooled.about().clone();
    if let Some(output) = named.as_ref().filter(|_| spooled.process().is_none()) {
        of_program["output"] = path_to_json(&std::path::absolute(output)?);
    }
    let own = path_from_json(&spooled.about()["output"]);
    let program = recover(&spooled, None, named.clone().or(own), named.is_some())?;
    let mut is_complete = program.is_complete();
    let mut lines = Vec::new();
    for process in &processes {
        let process = spooled.open_process(process)?;
        let own = path_from_json(&process.about()["output"]);
        // If the recorder was killed before it noticed the process, the data stored for the process is a copy of the
        // program's data.
        let is_seen = own.is_some() && process.about()["output"] != spooled.about()["output"];
        let output = match process.process() {
            Some(which) if named.is_some() || !is_seen => trace_of(&of_program, &which),
            _ => own,
        };
        let folder = output
            .as_deref()
            .and_then(Path::parent)
            .map(|folder| OutputFolder::create_own(folder).map_err(Error::system(folder.display().to_string())));
        let made = recover(&process, folder.transpose()?.as_ref(), output, named.is_some())?;
        is_complete &= made.is_complete();
        lines.push((made.path.clone(), line(&process, &made)));
        if !options.keep && made.recovered.is_all_read() {
            process.remove();
        }
    }
    if spooled.process().is_none() {
        list_recovered(&program.path, lines, line(&spooled, &program))?;
    }
    if !options.keep && program.recovered.is_all_read() {
        spooled.remove();
    }
    Ok((!is_complete).into())
}

/// A recovered trace.
struct Made {
    path: PathBuf,
    recovered: Recovered,
}

impl Made {
    /// Returns whether the trace contains all events of the spool and of the unfinished trace.
    fn is_complete(&self) -> bool {
        self.recovered.is_all_read() && self.recovered.missing == 0
    }
}

/// Returns the directory of a spool, given the directory itself or the unfinished trace.
fn spool_of(given: &Path) -> Result<PathBuf> {
    let segment = Segments::list(given).ok().and_then(|segments| current_segment(given, &segments));
    let unfinished = segment.as_deref().unwrap_or(given);
    if !unfinished.is_file() {
        return Ok(given.to_owned());
    }
    let is_for = |spooled: &Spooled| path_from_json(&spooled.about()["output"]) == std::path::absolute(given).ok();
    let named = || {
        Spooled::left_behind().into_iter().find(|folder| Spooled::open(folder).is_ok_and(|spooled| is_for(&spooled)))
    };
    Spooled::of_trace(unfinished).or_else(named).ok_or_else(|| {
        Error::Trace(
            format!("{}: its spool no longer exists, so no further events can be recovered", given.display()).into(),
        )
    })
}

/// Returns the file of the segment that the recording was writing.
fn current_segment(folder: &Path, segments: &Segments) -> Option<PathBuf> {
    // Later unfinished segments contain only the live state, because the earlier one was not completed.
    let unfinished = segments.unfinished.first().map(|number| Segments::unfinished_name(*number));
    let complete = || segments.complete.last().map(|number| Segments::name(*number));
    unfinished.or_else(complete).map(|name| folder.join(name))
}

/// Returns the total size of the files of a trace.
fn bytes_of(path: &Path) -> u64 {
    let segments = Segments::list(path).map(|segments| segments.complete).unwrap_or_default();
    let files = segments.into_iter().map(|number| path.join(Segments::name(number)));
    let files = files.chain(path.is_file().then(|| path.to_owned()));
    files.map(|file| file.metadata().map_or(0, |metadata| metadata.len())).sum()
}

/// Returns the path of a directory without a trailing slash.
fn without_slash(folder: &Path) -> PathBuf {
    folder.components().collect()
}

/// Returns the entry of the process list for a process.
fn line(spooled: &Spooled, Made { path, recovered }: &Made) -> Value {
    let exit = if let End::Exit(status) = recovered.end { Some(status) } else { None };
    let mut line = json!({
        "number": 1, "command": spooled.command(), "trace": path.file_name().map(|name| path_to_json(name.as_ref())),
        "began_ns": recovered.began, "exit": exit, "bytes": bytes_of(path),
        "events": recovered.events, "lost": recovered.lost, "recovered": true,
    });
    if let Some(FollowedProcess { number, process, parent, .. }) = spooled.process() {
        (line["number"], line["process"], line["parent"]) = (number.into(), process.into(), parent.into());
    }
    line
}

/// Adds recovered processes to the process list, which already contains the processes that ended earlier. There is no
/// list if the program created no processes.
fn list_recovered(trace: &Path, lines: Vec<(PathBuf, Value)>, mut program: Value) -> Result<()> {
    let folder = folder_of(trace);
    if !folder.exists() {
        return Ok(());
    }
    program["trace"] = path_to_json(&Path::new("..").join(trace.file_name().unwrap_or_default()));
    let here = lines.into_iter().filter(|(path, _)| path.parent() == Some(&folder)).map(|(_, line)| line);
    let lines: Vec<_> = here.chain([program]).collect();
    let list = folder.join(LIST);
    let problem = || Error::system(list.display().to_string());
    let folder = OutputFolder::open_own(&folder).map_err(Error::system(folder.display().to_string()))?;
    let mut before = String::new();
    match folder.read(LIST.as_ref()).and_then(|mut file| file.read_to_string(&mut before)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(problem()(error)),
        _ => {}
    }
    let is_new = |text: &&str| {
        let number = serde_json::from_str::<Value>(text).map_or(Value::Null, |line| line["number"].clone());
        !number.is_null() && lines.iter().all(|line| line["number"] != number)
    };
    let text: String = before.lines().filter(is_new).map(|line| format!("{line}\n")).collect();
    let text = lines.iter().fold(text, |text, line| format!("{text}{line}\n"));
    let (output, mut sink) = folder.file(LIST.as_ref()).map_err(problem())?;
    sink.write_all(text.as_bytes()).map_err(problem())?;
    output.keep(sink).map_err(problem())
}

/// Writes the trace of one process and returns its path and statistics. `folder` is the directory of the process
/// traces, or `None` for the program itself. `is_named` indicates whether the user specified the output name.
fn recover(spooled: &Spooled, folder: Option<&OutputFolder>, output: Option<PathBuf>, is_named: bool) -> Result<Made> {
    let about = spooled.about();
    let unfinished = path_from_json(&about["output"]);
    let Some(trace) = output else {
        return Err(Error::Usage("the recording had no output file: specify one with -o".to_owned()));
    };
    // The recording of segments continues with the segment that was being written.
    let is_rotated = about["rotated"] == true;
    let segments =
        unfinished.as_deref().filter(|_| is_rotated).map(|folder| Segments::list(folder).unwrap_or_default());
    let unfinished = match (&unfinished, &segments) {
        (Some(folder), Some(segments)) => {
            Some(current_segment(folder, segments).unwrap_or_else(|| folder.join(Segments::unfinished_name(1))))
        }
        _ => unfinished,
    };
    let is_segment = is_rotated && !is_named;
    let path = match &unfinished {
        Some(unfinished) if is_segment => unfinished.with_extension("mtf"),
        _ => trace.clone(),
    };
    let (form, write) = of_about(about);
    let mut reader = unfinished.as_deref().map(|path| of_recording(path, spooled)).transpose()?.flatten();
    let is_same = is_segment || unfinished.as_deref() == Some(&*std::path::absolute(&path)?);
    let is_unfinished = reader.is_some() && is_same;
    let is_first = is_segment && reader.is_none();
    let source = reader.as_mut().map(|reader| reader as &mut dyn EventSource);
    let own = match (&path, folder) {
        (path, Some(_)) if is_segment => {
            let folder = path.parent().unwrap_or(path);
            Some(OutputFolder::create_own(folder).map_err(Error::system(folder.display().to_string()))?)
        }
        _ => None,
    };
    let opened = match own.as_ref().or(folder) {
        Some(folder) => folder.file(path.file_name().unwrap_or_default()),
        None => OutputFile::create(&path),
    };
    let (recovered, written) = WrittenTrace::write(&path, opened, form, &write, |sink| {
        if is_first {
            let first = json!({"number": 1, "carried_records": 0, "carried_blocks": 0, "carried_bytes": 0});
            sink.user_metadata(&UserMetadata::from_iter([(SEGMENT.to_owned(), first)]))?;
        }
        spooled.recover(source, sink)
    })?;
    // Do not overwrite an unfinished trace that may be needed again, nor another trace that has taken the name in the
    // meantime.
    let is_taken = if is_unfinished { !recovered.is_all_read() } else { !is_named && path.exists() };
    let path = if is_taken { free_name(path.with_extension("").as_os_str()) } else { path };
    written.keep_as(&path)?;
    if let (Some(segments), Some(folder)) = (segments.filter(|_| is_segment && !is_taken), path.parent()) {
        for number in segments.unfinished {
            let _ = std::fs::remove_file(folder.join(Segments::unfinished_name(number)));
        }
    }
    let (events, lost, name) = (recovered.events, recovered.lost, path.display());
    let most = if recovered.unreadable > 0 { "at most " } else { "" };
    print_message(&format!(
        "{events} records in {name}, {} of them from the spool, {most}{lost} lost",
        events - recovered.from_trace
    ));
    if recovered.missing > 0 {
        let missing = recovered.missing;
        print_message(&format!("{missing} of the lost records were in the unfinished trace before it was corrupted"));
    }
    if !recovered.is_all_read() {
        let what = if recovered.unreadable > 0 { "the spool" } else { "the stacks in the spool" };
        let spool = spooled.folder().display();
        print_message(&format!("part of {what} cannot be read; {spool} is left unchanged for another attempt"));
    }
    Ok(Made { path: if is_segment { trace } else { path }, recovered })
}

/// Opens the unfinished trace, if it exists and belongs to this recording.
///
/// # Errors
/// Returns an error if the file cannot be read.
fn of_recording(path: &Path, spooled: &Spooled) -> Result<Option<TraceReader>> {
    let mut reader = match forms::open(path, &super::open_options(None, |_| ())) {
        Ok(reader) => reader,
        Err(Error::System(_, error)) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.is_of_system() => return Err(error),
        Err(_) => return Ok(None),
    };
    // Read the first event, because user metadata precedes it. If the content is corrupt, the metadata may still
    // identify the recording. If the file cannot be read, fail, because another attempt may succeed.
    if let Err(error) = reader.next()
        && error.is_of_system()
    {
        return Err(Error::Trace(format!("{}: {error}", path.display()).into()));
    }
    let recording = reader.user_metadata().get("recording").cloned();
    let is_same = recording.is_some() && recording.as_ref() == spooled.recording();
    is_same.then(|| forms::open(path, &super::open_options(None, |_| ()))).transpose()
}

/// Prints the available spools.
fn list() -> Result<u8> {
    let mut out = stdout(Style::Text);
    let folders = Spooled::left_behind();
    for folder in &folders {
        match Spooled::open(folder) {
            Ok(spooled) => {
                let output = path_from_json(&spooled.about()["output"]);
                let output = output.map_or_else(|| "no file".to_owned(), |output| output.display().to_string());
                writeln!(out, "{}: {}, for {output}", folder.display(), spooled.program())?;
            }
            Err(error) => writeln!(out, "{error}")?,
        }
    }
    if folders.is_empty() {
        writeln!(out, "there are no spools to recover")?;
    }
    out.flush()?;
    Ok(0)
}
