//! Replays operations in this process.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};

use super::allocators::{Allocator, Nothing, Process, Touch, file_of_malloc};
use super::compile::Blocks;
use super::latency::{Latencies, Latency};
use super::mapped::{Place, Places, Words};
use super::operation::{Kind, Operation};
use hatf_trace::{Error, Result};

/// The number of memory samples in a replay.
const SAMPLES: u64 = 512;

/// The measurement to take in a replay. Each measurement takes time and would distort the others, so each has its own
/// replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Look {
    /// Total time
    Total,
    /// Memory of the process
    Memory,
    /// Latency of each call
    Latency,
}

/// The options of a replay in one process.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Task {
    /// Measurement to take.
    #[arg(long, value_enum, default_value_t = Look::Total)]
    pub look: Look,
    /// What to touch of each block.
    #[arg(long, value_enum, default_value_t = Touch::Pages)]
    pub touch: Touch,
    /// Call no allocator, to measure the cost of the replay itself.
    #[arg(long)]
    pub nothing: bool,
}

impl Task {
    /// Returns the options for a worker.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let name = |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        let look = name(self.look.to_possible_value()).unwrap_or_default();
        let touch = name(self.touch.to_possible_value()).unwrap_or_default();
        let mut arguments = vec![format!("--look={look}").into(), format!("--touch={touch}").into()];
        arguments.extend(self.nothing.then(|| "--nothing".into()));
        arguments
    }
}

/// The outcome of one replay. Times cover the entire process: all of its threads in user and kernel mode.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// The file that contains the allocator.
    pub allocator: String,
    /// Elapsed nanoseconds from beginning to end.
    pub elapsed_ns: u64,
    /// Nanoseconds of CPU time.
    pub processor_ns: u64,
    /// Nanoseconds of CPU time in kernel mode.
    pub system_ns: u64,
    /// Page faults that did not access the disk.
    pub minor_faults: u64,
    /// Page faults that accessed the disk.
    pub major_faults: u64,
    /// Memory samples over time.
    pub memory: Vec<Sample>,
    /// The number of each phase's name, and the memory at the end of the phase.
    pub phases: Vec<(u32, Sample)>,
    /// Resident bytes after all blocks were freed.
    pub after_all_freed: u64,
    /// Latencies of calls.
    pub latencies: Vec<Latency>,
}

/// A sample of the process's memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// The number of operations before the sample.
    pub operations: u64,
    /// The increase in resident bytes since before the replay, excluding file pages.
    pub resident: u64,
}

/// The state shared by all threads.
struct Replay<'r, A> {
    allocator: A,
    task: Task,
    words: &'r Words,
    threads: &'r [Vec<(u64, u64)>],
    places: &'r Places,
    /// The number of operations between two samples.
    every: u64,
    began: Mutex<Option<Began>>,
    measured: Mutex<Measured>,
    /// The number of operations accounted for in samples.
    done: AtomicU64,
    failed: Mutex<Option<Error>>,
    stop: AtomicBool,
}

/// The state when the replay began.
struct Began {
    at: Instant,
    usage: libc::rusage,
    resident: u64,
}

/// Measurements taken during the replay.
#[derive(Default)]
struct Measured {
    memory: Vec<Sample>,
    phases: Vec<(u32, Sample)>,
    latencies: Latencies,
}

/// Replays the operations in a file in this process.
///
/// # Errors
/// Returns an error if the file contains no operations, or the allocator returned no block.
pub fn replay(operations: &Path, task: Task) -> Result<Run> {
    let (words, summary, blocks) = Words::open(operations)?;
    let places = Places::new(summary.most_live)?;
    match task.nothing {
        true => run(Nothing, task, &words, &blocks, summary.operations, &places),
        false => run(Process, task, &words, &blocks, summary.operations, &places),
    }
}

