//! Conversion and upload of complete traces.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use hatf_host::record::Spooled;
use hatf_trace::{Error, Result};
use rustix::process::{Pid, Signal, kill_process_group};

use super::metrics::Counters;
use super::policy::Finish;
use super::{Place, remove};
use crate::command::print_message;

/// Interval at which a running command is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Maximum delay before a retry.
const RETRY_MAX: Duration = Duration::from_secs(3600);
/// Maximum number of attempts to complete a trace from a spool, which may be corrupt.
const RECOVERIES: u32 = 10;
/// Interval at which the thread looks for work if there is none.
const IDLE: Duration = Duration::from_secs(3600);

/// A file to convert and upload.
struct Job {
    file: PathBuf,
    at: Instant,
    delay: Duration,
    is_converted: bool,
    /// Number of attempts to complete the trace from the spool of a killed recorder.
    recoveries: u32,
}

/// The thread that converts and uploads files.
struct Finisher {
    finish: Finish,
    new: PathBuf,
    converting: PathBuf,
    done: PathBuf,
    counters: Arc<Counters>,
}

/// Starts the thread, and returns the queue of its files.
pub(super) fn start(finish: Finish, place: &Place, counters: &Arc<Counters>) -> Result<Sender<PathBuf>> {
    let (sender, files) = mpsc::channel();
    let Place { new, converting, done, .. } = place;
    let (new, converting, done) = (new.clone(), converting.clone(), done.clone());
    let finisher = Finisher { finish, new, converting, done, counters: Arc::clone(counters) };
    let work = move || {
        let mut jobs: Vec<Job> = Vec::new();
        loop {
            let next = jobs.iter().map(|job| job.at).min();
            let wait = next.map_or(IDLE, |at| at.saturating_duration_since(Instant::now()));
            match files.recv_timeout(wait) {
                Ok(file) => {
                    jobs.push(Job {
                        file,
                        at: Instant::now(),
                        delay: finisher.finish.retry,
                        is_converted: false,
                        recoveries: 0,
                    });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            jobs.retain_mut(|job| job.at > now || !finisher.is_done(job));
        }
    };
    thread::Builder::new().name("finish".into()).spawn(work).map_err(Error::system("a thread"))?;
    Ok(sender)
}

impl Finisher {
    /// Converts and uploads a file. Returns `false` if the upload must be repeated.
    fn is_done(&self, job: &mut Job) -> bool {
        if !job.file.exists() {
            return true;
        }
        if !job.is_converted && job.file.extension().is_some_and(|extension| extension == "mtf") {
            recover(&job.file, self.finish.timeout);
            // The recorded program may still use the spool until it ends or is recorded again.
            if Spooled::of_trace(&job.file).is_some() && job.recoveries < RECOVERIES {
                job.recoveries += 1;
                job.at = Instant::now() + self.finish.retry;
                return false;
            }
            self.finish.convert.iter().for_each(|form| self.convert(&job.file, form));
        }
        job.is_converted = true;
        if let Err(why) = self.upload(&job.file) {
            self.counters.uploads_failed.fetch_add(1, Ordering::Relaxed);
            let (file, delay) = (job.file.display(), job.delay.as_secs_f64());
            print_message(&format!("{file}: the upload failed: {why}; it will be repeated in {delay} s"));
            job.at = Instant::now() + job.delay;
            job.delay = job.delay.saturating_mul(2).min(RETRY_MAX);
            return false;
        }
        let is_uploaded = !self.finish.upload.is_empty();
        self.counters.uploaded.fetch_add(is_uploaded.into(), Ordering::Relaxed);
        let done = self.done.join(job.file.file_name().unwrap_or_default());
        let is_removed = is_uploaded && self.finish.delete;
        let moved = if is_removed { remove(&job.file) } else { fs::rename(&job.file, done) };
        if let Err(error) = moved {
            print_message(&format!("{}: {error}", job.file.display()));
        }
        true
    }

    /// Writes a trace in another format, as a file to upload.
    fn convert(&self, trace: &Path, form: &str) {
        let name = trace.with_extension(form);
        let name = name.file_name().unwrap_or_default();
        let output = self.converting.join(name);
        let _ = remove(&output);
        let converted = std::env::current_exe().map_err(|error| error.to_string()).and_then(|hatf| {
            let mut command = Command::new(hatf);
            command.arg("convert").arg(trace).arg(&output).arg("--to").arg(form);
            run(&mut command, self.finish.timeout)
        });
        let moved = converted
            .and_then(|()| fs::rename(&output, self.new.join(name)).map_err(|error: io::Error| error.to_string()));
        if let Err(why) = moved {
            self.counters.conversions_failed.fetch_add(1, Ordering::Relaxed);
            print_message(&format!("{}: could not convert the trace to {form}: {why}", trace.display()));
        }
    }

    fn upload(&self, file: &Path) -> std::result::Result<(), String> {
        let path = file.to_string_lossy();
        let mut words = self.finish.upload.iter().map(|word| word.replace("{file}", &path));
        let Some(program) = words.next() else { return Ok(()) };
        run(Command::new(program).args(words), self.finish.timeout)
    }
}

/// Completes the trace of a killed recorder from its spool. For a complete trace, the command fails and does nothing.
fn recover(trace: &Path, timeout: Duration) {
    if let Ok(hatf) = std::env::current_exe() {
        let _ = run(Command::new(hatf).arg("recover").arg(trace).stderr(Stdio::null()), timeout);
    }
}

/// Runs a command. A command that exceeds the time limit is killed together with its process group.
fn run(command: &mut Command, timeout: Duration) -> std::result::Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let started = command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0).spawn();
    let mut child = started.map_err(|error| format!("{program}: {error}"))?;
    let end = Instant::now() + timeout;
    loop {
        match child.try_wait().map_err(|error| format!("{program}: {error}"))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{program}: {status}")),
            None if Instant::now() < end => thread::sleep(LOOK),
            None => {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                return Err(format!("{program}: took longer than {} s", timeout.as_secs_f64()));
            }
        }
    }
}
