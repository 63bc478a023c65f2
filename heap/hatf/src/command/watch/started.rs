//! The recording that `hatf watch` starts. `hatf record` runs in its own session, so that it continues when the user
//! leaves the screen or closes the terminal.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Process, Stdio};
use std::time::Duration;

use hatf_trace::{Error, Result};
use metatf_cli::{OutputFolder, without_colours};

use crate::command::record::trace_output::free_name;

/// Number of bytes to inspect at the end of the program's output.
const TAIL: u64 = 64 << 10;
/// Interval at which to check whether the trace exists.
const LOOK: Duration = Duration::from_millis(10);
/// First bytes of a Meta-TF trace.
const MAGIC: &[u8] = &[0x7f, b'M', b'T', b'F'];

/// A started recording.
pub(super) struct Started {
    pub(super) trace: PathBuf,
    /// Name of the program or process.
    name: String,
    child: Child,
    /// File for the output of the program and of `hatf record`.
    output: PathBuf,
    /// Whether the process was already running.
    is_attached: bool,
    ended: Option<u8>,
}

impl Started {
    /// Starts a program and records it.
    pub(super) fn program(command: &[OsString], trace: Option<&Path>) -> Result<Self> {
        let program = command.first().map(|program| Path::new(program).file_name().unwrap_or(program));
        let program = program.unwrap_or(OsStr::new("trace"));
        let python = program.to_string_lossy().starts_with("python").then(|| "--python".into());
        let what = python.into_iter().chain(["--".into()]).chain(command.iter().cloned());
        Self::start(trace.map_or_else(|| free_name(program), Path::to_owned), what.collect(), false)
    }

    /// Records a running process.
    pub(super) fn process(process: u32, trace: Option<&Path>) -> Result<Self> {
        let name = || fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        let trace = trace.map_or_else(|| free_name(OsStr::new(name().trim())), Path::to_owned);
        Self::start(trace, vec!["--pid".into(), process.to_string().into()], true)
    }

    /// Starts `hatf record` and waits until the trace exists.
    fn start(trace: PathBuf, what: Vec<OsString>, is_attached: bool) -> Result<Self> {
        let name = what
            .iter()
            .skip_while(|word| *word != "--")
            .nth(1)
            .unwrap_or(&OsString::new())
            .to_string_lossy()
            .into_owned();
        let mut output = trace.clone().into_os_string();
        output.push(".out");
        let output = PathBuf::from(output);
        let problem = |path: &Path| Error::system(path.display().to_string());
        let folder = OutputFolder::of(&output).map_err(problem(&output))?;
        let file = folder.new_file(output.file_name().unwrap_or_default()).map_err(problem(&output))?;
        let other = file.try_clone().map_err(problem(&output))?;
        let before = id(&trace);
        let mut record = Process::new(std::env::current_exe().map_err(Error::system("this program's path"))?);
        record.args(["record", "--stacks", "-o"]).arg(&trace).args(what).stdout(file).stderr(other);
        if io::stdin().is_terminal() {
            record.stdin(Stdio::null());
        }
        // SAFETY: makes only a system call that is allowed between fork and exec.
        unsafe { record.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
        let child = record.spawn().map_err(Error::system("hatf record"))?;
        let mut started = Self { trace, name, child, output, is_attached, ended: None };
        while started.ended()?.is_none() {
            if id(&started.trace).is_some_and(|now| Some(now) != before) {
                return Ok(started);
            }
            std::thread::sleep(LOOK);
        }
        // The recording has ended, because the program was short-lived or because it could not be started.
        if id(&started.trace).is_some_and(|now| Some(now) != before) { Ok(started) } else { Err(started.failed()) }
    }

    /// Returns the reason for a missing trace, as printed by `hatf record`.
    fn failed(&self) -> Error {
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        let _ = fs::remove_file(&self.output);
        let text = text.trim().strip_prefix("hatf: ").unwrap_or(text.trim()).to_owned();
        let error = match self.ended {
            Some(127) => libc::ENOENT,
            Some(126) => libc::EACCES,
            _ => return Error::Trace(text.into()),
        };
        Error::Start(self.name.clone(), io::Error::from_raw_os_error(error))
    }

    /// Returns the status of the program, if it has ended and its trace is complete.
    pub(super) fn ended(&mut self) -> Result<Option<u8>> {
        if self.ended.is_none() {
            let status = self.child.try_wait().map_err(Error::system("hatf record"))?;
            let code = status.map(|status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
            self.ended = code.map(|code| u8::try_from(code).unwrap_or(1));
        }
        Ok(self.ended)
    }

    /// Interrupts the program, or stops recording an attached process. Returns a message.
    pub(super) fn interrupt(&self) -> String {
        let process = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let sent = process.map(|process| rustix::process::kill_process(process, rustix::process::Signal::INT));
        match sent {
            Some(Ok(())) if self.is_attached => "the recording is ending".to_owned(),
            Some(Ok(())) => "the program was interrupted".to_owned(),
            _ => "the program could not be interrupted".to_owned(),
        }
    }

    /// Returns the file with the program's output, if the output goes to a file.
    pub(super) fn output_file(&self) -> Option<&Path> {
        (!self.is_attached).then_some(&*self.output)
    }

    /// Returns the last lines of the program's output.
    pub(super) fn output(&self) -> Option<Vec<String>> {
        let mut file = File::open(self.output_file()?).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        // Of a line that is overwritten, for example by a progress bar, return only the final state.
        let last = |line: &str| without_colours(line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default());
        Some(text.lines().skip(usize::from(length > TAIL)).map(last).collect())
    }
}

/// Returns a value that distinguishes a file from an earlier one with the same name.
fn id(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Checks that a file can be a trace or the beginning of a trace.
pub(super) fn check_trace(path: &Path) -> Result<()> {
    let name = path.display().to_string();
    let read = || {
        let mut head = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut head)?;
        Ok(head)
    };
    let head = read().map_err(Error::system(name.clone()))?;
    if !MAGIC.starts_with(&head) {
        let what = "not a Meta-TF trace; convert other formats with hatf convert";
        return Err(Error::Trace(format!("{name}: {what}").into()));
    }
    Ok(())
}
