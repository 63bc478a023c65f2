//! Processes that the program makes: each is recorded like the first, by a thread of its own, into a trace of its own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use hatf_record::names::PROCESS;
use hatf_record::{Clock, Spool};
use serde_json::{Value, json};

use super::control::Control;
use super::drain::{Drain, DumpInto, Keeping};
use super::followed_process::FollowedProcess;
use super::on_drop::OnDrop;
use super::origin::Origin;
use super::outcome::Recorded;
use super::process::{End, OtherProcess, Process, is_alive};
use crate::event::EventSink;
use crate::record::order::{Encode, Keep, MemorySampler, MemorySamples, Moment, Timeline};
use crate::record::spool::{Keeper, Returned, SpoolFile};
use crate::{Error, Result};

/// Chunks of the spool of each process: 256 MiB, of which those have memory that are used.
pub(crate) const CHUNKS_EACH: u32 = 8192;
/// Chunks that are kept ready for each at first.
const READY: usize = 8;
/// How long a process that was forked may take to make its spool.
const ANSWER: Duration = Duration::from_secs(2);
/// How often new spools are looked for.
const LOOK: Duration = Duration::from_millis(2);

/// The outcome of recording a process that the program made.
#[derive(Debug)]
pub struct FollowedOutcome {
    /// The process as it was at its end: it may have turned into another program.
    pub process: FollowedProcess,
    /// How it ended.
    pub end: End,
    /// What was recorded. Its duration is the time for which it was recorded.
    pub recorded: Recorded,
    /// When recording of it began, in nanoseconds since the recording of the program did.
    pub began: u64,
}

/// What a process is recorded by: calls it with a sink, which gets all of the events, and returns when the process has ended.
pub type RecordInto<'a> = &'a mut dyn FnMut(&mut dyn EventSink) -> Result<FollowedOutcome>;

/// Where the events of further processes go.
pub trait Follower: Sync {
    /// Returns what is kept beside the spool of a process, to make a trace of it later: see [`crate::record::Spooled::about`].
    fn about(&self, process: &FollowedProcess) -> Value;

    /// Makes the sink of a process, has it recorded into that, and finishes the sink. Called in a thread for each process.
    ///
    /// # Errors
    /// The sink could not be made or finished.
    fn follow(&self, process: &FollowedProcess, record: RecordInto<'_>) -> Result<()>;

    /// Takes a trace of the last part of a process that goes on, the first, second and so on: see [`crate::record::RecordOptions::keep`].
    fn dump(&self, process: &FollowedProcess, number: u32, give: DumpInto<'_>) {
        let _ = (process, number, give);
    }

    /// The program has ended, and this many processes that it made, at least one, have not. They are recorded until they end.
    fn others_go_on(&self, processes: usize) {
        let _ = processes;
    }
}

/// What all processes of a recording share.
pub(crate) struct Shared<'a> {
    pub(crate) follower: &'a dyn Follower,
    /// Processes that are recorded at once. The program counts them, and may count wrong.
    pub(crate) most: u32,
    pub(crate) control: &'a Control,
    pub(crate) keep: Option<Keep>,
    pub(crate) clock: Clock,
    pub(crate) start: Moment,
    pub(crate) origin: &'a Origin,
    pub(crate) group: u64,
    pub(crate) flush: Option<Duration>,
    /// The spool of the first.
    pub(crate) first: Spool<'a>,
    pub(crate) file: &'a SpoolFile,
    pub(crate) progress: Progress,
}

/// How far the recording of all processes is.
#[derive(Default)]
pub(crate) struct Progress {
    /// The first has ended.
    first_ended: AtomicBool,
    /// Nothing more is recorded.
    stop: AtomicBool,
    /// Spools that were found.
    found: AtomicU32,
    /// Processes that those which have ended forked.
    forks: AtomicU32,
    errors: Mutex<Vec<Error>>,
}

