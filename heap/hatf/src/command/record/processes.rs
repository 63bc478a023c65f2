//! The traces of processes that a recorded program creates, in a directory that also contains a list of them.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hatf_host::record::{
    DumpInto, End, FollowedOutcome, FollowedProcess, Follower, LinkedIn, Outcome, PythonVersion, RecordInto, Recorded,
    UnrecordedProgram, path_from_json, path_to_json,
};
use hatf_trace::{Error, Result};
use metatf::container::WriteOptions;
use metatf_cli::OutputFolder;
use serde_json::{Value, json};

use super::options::Record as Options;
use super::rotation::Rotation;
use super::trace_output::{TraceForm, TraceWriter, about, about_output, dump, folder_of, full};
use crate::command::print_message;

/// Name of the process list in the directory.
pub(crate) const LIST: &str = "processes.jsonl";
/// Maximum number of characters of the program's name in a trace's name.
const NAME_MAX: usize = 60;

/// Returns the name of a process's trace, built from its number and its program. A directory of segments has no file
/// extension.
pub(super) fn trace_name(process: &FollowedProcess, is_rotated: bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    let name: String = process.name().chars().map(plain).take(NAME_MAX).collect();
    let extension = if is_rotated { "" } else { ".mtf" };
    format!("{}-{name}{extension}", process.number)
}

/// A receiver of the events of processes that the program creates.
pub(super) struct Processes<'a> {
    options: &'a Options,
    trace: &'a Path,
    write: &'a WriteOptions,
    folder: PathBuf,
    written: Mutex<Written>,
}

/// The open directory and its process list.
struct Opened {
    folder: OutputFolder,
    list: File,
}

#[derive(Default)]
struct Written {
    /// The directory. `None` until the first process exists.
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
    became: Vec<UnrecordedProgram>,
    unrecorded: Vec<LinkedIn>,
    pythons: Vec<PythonVersion>,
    /// Names of complete traces.
    traces: Vec<String>,
}

