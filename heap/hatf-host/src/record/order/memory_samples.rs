//! Samples of a process's memory use taken while it runs, and external marks. Events arrive late, so samples and marks
//! wait until earlier events have been passed on.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hatf_record::{Clock, Conditions, Header, SpoolEvent};

use super::large_blocks::{KnownBlocks, LargeBlocks, UntouchedSampler};
use hatf_trace::event::Resident;

/// Minimum interval between samples.
const EVERY: Duration = Duration::from_millis(10);

/// Maximum interval between samples.
const LONGEST: Duration = Duration::from_secs(1);

/// Maximum interval between samples of a process that uses no CPU time, and the factor by which such intervals grow.
const IDLE: (Duration, u32) = (Duration::from_secs(20), 4);

/// A process is idle if it uses less than this part of the time.
const IDLE_PART: u32 = 1000;

/// Without `--pages`, the next sample is taken after a hundredth of the time elapsed so far.
const PART: u32 = 100;

/// The sampling frequency for a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Often {
    Never,
    Seldom,
    Always,
}

impl Often {
    fn of(header: &Header) -> Self {
        let extras = Conditions(header.extras.load(Ordering::Relaxed));
        match (extras.has(Conditions::PAGES), extras.has(Conditions::RESIDENT)) {
            (true, _) => Self::Always,
            (false, true) => Self::Seldom,
            (false, false) => Self::Never,
        }
    }

    /// Returns the interval until the next sample, given the time since the first sample. Returns `None` if no further
    /// samples are taken.
    fn wait(self, so_far: Duration) -> Option<Duration> {
        match self {
            Self::Never => None,
            Self::Seldom => Some((so_far / PART).clamp(EVERY, LONGEST)),
            Self::Always => Some(EVERY),
        }
    }
}

/// Data from outside of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// The memory use reported by the kernel.
    Memory(Resident),
    /// A mark with this name.
    Mark(String),
}

/// External data, and the stamp of its time.
type MemorySample = (u64, Outside);

/// Maximum number of samples that are kept if nobody consumes them. They cover three hours.
const MOST: usize = 1 << 20;

/// Samples that have not been consumed yet, and the large blocks that are sampled.
#[derive(Debug, Default)]
pub(crate) struct MemorySamples {
    samples: Mutex<VecDeque<MemorySample>>,
    large: LargeBlocks,
}

impl MemorySamples {
    fn lock(&self) -> MutexGuard<'_, VecDeque<MemorySample>> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample. Its stamp is raised to the previous sample's stamp if necessary, because two threads may add
    /// samples in a different order than they took them.
    pub(crate) fn add(&self, stamp: u64, said: Outside) {
        let mut samples = self.lock();
        if samples.len() >= MOST {
            samples.pop_front();
        }
        let last = samples.back().map_or(0, |(stamp, _)| *stamp);
        samples.push_back((stamp.max(last), said));
    }

    /// Takes the last sample of a process that is still running when its recording ends, unless it is not to be sampled.
    /// The sample shows until when nothing else happened.
    pub(crate) fn add_last(&self, header: &Header, process: u32, stamp: u64) {
        if Often::of(header) != Often::Never {
            resident_of(process).into_iter().for_each(|resident| self.add(stamp, Outside::Memory(resident)));
        }
    }

    /// Drops samples taken before a stamp.
    pub(crate) fn forget(&self, before: u64) {
        let mut samples = self.lock();
        while samples.pop_front_if(|(stamp, _)| *stamp < before).is_some() {}
    }

    /// Returns a copy of the samples.
    pub(crate) fn copy(&self) -> Self {
        Self { samples: Mutex::new(self.lock().clone()), large: LargeBlocks::default() }
    }
}

/// Samples waiting to be written to a trace.
#[derive(Default)]
pub(crate) struct PendingSamples<'a> {
    from: Option<&'a MemorySamples>,
    queue: VecDeque<MemorySample>,
    large: KnownBlocks,
}

impl<'a> PendingSamples<'a> {
    pub(crate) fn new(from: &'a MemorySamples) -> Self {
        Self { from: Some(from), ..Self::default() }
    }

    /// Takes all available samples.
    pub(crate) fn fetch(&mut self) {
        if let Some(from) = self.from {
            self.queue.append(&mut from.lock());
        }
    }

