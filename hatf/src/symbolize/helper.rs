//! Look-ups in a process of their own, which may take so much time and memory and no more: what is in a program's file comes from
//! anywhere, and libraries read it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};

use super::answer::{Answer, Image};
use super::elf;
use super::files::{Fetched, Files};
use super::symbolizer::here;
use crate::{Error, Result};

/// Seconds of processor time for a look-up; bytes of files, and frames, that give it one more.
const SECONDS: u64 = 20;
const BYTES_A_SECOND: u64 = 1 << 20;
const FRAMES_A_SECOND: u64 = 1000;

/// Seconds that may pass for each of processor time: other programs run, too.
const SLOWER: u64 = 10;

/// The program that looks up, with the arguments that make it do so.
#[derive(Clone, Debug)]
pub struct Helper {
    program: PathBuf,
    arguments: Vec<OsString>,
}

/// What a helper is asked.
#[derive(Serialize, Deserialize)]
struct Question {
    image: Image,
    addresses: Vec<u64>,
    sysroot: Option<PathBuf>,
    debug_dirs: Vec<PathBuf>,
    fetched: Fetched,
}

impl Helper {
    /// Makes a helper of a program that calls [`help`] with its standard input and output.
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Asks for the frames of addresses.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) fn ask(
        &self,
        image: &Image,
        addresses: &[u64],
        files: &Files,
        fetched: &Fetched,
    ) -> std::result::Result<Answer, String> {
        let (Files { sysroot, debug_dirs, .. }, fetched) = (files.clone(), fetched.clone());
        let question = Question { image: image.clone(), addresses: addresses.to_vec(), sysroot, debug_dirs, fetched };
        let question = serde_json::to_vec(&question).map_err(|error| error.to_string())?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |error: std::io::Error| format!("no process can look it up: {error}");
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut input) = child.stdin.take() {
            // It reads all before it answers. If it has ended, its status tells why.
            let _ = input.write_all(&question);
        }
        let output = child.wait_with_output().map_err(failed)?;
        if !output.status.success() {
            return Err(why(output.status));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("no answer: {error}"))
    }
}

/// Returns why there is no answer of a process that ended so.
fn why(status: ExitStatus) -> String {
    match status.signal() {
        Some(libc::SIGXCPU | libc::SIGALRM) => "looking it up takes too long for a file of its size".to_owned(),
        // What Rust does where there is no memory.
        Some(libc::SIGABRT) => "looking it up takes too much memory for a file of its size".to_owned(),
        _ => format!("looking it up failed: {status}"),
    }
}

/// Answers the question of a [`Helper`]. From here on this process has little memory and time.
///
/// # Errors
/// The question cannot be read, or the answer not be written.
pub fn help(input: &mut dyn Read, output: &mut dyn Write) -> Result<()> {
    limit(0, 0);
    let mut question = Vec::new();
    input.read_to_end(&mut question).map_err(Error::system("standard input"))?;
    let question: Question = serde_json::from_slice(&question).map_err(|error| Error::Trace(error.into()))?;
    let Question { image, addresses, sysroot, debug_dirs, fetched } = question;
    let files = Files { sysroot, debug_dirs, perf_map: None, helper: None, debuginfod: None };
    let opened = |bytes| limit(bytes, addresses.len() as u64);
    let answer = serde_json::to_vec(&here(&image, &addresses, (&files, &fetched), opened));
    let answer = answer.map_err(|error| Error::Trace(error.into()))?;
    Ok(output.write_all(&answer).and_then(|()| output.flush())?)
}

/// Limits this process to what a look-up of this many frames in files of this many bytes may take.
fn limit(bytes: u64, frames: u64) {
    let seconds = SECONDS + bytes / BYTES_A_SECOND + frames / FRAMES_A_SECOND;
    // Only the soft limits, which can be raised again. Mapped files do not count.
    for (resource, most) in [(libc::RLIMIT_DATA, elf::most(bytes)), (libc::RLIMIT_CPU, seconds), (libc::RLIMIT_CORE, 0)]
    {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: a place for the answer.
        if unsafe { libc::getrlimit(resource, &raw mut limit) } == 0 {
            limit.rlim_cur = limit.rlim_max.min(most);
            // SAFETY: a valid structure. Where it fails, the limit is that which was there.
            unsafe { libc::setrlimit(resource, &raw const limit) };
        }
    }
    let passed = u32::try_from(seconds.saturating_mul(SLOWER)).unwrap_or(u32::MAX);
    // SAFETY: it takes a number. The signal ends this process, which has no handler for it.
    unsafe { libc::alarm(passed) };
}