fn run<A: Allocator>(
    allocator: A,
    task: Task,
    words: &Words,
    threads: &Blocks,
    operations: u64,
    places: &Places,
) -> Result<Run> {
    let every = match task.look {
        Look::Memory => (operations / SAMPLES).max(1),
        _ => u64::MAX,
    };
    let memory = Vec::with_capacity(if every == u64::MAX { 0 } else { 2 * usize::try_from(SAMPLES).unwrap_or(0) });
    let replay = Replay {
        allocator,
        task,
        words,
        threads,
        places,
        every,
        began: Mutex::new(None),
        measured: Mutex::new(Measured { memory, ..Measured::default() }),
        done: AtomicU64::new(0),
        failed: Mutex::new(None),
        stop: AtomicBool::new(false),
    };
    thread::scope(|scope| replay.thread(0, scope));
    if let Some(error) = lock(&replay.failed).take() {
        return Err(error);
    }
    let (usage, now) = (usage(), Instant::now());
    let began = lock(&replay.began).take();
    let began = began.ok_or_else(|| Error::Trace("the operations file has no begin operation".into()))?;
    places.addresses().for_each(|block| allocator.free(block));
    let measured = std::mem::take(&mut *lock(&replay.measured));
    let since = |now: libc::timeval, before: libc::timeval| nanoseconds(now).saturating_sub(nanoseconds(before));
    let system_ns = since(usage.ru_stime, began.usage.ru_stime);
    let faults = |now: i64, before: i64| u64::try_from(now - before).unwrap_or(0);
    Ok(Run {
        allocator: file_of_malloc().unwrap_or_default().to_string_lossy().into_owned(),
        elapsed_ns: u64::try_from((now - began.at).as_nanos()).unwrap_or(u64::MAX),
        processor_ns: since(usage.ru_utime, began.usage.ru_utime) + system_ns,
        system_ns,
        minor_faults: faults(usage.ru_minflt, began.usage.ru_minflt),
        major_faults: faults(usage.ru_majflt, began.usage.ru_majflt),
        memory: measured.memory,
        phases: measured.phases,
        after_all_freed: resident()?.saturating_sub(began.resident),
        latencies: measured.latencies.finish(),
    })
}