    /// Follows an event, which may begin or end a large block.
    #[inline]
    pub(crate) fn follow(&mut self, event: &SpoolEvent) {
        self.large.follow(event, self.from.map(|from| &from.large));
    }

    /// Returns the addresses and the untouched bytes of the live large blocks that were sampled.
    pub(crate) fn untouched(&self) -> Vec<(u64, u64)> {
        self.from.map_or_else(Vec::new, |from| from.large.untouched())
    }

    /// Returns the next sample taken before a stamp.
    #[inline]
    pub(crate) fn next(&mut self, before: u64) -> Option<MemorySample> {
        self.queue.pop_front_if(|(stamp, _)| *stamp < before)
    }
}

/// A sampler for one process, in the thread of its keeper.
pub(crate) struct MemorySampler<'a> {
    often: Often,
    samples: &'a MemorySamples,
    clock: Clock,
    /// The process's `/proc/PID/statm`, once its ID is known.
    file: Option<File>,
    /// The times of the first and the last sample.
    asked: Option<(Instant, Instant)>,
    /// The process's CPU time at the last sample.
    used: Duration,
    /// The factor by which the interval has grown because the process is idle.
    growth: u32,
    untouched: UntouchedSampler,
}

impl<'a> MemorySampler<'a> {
    /// Creates a sampler with the frequency given in the process's header.
    pub(crate) fn new(header: &Header, samples: &'a MemorySamples, clock: Clock) -> Self {
        Self {
            often: Often::of(header),
            samples,
            clock,
            file: None,
            asked: None,
            used: Duration::ZERO,
            growth: 1,
            untouched: UntouchedSampler::default(),
        }
    }

    /// Takes a sample if one is due. `process` is 0 while it is unknown. If the process has just been active, pass
    /// `active`. Returns the time until the next sample is due, if there will be one.
    ///
    /// A process can touch memory without calling a hook, but not without using CPU time. Samples of a process that uses
    /// none are taken less and less often.
    pub(crate) fn tend(&mut self, process: u32, active: bool) -> Option<Duration> {
        if process == 0 || self.often == Often::Never {
            return None;
        }
        if active {
            self.growth = 1;
        }
        let now = Instant::now();
        let (first, last) = self.asked.unwrap_or((now, now));
        let wait = self.often.wait(last.duration_since(first))?;
        let wait = wait.max(wait.saturating_mul(self.growth).min(IDLE.0));
        let so_far = now.duration_since(last);
        if self.asked.is_some() && so_far < wait {
            return Some(wait - so_far);
        }
        self.asked = Some((first, now));
        if let Some(used) = cpu_time(process) {
            let is_idle = used.saturating_sub(self.used) < so_far / IDLE_PART;
            self.growth = if is_idle { self.growth.saturating_mul(IDLE.1) } else { 1 };
            self.used = used;
        }
        if self.file.is_none() {
            self.file = File::open(format!("/proc/{process}/statm")).ok();
        }
        let mut bytes = [0; 128];
        let read = self.file.as_ref().and_then(|file| file.read_at(&mut bytes, 0).ok());
        let text = read.and_then(|length| bytes.get(..length)).map(String::from_utf8_lossy);
        if let Some(resident) = text.and_then(|text| parse(&text)) {
            self.samples.add(self.clock.now(), Outside::Memory(resident));
            page_size().into_iter().for_each(|page| self.untouched.sample(process, page, &self.samples.large));
        }
        let wait = self.often.wait(now.duration_since(first))?;
        Some(wait.max(wait.saturating_mul(self.growth).min(IDLE.0)))
    }
}

/// Takes a sample of a process now. Returns `None` if the process does not exist.
pub fn resident_of(process: u32) -> Option<Resident> {
    parse(&std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?)
}

/// Returns the CPU time that a process has used.
fn cpu_time(process: u32) -> Option<Duration> {
    // The kernel's number for the clock of a process: the inverted process ID, and 2 for the time on a CPU.
    let clock = !process.cast_signed() << 3 | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a number, and a struct that the call fills.
    let result = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (result == 0).then(|| Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0)))
}