impl Shared<'_> {
    /// Finds processes and has them recorded, until the first process has ended and all others have, or it is to stop. Returns how many there were.
    pub(crate) fn run<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        interrupted: impl Fn() -> bool,
    ) -> u32 {
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut threads = Vec::new();
        // One that ends is taken off the program's count before its thread is at its end.
        let most = usize::try_from(self.most).unwrap_or(usize::MAX).saturating_mul(2);
        let (mut alone_since, mut said, mut silent_since) = (None, false, Instant::now());
        loop {
            let first_ended = self.progress.first_ended.load(Ordering::Acquire);
            let made = self.first.header().spools.load(Ordering::Acquire);
            if made != self.progress.found.load(Ordering::Relaxed) {
                self.progress.found.store(made, Ordering::Relaxed);
                let folders = self.file.processes().unwrap_or_else(|_| {
                    // They are looked for again.
                    self.progress.found.store(made.wrapping_sub(1), Ordering::Relaxed);
                    Vec::new()
                });
                for folder in folders {
                    if seen.contains(&folder) {
                        continue;
                    }
                    let name = folder.clone();
                    let record = move || self.process(&folder);
                    let thread = Some(std::thread::Builder::new()).filter(|_| threads.len() < most);
                    match thread.map(|thread| thread.spawn_scoped(scope, record)) {
                        Some(Ok(thread)) => {
                            seen.push(name);
                            threads.push(thread);
                        }
                        // There is room when another has ended.
                        _ => self.progress.found.store(made.wrapping_sub(1), Ordering::Relaxed),
                    }
                }
                seen.retain(|folder| folder.exists());
            }
            threads.retain(|thread| !thread.is_finished());
            if first_ended {
                if !threads.is_empty() {
                    silent_since = Instant::now();
                } else if self.all_are_known() || silent_since.elapsed() > ANSWER {
                    break;
                }
                let since = *alone_since.get_or_insert_with(Instant::now);
                if !said && since.elapsed() > Duration::from_secs(1) {
                    // A process that has ended may still have events in its spool.
                    let alive = seen.iter().filter(|folder| is_alive_in(folder)).count();
                    said = alive > 0;
                    if said {
                        self.follower.others_go_on(alive);
                    }
                }
                if interrupted() {
                    self.progress.stop.store(true, Ordering::Relaxed);
                }
            }
            std::thread::sleep(LOOK);
        }
        self.first.header().spools.load(Ordering::Relaxed)
    }

    /// Returns how many processes were forked of which nothing was heard, when no more is to be expected.
    pub(crate) fn unheard(&self) -> u32 {
        let answered = self.first.header().answered.load(Ordering::Acquire);
        self.progress.forks.load(Ordering::Acquire).saturating_sub(answered)
    }

    /// Says that the first process has ended, which forked this many.
    pub(crate) fn first_has_ended(&self, forks: u32) {
        self.note_forks(forks);
        self.progress.first_ended.store(true, Ordering::Release);
    }

    /// Has nothing more recorded.
    pub(crate) fn stop(&self) {
        self.progress.stop.store(true, Ordering::Release);
        self.progress.first_ended.store(true, Ordering::Release);
    }

    /// Takes the errors of processes.
    pub(crate) fn take_errors(&self) -> Vec<Error> {
        std::mem::take(&mut *self.progress.errors.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the processes that one which has ended forked.
    fn note_forks(&self, forks: u32) {
        self.progress.forks.fetch_add(forks, Ordering::AcqRel);
    }

    /// Returns whether each forked process has made its spool, or will make none, and all spools were found.
    fn all_are_known(&self) -> bool {
        let header = self.first.header();
        let answered = header.answered.load(Ordering::Acquire) >= self.progress.forks.load(Ordering::Acquire);
        answered && self.progress.found.load(Ordering::Relaxed) == header.spools.load(Ordering::Acquire)
    }

    fn process(&self, folder: &Path) {
        if let Err(error) = self.record(folder) {
            self.progress.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
        }
        self.first.header().followed.fetch_sub(1, Ordering::AcqRel);
    }

    fn record(&self, folder: &Path) -> Result<()> {
        let mut file = SpoolFile::open(folder)?;
        let process = FollowedProcess::of(&file);
        let origin = self.origin.of_process(&process);
        file.write_origin(&json!({"start": origin.to_json(self.clock), "about": self.follower.about(&process)}))?;
        let spool = file.spool();
        let (_, began) = process_of(folder).unwrap_or_default();
        let began_at = spool.header().start.load(Ordering::Relaxed).saturating_sub(self.start.nanoseconds);
        let followed = self.follower.follow(&process, &mut |sink| {
            let returned = Returned::default();
            let keeper = Keeper::new(&file, spool, &returned, READY);
            let samples = MemorySamples::default();
            let mut sampler = MemorySampler::new(spool.header(), &samples, self.clock);
            let encode = Encode::new(spool, file.folder(), Timeline::new(self.start), &samples, sink);
            let (id, header, stop) = (process.process, spool.header(), &self.progress.stop);
            let process_itself = OtherProcess { id, began, stop, header, asked: Instant::now() };
            let dump = |number, give: DumpInto<'_>| self.follower.dump(&FollowedProcess::of(&file), number, give);
            let drain = Drain {
                keeping: self.keep.map(|keep| Keeping { keep, file: &file, dump: &dump }),
                spool,
                encode,
                returned: &returned,
                control: self.control,
                process: Process::Other(process_itself),
                clock: self.clock,
                samples: &samples,
                group: self.group,
                flush: self.flush,
                flushed: 0,
            };
            let (end, recorded) = std::thread::scope(|scope| {
                let _stop = OnDrop(|| returned.stop());
                scope.spawn(|| keeper.run(|process| sampler.tend(process)));
                drain.run(&origin, || ())
            })?;
            self.note_forks(recorded.forks);
            Ok(FollowedOutcome { process: FollowedProcess::of(&file), end, recorded, began: began_at })
        });
        // Where it could not be recorded, it is not to wait for somebody who reads.
        spool.header().closed.store(1, Ordering::SeqCst);
        // What is not in a trace is still there.
        file.set_temporary(followed.is_ok());
        followed
    }
}

/// Returns the process that a folder is named after: its number, and when it began in the kernel's ticks since boot.
fn process_of(folder: &Path) -> Option<(u32, u64)> {
    let (process, began) = folder.file_name()?.to_str()?.strip_prefix(PROCESS)?.split_once('-')?;
    Some((process.parse().ok()?, began.parse().ok()?))
}

/// Returns whether the process that a folder is named after has not ended.
fn is_alive_in(folder: &Path) -> bool {
    process_of(folder).is_some_and(|(process, began)| is_alive(process, began))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_folders() {
        assert_eq!(process_of(Path::new("/a/process-12-345")), Some((12, 345)));
        for other in
            ["/a/process-12", "/a/12-345", "/a/process--1-2", "/a/process-12-x", "/", "/a/process-99999999999-1"]
        {
            assert_eq!(process_of(Path::new(other)), None, "{other}");
        }
        let own = std::process::id();
        assert!(is_alive_in(Path::new(&format!("process-{own}-0"))));
        assert!(!is_alive_in(Path::new(&format!("process-{own}-1"))));
    }
}
