//! Processes created by the program. Each is recorded like the first process, by a separate thread and into a separate
//! trace.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use hatf_record::names::PROCESS;
use hatf_record::{Clock, Spool, Work};
use serde_json::{Value, json};

use super::control::Control;
use super::drain::{Drain, DumpInto, Keeping};
use super::followed_process::FollowedProcess;
use super::last_program::LastProgram;
use super::on_drop::OnDrop;
use super::origin::Origin;
use super::outcome::Recorded;
use super::process::{End, OtherProcess, Process, is_alive};
use super::unrecorded_children::{Children, UnrecordedProgram};
use crate::record::order::{Encode, Keep, MemorySampler, MemorySamples, Moment, Timeline};
use crate::record::program::Plans;
use crate::record::spool::{Keeper, Naps, Returned, SpoolFile};
use hatf_trace::event::EventSink;
use hatf_trace::{Error, Result};

/// The number of chunks in the spool of each process. They amount to 256 MiB, but only used chunks occupy memory.
pub(crate) const CHUNKS_EACH: u32 = 8192;
/// The initial number of chunks kept ready for each process.
const READY: usize = 8;
/// The time limit for a forked process to create its spool.
const ANSWER: Duration = Duration::from_secs(2);
/// The shortest interval at which new spools are searched for.
const LOOK: Duration = Duration::from_millis(2);
/// The interval at which the recording of a process is attempted again.
const AGAIN: Duration = Duration::from_millis(100);
/// The time after which the user is told that other processes are still being recorded.
const ALONE: Duration = Duration::from_secs(1);

/// The outcome of recording a process created by the program.
#[derive(Debug)]
pub struct FollowedOutcome {
    /// The process at its end, when it may be running another program.
    pub process: FollowedProcess,
    /// The way the process ended.
    pub end: End,
    /// The recorded data. Its duration is the time for which the process was recorded.
    pub recorded: Recorded,
    /// The start of the process's recording, in nanoseconds since the recording of the program began.
    pub began: u64,
}

/// A function that records a process. It passes all events to a sink and returns when the process has ended.
pub type RecordInto<'a> = &'a mut dyn FnMut(&mut dyn EventSink) -> Result<FollowedOutcome>;

/// A receiver of the events of further processes.
pub trait Follower: Sync {
    /// Returns the data to store next to the spool of a process, which is needed to make a trace later: see
    /// [`crate::record::Spooled::about`].
    fn about(&self, process: &FollowedProcess) -> Value;

    /// Creates the sink of a process, records the process into it, and finishes it. Called in a separate thread for
    /// each process.
    ///
    /// # Errors
    /// Returns an error if the sink could not be created or finished.
    fn follow(&self, process: &FollowedProcess, record: RecordInto<'_>) -> Result<()>;

    /// Writes a trace of the last part of a running process. `number` counts from 1. See
    /// [`crate::record::RecordOptions::keep`].
    fn dump(&self, process: &FollowedProcess, number: u32, give: DumpInto<'_>) {
        let _ = (process, number, give);
    }

    /// Called when the program has ended while at least one process that it created is still running. `processes` is
    /// the number of these processes, which are recorded until they end.
    fn others_go_on(&self, processes: usize) {
        let _ = processes;
    }
}

/// The state shared by all processes of a recording.
pub(crate) struct Shared<'a> {
    pub(crate) follower: &'a dyn Follower,
    /// Maximum number of processes recorded at the same time. The program also enforces this limit, but its count of
    /// processes may be wrong.
    pub(crate) most: u32,
    pub(crate) control: &'a Control,
    pub(crate) keep: Option<Keep>,
    pub(crate) clock: Clock,
    pub(crate) start: Moment,
    pub(crate) origin: &'a Origin,
    pub(crate) group: u64,
    pub(crate) flush: Option<Duration>,
    /// The spool of the first process.
    pub(crate) first: Spool<'a>,
    pub(crate) file: &'a SpoolFile,
    pub(crate) plans: &'a Plans<'a>,
    pub(crate) progress: Progress,
}

/// The progress of recording all processes.
#[derive(Default)]
pub(crate) struct Progress {
    /// Whether the first process has ended.
    first_ended: AtomicBool,
    /// Whether recording is to stop.
    stop: AtomicBool,
    /// The number of spools found.
    found: AtomicU32,
    /// The number of processes forked by processes that have ended.
    forks: AtomicU32,
    errors: Mutex<Vec<Error>>,
}