/// Returns the bytes of a page.
fn page_size() -> Option<u64> {
    // SAFETY: the argument and the result are numbers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}

/// Parses `size resident shared text lib data dt`, in pages. Zeros mean that the process has ended, and are not a
/// sample.
fn parse(text: &str) -> Option<Resident> {
    let page = page_size()?;
    let mut pages = text.split_ascii_whitespace().map(|number| number.parse::<u64>().ok()?.checked_mul(page));
    let [mapped, resident, shared, _, _, data] = [(); 6].map(|()| pages.next().flatten());
    let resident = Resident { resident: resident?, shared: shared?, data: data?, mapped: mapped? };
    Some(resident).filter(|resident| resident.mapped > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_of_this_process() {
        let samples = MemorySamples::default();
        let mut sampler = MemorySampler {
            often: Often::Always,
            samples: &samples,
            clock: Clock::Monotonic,
            file: None,
            asked: None,
            used: Duration::ZERO,
            growth: 1,
            untouched: UntouchedSampler::default(),
        };
        let before = Clock::Monotonic.now();
        assert_eq!(sampler.tend(0, false), None);
        assert!(sampler.tend(std::process::id(), false).is_some_and(|due| due <= EVERY));
        // The next sample is not due yet.
        assert!(sampler.tend(std::process::id(), false).is_some_and(|due| due <= EVERY));
        samples.forget(before);
        let copy = samples.copy();
        let mut waiting = PendingSamples::new(&samples);
        assert_eq!(waiting.next(u64::MAX), None);
        waiting.fetch();
        assert_eq!(waiting.next(before), None);
        let (stamp, said) = waiting.next(u64::MAX).unwrap();
        assert!(stamp >= before && waiting.next(u64::MAX).is_none());
        let Outside::Memory(resident) = said else { panic!("{said:?}") };
        assert!(resident.resident > 0 && resident.mapped >= resident.resident && resident.shared < resident.resident);
        assert_eq!(copy.lock().len(), 1);
        copy.forget(u64::MAX);
        assert!(copy.lock().is_empty() && samples.lock().is_empty());
    }

    #[test]
    fn a_sleeping_process_is_sampled_less_often() {
        let Ok(mut child) = std::process::Command::new("sleep").arg("60").spawn() else { return };
        let samples = MemorySamples::default();
        let header = Header::default();
        header.extras.store(Conditions::PAGES.0, Ordering::Relaxed);
        let mut sampler = MemorySampler::new(&header, &samples, Clock::Monotonic);
        let begun = Instant::now();
        let mut due = Duration::ZERO;
        while due < 16 * EVERY {
            std::thread::sleep(due);
            due = sampler.tend(child.id(), false).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        assert!(sampler.tend(child.id(), true).unwrap() <= EVERY);
        child.kill().unwrap();
        child.wait().unwrap();
        // This process uses CPU time.
        let mut sampler = MemorySampler::new(&header, &samples, Clock::Monotonic);
        for _ in 0..5 {
            let due = sampler.tend(std::process::id(), false).unwrap();
            assert!(due <= EVERY, "{due:?}");
            let begun = Instant::now();
            while begun.elapsed() <= due {}
        }
    }

    /// Times in a trace never decrease.
    #[test]
    fn stamps_ascend() {
        let samples = MemorySamples::default();
        samples.add(9, Outside::Memory(Resident::default()));
        samples.add(7, Outside::Mark("late".to_owned()));
        let mut waiting = PendingSamples::new(&samples);
        waiting.fetch();
        assert_eq!(waiting.next(9), None);
        assert_eq!(waiting.next(10), Some((9, Outside::Memory(Resident::default()))));
        assert_eq!(waiting.next(10), Some((9, Outside::Mark("late".to_owned()))));
    }

    #[test]
    fn how_often() {
        let waits = |often: Often| [0, 900, 5_000, 1_000_000].map(|so_far| often.wait(Duration::from_millis(so_far)));
        let of = |milliseconds: [u64; 4]| milliseconds.map(|milliseconds| Some(Duration::from_millis(milliseconds)));
        assert_eq!(waits(Often::Always), of([10; 4]));
        assert_eq!(waits(Often::Seldom), of([10, 10, 50, 1000]));
        assert_eq!(waits(Often::Never), [None; 4]);
    }

    #[test]
    fn lines() {
        let found = parse("10 5 2 1 0 4 0\n").unwrap();
        let page = page_size().unwrap();
        let expected = Resident { resident: 5 * page, shared: 2 * page, data: 4 * page, mapped: 10 * page };
        assert_eq!((found, found.private()), (expected, 3 * page));
        for text in ["", "1 2 3", "1 2 3 4 5 x", "18446744073709551615 1 1 1 1 1 1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
