//! The traces of processes that a recorded program makes: a folder of them, and a list.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hatf::record::{
    DumpInto, End, FollowedProcess, Follower, Outcome, PythonVersion, RecordInto, Recorded, path_from_json,
    path_to_json,
};
use hatf::{Error, Result};
use metatf::container::WriteOptions;
use metatf_cli::OutputFolder;
use serde_json::{Value, json};

use super::options::Record as Options;
use super::trace_output::{TraceForm, TraceWriter, about, about_output, dump, full};
use crate::command::print_message;

/// The list of processes, in their folder.
pub(crate) const LIST: &str = "processes.jsonl";
/// Characters of a program's name in the name of its trace.
const NAME_MAX: usize = 60;

/// Returns the folder beside a trace that has those of processes that its program made.
pub(crate) fn folder_of(trace: &Path) -> PathBuf {
    if trace.extension().is_some_and(|extension| extension == "mtf") {
        return trace.with_extension("processes");
    }
    let mut name = trace.as_os_str().to_owned();
    name.push(".processes");
    name.into()
}

/// Returns the name of a process's trace: its number and its program.
pub(super) fn trace_name(process: &FollowedProcess) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = process.name().chars().map(plain).take(NAME_MAX).collect();
    format!("{}-{name}.mtf", process.number)
}

/// Takes the events of processes that the program makes.
pub(super) struct Processes<'a> {
    options: &'a Options,
    trace: &'a Path,
    write: &'a WriteOptions,
    folder: PathBuf,
    written: Mutex<Written>,
}

/// The folder, and the list in it.
struct Opened {
    folder: OutputFolder,
    list: File,
}

#[derive(Default)]
struct Written {
    /// The folder, once there is a process.
    opened: Option<Opened>,
    processes: u64,
    events: u64,
    allocations: u64,
    bytes: u64,
    lost: u64,
    stackless: u64,
    stacks_missed: u64,
    single_frames: u64,
    left: u64,
    programs: BTreeSet<PathBuf>,
    pythons: Vec<PythonVersion>,
    /// The names of those that are whole.
    traces: Vec<String>,
}

impl<'a> Processes<'a> {
    /// Makes one for the processes of the program that is recorded into this trace.
    pub(super) fn new(options: &'a Options, trace: &'a Path, write: &'a WriteOptions) -> Self {
        Self { options, trace, write, folder: folder_of(trace), written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folder, which is made for the first process. Traces that an earlier recording has put there are removed.
    fn folder(&self) -> Result<OutputFolder> {
        let mut written = self.written();
        if let Some(opened) = &written.opened {
            return Ok(opened.folder.clone());
        }
        let folder =
            OutputFolder::create_own(&self.folder).map_err(Error::system(self.folder.display().to_string()))?;
        remove_earlier(&folder);
        let list =
            folder.new_file(LIST.as_ref()).map_err(Error::system(self.folder.join(LIST).display().to_string()))?;
        written.opened = Some(Opened { folder: folder.clone(), list });
        Ok(folder)
    }

    /// Returns what the list has of a command.
    fn shown<'c>(&self, command: &'c [String]) -> &'c [String] {
        if self.options.private { command.get(..1).unwrap_or_default() } else { command }
    }

    /// Adds a process to the list.
    fn list(&self, line: Value, recorded: &Recorded) -> Result<()> {
        let mut line = line;
        line["events"] = recorded.events.into();
        line["lost"] = recorded.lost.into();
        line["duration_ns"] = u64::try_from(recorded.duration.as_nanos()).unwrap_or(u64::MAX).into();
        let mut written = self.written();
        let text = format!("{line}\n");
        let name = self.folder.join(LIST).display().to_string();
        let listed = written.opened.as_mut().map_or(Ok(()), |opened| opened.list.write_all(text.as_bytes()));
        listed.map_err(Error::system(name))
    }

    /// Returns how many calls that allocate were recorded.
    pub(super) fn allocations(&self) -> u64 {
        self.written().allocations
    }

    /// Returns how many processes have no stacks though they were asked for.
    pub(super) fn stackless(&self) -> u64 {
        self.written().stackless
    }

    /// Returns how many stacks there was no room for.
    pub(super) fn stacks_missed(&self) -> u64 {
        self.written().stacks_missed
    }

    /// Returns how many calls have a stack of one frame.
    pub(super) fn single_frames(&self) -> u64 {
        self.written().single_frames
    }

    /// Returns how many have become programs that did not load the recorder.
    pub(super) fn left(&self) -> u64 {
        self.written().left
    }

    /// Returns the files of their images.
    pub(super) fn programs(&self) -> BTreeSet<PathBuf> {
        self.written().programs.clone()
    }

    /// Returns the traces that are whole: their folder, and their names in it.
    pub(super) fn traces(&self) -> Vec<(OutputFolder, String)> {
        let written = self.written();
        let folder = written.opened.iter().map(|opened| &opened.folder).cycle();
        folder.cloned().zip(written.traces.iter().cloned()).collect()
    }

    /// Returns the versions of Python that processes have.
    pub(super) fn pythons(&self) -> Vec<PythonVersion> {
        self.written().pythons.clone()
    }

    /// Returns a line that says what there is; `None` where the program made no process.
    pub(super) fn summary(&self) -> Option<String> {
        let written = self.written();
        let Written { processes, events, bytes, lost, .. } = *written;
        let folder = self.folder.display();
        let what = if processes == 1 { "process" } else { "processes" };
        (processes > 0)
            .then(|| format!("{processes} more {what}: {events} records, {bytes} bytes in {folder}, {lost} lost"))
    }