impl<A: Allocator> Replay<'_, A> {
    /// Replays the operations of a thread, which may start other threads.
    fn thread<'s>(&'s self, number: usize, scope: &'s Scope<'s, '_>) {
        let mut latencies = Latencies::default();
        let done = match self.task.look {
            Look::Latency => self.operate::<true>(number, scope, &mut latencies),
            Look::Total | Look::Memory => self.operate::<false>(number, scope, &mut latencies),
        };
        lock(&self.measured).latencies.merge(&latencies);
        if let Err(error) = done {
            *lock(&self.failed) = Some(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    fn operate<'s, const TIMED: bool>(
        &'s self,
        number: usize,
        scope: &'s Scope<'s, '_>,
        latencies: &mut Latencies,
    ) -> Result<()> {
        let (allocator, places) = (self.allocator, self.places.all());
        let mut left = self.every;
        for block in self.threads.get(number).into_iter().flatten() {
            for words in self.words.block(*block) {
                let bad = || Error::Trace("damaged operations".into());
                let operation = Operation::from_words(words).ok_or_else(bad)?;
                let Operation { kind, size, .. } = operation;
                if !kind.is_call() {
                    self.beside(operation, scope)?;
                    continue;
                }
                let place = places.get(operation.slot as usize).ok_or_else(bad)?;
                if !self.wait_for(operation, place) {
                    return Ok(());
                }
                let bytes = usize::try_from(size).unwrap_or(usize::MAX);
                let old = place.address.load(Ordering::Relaxed);
                let from = TIMED.then(Instant::now);
                let new = match kind {
                    Kind::Calloc => allocator.calloc(bytes),
                    // With 0 bytes, the call would be a free.
                    Kind::Realloc => allocator.realloc(old, bytes.max(1)),
                    Kind::Aligned => allocator.aligned(1_usize << operation.alignment.min(40), bytes),
                    Kind::Free => {
                        allocator.free(old);
                        0
                    }
                    _ => allocator.malloc(bytes),
                };
                if let Some(from) = from {
                    latencies.add(kind, size, from, Instant::now());
                }
                if kind != Kind::Free {
                    if new == 0 && bytes > 0 {
                        return Err(Error::Trace(format!("the allocator could not allocate {size} bytes").into()));
                    }
                    self.task.touch.touch(allocator, new, bytes);
                }
                place.address.store(new, Ordering::Relaxed);
                place.turns.store(u64::from(operation.turn.wrapping_add(1)), Ordering::Release);
                left -= 1;
                if left == 0 {
                    left = self.every;
                    self.sample()?;
                }
            }
        }
        Ok(())
    }

    /// Waits for an operation's turn. Returns false if another thread failed, because the turn then never comes.
    #[inline]
    fn wait_for(&self, operation: Operation, place: &Place) -> bool {
        let is_turn = || place.turns.load(Ordering::Acquire) == u64::from(operation.turn);
        is_turn() || self.wait_long(is_turn)
    }

    #[cold]
    fn wait_long(&self, is_turn: impl Fn() -> bool) -> bool {
        for tries in 0_u32.. {
            if is_turn() {
                return true;
            }
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            // The thread whose turn comes first may need this CPU.
            match tries {
                0..64 => std::hint::spin_loop(),
                64..256 => thread::yield_now(),
                _ => thread::sleep(Duration::from_micros(20)),
            }
        }
        false
    }

    /// Performs an operation that is not a call to the allocator.
    #[cold]
    fn beside<'s>(&'s self, operation: Operation, scope: &'s Scope<'s, '_>) -> Result<()> {
        match operation.kind {
            Kind::Start => {
                let number = operation.slot as usize;
                let start = thread::Builder::new().spawn_scoped(scope, move || self.thread(number, scope));
                start.map_err(Error::system("a replay thread"))?;
            }
            Kind::Begin => {
                let (resident, usage) = (resident()?, usage());
                *lock(&self.began) = Some(Began { at: Instant::now(), usage, resident });
            }
            Kind::Wait => {
                let began = lock(&self.began).as_ref().map(|began| began.at);
                let until = began.and_then(|at| at.checked_add(Duration::from_nanos(operation.size)));
                wait_until(until);
            }
            Kind::PhaseEnd if self.task.look == Look::Memory => {
                let sample = self.memory(self.done.load(Ordering::Relaxed))?;
                lock(&self.measured).phases.push((operation.slot, sample));
            }
            _ => {}
        }
        Ok(())
    }

    #[cold]
    fn sample(&self) -> Result<()> {
        let done = self.done.fetch_add(self.every, Ordering::Relaxed) + self.every;
        let sample = self.memory(done)?;
        lock(&self.measured).memory.push(sample);
        Ok(())
    }

    fn memory(&self, operations: u64) -> Result<Sample> {
        let before = lock(&self.began).as_ref().map_or(0, |began| began.resident);
        Ok(Sample { operations, resident: resident()?.saturating_sub(before) })
    }
}

fn wait_until(until: Option<Instant>) {
    /// The maximum delay with which a sleeping thread wakes up.
    const LATE: Duration = Duration::from_micros(60);
    let Some(until) = until else { return };
    let now = Instant::now();
    if let Some(long) = until.checked_duration_since(now).and_then(|left| left.checked_sub(LATE)) {
        thread::sleep(long);
    }
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Returns the resident bytes of the process, excluding file pages.
fn resident() -> Result<u64> {
    let statm = || -> std::io::Result<u64> {
        let mut text = [0; 128];
        let length = File::open("/proc/self/statm")?.read(&mut text)?;
        let text = str::from_utf8(text.get(..length).unwrap_or_default()).unwrap_or_default();
        let mut pages = text.split(' ').skip(1).map(|pages| pages.parse::<u64>().unwrap_or(0));
        let (resident, shared) = (pages.next().unwrap_or(0), pages.next().unwrap_or(0));
        // SAFETY: the call has no preconditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        Ok(resident.saturating_sub(shared) * u64::try_from(page).unwrap_or(4096))
    };
    statm().map_err(Error::system("/proc/self/statm"))
}

fn usage() -> libc::rusage {
    // SAFETY: all zeros is a valid value of this struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage
}

fn nanoseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_usec * 1000).unwrap_or(0)
}

/// Locks a mutex, ignoring poisoning: a thread that panicked has ended the process.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