impl Shared<'_> {
    /// Finds processes and records them, until the first process and all others have ended, or until stopped. Returns
    /// the number of processes.
    pub(crate) fn run<'scope, 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        interrupted: impl Fn() -> bool,
    ) -> (u32, Vec<UnrecordedProgram>) {
        let mut children = Children::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        let mut threads = Vec::new();
        // A process that ends is removed from the program's count before its recording thread has finished.
        let most = usize::try_from(self.most).unwrap_or(usize::MAX).saturating_mul(2);
        let (mut alone_since, mut said, mut silent_since) = (None, false, Instant::now());
        let header = self.first.header();
        let _woken = self.control.alarm.wake(header, None);
        let (mut naps, mut rang) = (Naps::new(), false);
        loop {
            let word = header.lie_down(Work::Processes);
            let first_ended = self.progress.first_ended.load(Ordering::Acquire);
            let made = self.first.header().spools.load(Ordering::Acquire);
            if made != self.progress.found.load(Ordering::Relaxed) {
                self.progress.found.store(made, Ordering::Relaxed);
                let folders = self.file.processes().unwrap_or_else(|_| {
                    // Make the next iteration search for the directories again.
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
                            process_of(&name).into_iter().for_each(|process| children.is_recorded(process));
                            seen.push(name);
                            threads.push(thread);
                        }
                        // Make the next iteration try this process again, because another process may have ended by
                        // then.
                        _ => self.progress.found.store(made.wrapping_sub(1), Ordering::Relaxed),
                    }
                }
                seen.retain(|folder| folder.exists());
            }
            threads.retain(|thread| !thread.is_finished());
            let others = seen.iter().filter_map(|folder| process_of(folder)).map(|(process, _)| process);
            let next_look = children.look(others.chain([header.process.load(Ordering::Relaxed)]), rang);
            let mut limit = naps.next_length().min(next_look);
            if made != self.progress.found.load(Ordering::Relaxed) {
                limit = limit.min(AGAIN);
            }
            if first_ended {
                if !threads.is_empty() {
                    silent_since = Instant::now();
                } else if self.all_are_known() || silent_since.elapsed() > ANSWER {
                    break;
                } else {
                    limit = limit.min(LOOK);
                }
                let since = *alone_since.get_or_insert_with(Instant::now);
                if !said && since.elapsed() > ALONE {
                    // The spool of a process that has ended may still contain events.
                    let alive = seen.iter().filter(|folder| is_alive_in(folder)).count();
                    said = alive > 0;
                    if said {
                        self.follower.others_go_on(alive);
                    }
                }
                if !said {
                    limit = limit.min(ALONE);
                }
                if interrupted() && !self.progress.stop.swap(true, Ordering::SeqCst) {
                    self.control.alarm.ring_all();
                }
            }
            rang = header.sleep(Work::Processes, word, limit);
            if rang {
                naps = Naps::new();
                // A program that creates many processes rings the bell for each.
                std::thread::sleep(LOOK);
            }
        }
        (self.first.header().spools.load(Ordering::Relaxed), children.programs())
    }

    /// Returns the number of forked processes that have neither created a spool nor reported that they will not create
    /// one. The result is final once no further reports are expected.
    pub(crate) fn unheard(&self) -> u32 {
        let answered = self.first.header().answered.load(Ordering::Acquire);
        self.progress.forks.load(Ordering::Acquire).saturating_sub(answered)
    }

    /// Notes that the first process, which forked this many processes, has ended.
    pub(crate) fn first_has_ended(&self, forks: u32) {
        self.note_forks(forks);
        self.progress.first_ended.store(true, Ordering::Release);
        self.first.header().ring_in_any_case(Work::Processes);
    }

    /// Stops all recording.
    pub(crate) fn stop(&self) {
        self.progress.stop.store(true, Ordering::Release);
        self.progress.first_ended.store(true, Ordering::Release);
        self.first.header().ring_in_any_case(Work::Processes);
        self.control.alarm.ring_all();
    }

    /// Returns the errors of processes and clears them.
    pub(crate) fn take_errors(&self) -> Vec<Error> {
        std::mem::take(&mut *self.progress.errors.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds the number of processes forked by a process that has ended.
    fn note_forks(&self, forks: u32) {
        self.progress.forks.fetch_add(forks, Ordering::AcqRel);
    }

    /// Returns whether each forked process has created its spool or will not create one, and whether all spools were
    /// found.
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
        self.first.header().ring_in_any_case(Work::Processes);
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
            let returned = Returned::new(spool.header());
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
                last_program: LastProgram::default(),
                plans: self.plans,
            };
            let (end, recorded) = std::thread::scope(|scope| {
                let _stop = OnDrop(|| returned.stop());
                scope.spawn(|| keeper.run(|process, woken| sampler.tend(process, woken || self.control.is_watched())));
                drain.run(&origin, || ())
            })?;
            self.note_forks(recorded.forks);
            Ok(FollowedOutcome { process: FollowedProcess::of(&file), end, recorded, began: began_at })
        });
        // A process that could not be recorded must not wait for a reader.
        spool.header().closed.store(1, Ordering::SeqCst);
        // If recording failed, keep the spool, because it contains events that are not in a trace.
        file.set_temporary(followed.is_ok());
        followed
    }
}

/// Returns the process that a directory is named after: its ID, and its start time in kernel ticks since boot.
fn process_of(folder: &Path) -> Option<(u32, u64)> {
    let (process, began) = folder.file_name()?.to_str()?.strip_prefix(PROCESS)?.split_once('-')?;
    Some((process.parse().ok()?, began.parse().ok()?))
}

/// Returns whether the process that a directory is named after is still alive.
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