    /// Adds the program itself to the list. Where it made no process, there is none, and no folder.
    ///
    /// # Errors
    /// The list could not be written.
    pub(super) fn finish(&self, outcome: &Outcome) -> Result<()> {
        if self.written().opened.is_none() {
            if let Ok(folder) = OutputFolder::open_own(&self.folder) {
                remove_earlier(&folder);
                // If nothing else is in it.
                let _ = fs::remove_dir(&self.folder);
            }
            return Ok(());
        }
        let command: Vec<_> = self.options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (status, signal) = (outcome.status.code(), outcome.status.signal());
        let trace = Path::new("..").join(self.trace.file_name().unwrap_or_default());
        let line = json!({
            "number": 1, "command": self.shown(&command), "trace": path_to_json(&trace), "began_ns": 0, "exit": status, "signal": signal,
        });
        self.list(line, &outcome.recorded)?;
        let written = self.written();
        let synced = written.opened.as_ref().map_or(Ok(()), |Opened { folder, list }| {
            list.sync_all()?;
            folder.sync()
        });
        synced.map_err(Error::system(self.folder.display().to_string()))
    }
}

impl Follower for Processes<'_> {
    fn about(&self, process: &FollowedProcess) -> Value {
        about(self.options, Some(&self.folder.join(trace_name(process))))
    }

    fn follow(&self, process: &FollowedProcess, record: RecordInto<'_>) -> Result<()> {
        let folder = self.folder()?;
        let file = trace_name(process);
        let name = self.folder.join(&file).display().to_string();
        let problem = || Error::system(name.clone());
        let (mut output, mut sink) = folder.file(file.as_ref()).map_err(problem())?;
        let cause =
            |failed: Option<io::Error>, error| full(failed.map_or_else(|| about_output(&name, error), problem()));
        let form = TraceForm::of(self.options);
        let (recorded, finished) = {
            let mut trace =
                TraceWriter::new(&mut *sink, form, self.write).map_err(|error| cause(output.error(), error))?;
            output.appear().map_err(problem())?;
            let recorded = record(trace.sink());
            (recorded, trace.finish())
        };
        let outcome = recorded?;
        let finished = finished.and_then(|()| sink.flush().and_then(|()| output.sync()).map_err(problem()));
        let failure = outcome.recorded.sink_error.is_some() || finished.is_err() || output.error().is_some();
        let process = &outcome.process;
        // One that is to be completed keeps the name that is noted beside its spool.
        let named = if failure { file.clone() } else { trace_name(process) };
        folder.rename(file.as_ref(), named.as_ref()).map_err(problem())?;
        let bytes = output.bytes().unwrap_or(0);
        let exit = match outcome.end {
            End::Exit(status) => Some(status),
            End::Status(_) | End::Unknown => None,
        };
        let line = json!({
            "number": process.number, "process": process.process, "parent": process.parent, "command": self.shown(&process.command),
            "trace": named, "began_ns": outcome.began, "exit": exit, "bytes": bytes,
        });
        {
            let mut written = self.written();
            written.processes += 1;
            written.events += outcome.recorded.events;
            written.allocations += outcome.recorded.allocations;
            written.bytes += bytes;
            written.lost += outcome.recorded.lost;
            written.stackless += u64::from(outcome.recorded.stackless);
            written.stacks_missed += outcome.recorded.stacks_missed;
            written.single_frames += outcome.recorded.single_frames;
            written.left += u64::from(outcome.recorded.left);
            written.programs.extend(outcome.recorded.programs.iter().cloned());
            written.pythons.extend(outcome.recorded.python);
            written.traces.extend((!failure).then_some(named));
        }
        let listed = self.list(line, &outcome.recorded);
        if !failure {
            return listed;
        }
        let error = finished.err().or(outcome.recorded.sink_error);
        Err(error.map_or_else(|| full(problem()(io::ErrorKind::Other.into())), |error| cause(output.error(), error)))
    }

    fn dump(&self, process: &FollowedProcess, _: u32, give: DumpInto<'_>) {
        // Made for its trace.
        if let Ok(folder) = self.folder() {
            dump(self.options, &folder, trace_name(process).as_ref(), self.write, give);
        }
    }

    fn others_go_on(&self, processes: usize) {
        let what = if processes == 1 { "a process it created is" } else { "processes it created are" };
        let number = if processes == 1 { String::new() } else { format!("{processes} ") };
        print_message(&format!(
            "the program has ended, but {number}{what} still running: press Ctrl-C to end the recording"
        ));
    }
}

/// Removes what an earlier recording has put into a folder: traces that its list names, and the list. All else stays.
fn remove_earlier(folder: &OutputFolder) {
    let mut text = String::new();
    let _ = folder.read(LIST.as_ref()).and_then(|mut list| list.read_to_string(&mut text));
    let traces = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for trace in traces.filter_map(|line| line["trace"].as_str().map(str::to_owned)) {
        let is_ours = trace.split_once('-').is_some_and(|(number, name)| {
            number.bytes().all(|byte| byte.is_ascii_digit()) && name.ends_with(".mtf") && !name.contains('/')
        });
        if is_ours {
            folder.remove(trace.as_ref());
        }
    }
    folder.remove(LIST.as_ref());
}

/// Returns where the trace of a process goes by what is kept of the program's.
pub(crate) fn trace_of(program: &Value, process: &FollowedProcess) -> Option<PathBuf> {
    path_from_json(&program["output"]).map(|trace| folder_of(&trace).join(trace_name(process)))
}