impl<'a> Processes<'a> {
    /// Creates a receiver for the processes of the program recorded in this trace.
    pub(super) fn new(options: &'a Options, trace: &'a Path, write: &'a WriteOptions) -> Self {
        Self { options, trace, write, folder: folder_of(trace), written: Mutex::default() }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the output directory. The first call creates it and removes the traces of any earlier recording.
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

    /// Returns the name of a process's trace in the directory.
    fn name(&self, process: &FollowedProcess) -> String {
        trace_name(process, self.options.rotate.is_some())
    }

    /// Records a process to the file of this name in the directory. Returns the outcome, the error in completing the
    /// trace, if there was one, and the size of the trace.
    fn write(
        &self,
        folder: &OutputFolder,
        file: &str,
        name: &str,
        record: RecordInto<'_>,
    ) -> Result<(FollowedOutcome, Result<()>, u64)> {
        let problem = || Error::system(name.to_owned());
        let (mut output, mut sink) = folder.file(file.as_ref()).map_err(problem())?;
        let cause =
            |failed: Option<io::Error>, error| full(failed.map_or_else(|| about_output(name, error), problem()));
        let form = TraceForm::of(self.options);
        let (recorded, finished) = {
            let mut trace =
                TraceWriter::new(&mut *sink, form, self.write).map_err(|error| cause(output.error(), error))?;
            output.appear().map_err(problem())?;
            let recorded = record(trace.sink());
            (recorded, trace.finish())
        };
        let mut outcome = recorded?;
        let finished = finished.and_then(|()| sink.flush().and_then(|()| output.sync()).map_err(problem()));
        let finished = match (finished, outcome.recorded.sink_error.take(), output.error()) {
            (Ok(()), None, None) => Ok(()),
            (Err(error), _, failed) | (Ok(()), Some(error), failed) => Err(cause(failed, error)),
            (Ok(()), None, Some(failed)) => Err(full(problem()(failed))),
        };
        Ok((outcome, finished, output.bytes().unwrap_or(0)))
    }

    /// Returns the part of a command to list, which is only the program if arguments are private.
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

    /// Returns the number of recorded allocation calls.
    pub(super) fn allocations(&self) -> u64 {
        self.written().allocations
    }

    /// Returns the number of lost events.
    pub(super) fn lost(&self) -> u64 {
        self.written().lost
    }

    /// Returns the number of processes without stacks although stacks were requested.
    pub(super) fn stackless(&self) -> u64 {
        self.written().stackless
    }

    /// Returns the number of stacks for which there was no space.
    pub(super) fn stacks_missed(&self) -> u64 {
        self.written().stacks_missed
    }

    /// Returns the number of calls whose stack has a single frame.
    pub(super) fn single_frames(&self) -> u64 {
        self.written().single_frames
    }

    /// Returns the number of processes that executed a program without loading the recorder.
    pub(super) fn left(&self) -> u64 {
        self.written().left
    }

    /// Returns these programs, as far as known.
    pub(super) fn became(&self) -> Vec<UnrecordedProgram> {
        self.written().became.clone()
    }

    /// Returns the statically linked allocators whose calls were not recorded, once for each process.
    pub(super) fn unrecorded(&self) -> Vec<LinkedIn> {
        self.written().unrecorded.clone()
    }

    /// Returns the complete traces as pairs of directory and name.
    pub(super) fn traces(&self) -> Vec<(OutputFolder, String)> {
        let written = self.written();
        let folder = written.opened.iter().map(|opened| &opened.folder).cycle();
        folder.cloned().zip(written.traces.iter().cloned()).collect()
    }

    /// Returns the Python versions of the processes.
    pub(super) fn pythons(&self) -> Vec<PythonVersion> {
        self.written().pythons.clone()
    }

    /// Returns a summary line, or `None` if the program created no processes.
    pub(super) fn summary(&self) -> Option<String> {
        let written = self.written();
        let Written { processes, events, bytes, lost, .. } = *written;
        let folder = self.folder.display();
        let what = if processes == 1 { "process" } else { "processes" };
        (processes > 0)
            .then(|| format!("{processes} more {what}: {events} records, {bytes} bytes in {folder}, {lost} lost"))
    }

    /// Adds the program itself to the list. If it created no processes, there is neither a list nor a directory.
    ///
    /// # Errors
    /// Returns an error if the list could not be written.
    pub(super) fn finish(&self, outcome: &Outcome) -> Result<()> {
        if self.written().opened.is_none() {
            if let Ok(folder) = OutputFolder::open_own(&self.folder) {
                remove_earlier(&folder);
                // This succeeds only if the directory is empty.
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
        about(self.options, Some(&self.folder.join(self.name(process))))
    }

    fn follow(&self, process: &FollowedProcess, record: RecordInto<'_>) -> Result<()> {
        let folder = self.folder()?;
        let file = self.name(process);
        let name = self.folder.join(&file).display().to_string();
        let problem = || Error::system(name.clone());
        let (outcome, finished, bytes) = if self.options.rotate.is_some() {
            let segments = folder.folders([&file]).map_err(problem())?;
            let mut rotation = Rotation::new(&segments, self.options, self.write)?;
            let outcome = record(&mut rotation)?;
            let finished = if outcome.recorded.sink_error.is_none() { rotation.finish() } else { Ok(0) };
            let bytes = *finished.as_ref().unwrap_or(&0);
            (outcome, finished.map(drop), bytes)
        } else {
            self.write(&folder, &file, &name, record)?
        };
        let failure = outcome.recorded.sink_error.is_some() || finished.is_err();
        let process = &outcome.process;
        // An incomplete trace keeps the name stored next to its spool.
        let named = if failure { file.clone() } else { self.name(process) };
        folder.rename(file.as_ref(), named.as_ref()).map_err(problem())?;
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
            written.became.extend(outcome.recorded.became.clone());
            written.unrecorded.extend(outcome.recorded.unrecorded.iter().cloned());
            written.pythons.extend(outcome.recorded.python);
            written.traces.extend((!failure).then_some(named));
        }
        let listed = self.list(line, &outcome.recorded);
        if !failure {
            return listed;
        }
        let error = finished.err().or(outcome.recorded.sink_error);
        Err(error.map_or_else(|| full(problem()(io::ErrorKind::Other.into())), full))
    }

    fn dump(&self, process: &FollowedProcess, _: u32, give: DumpInto<'_>) {
        // The directory already exists, because it was created for the process's trace.
        if let Ok(folder) = self.folder() {
            dump(self.options, &folder, self.name(process).as_ref(), self.write, give);
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

/// Removes an earlier recording's process list, and the traces named in it, from a directory. Keeps all other files.
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

/// Returns the path of a process's trace, derived from the data stored for the program.
pub(crate) fn trace_of(program: &Value, process: &FollowedProcess) -> Option<PathBuf> {
    let name = trace_name(process, program["rotated"] == true);
    path_from_json(&program["output"]).map(|trace| folder_of(&trace).join(name))
}
