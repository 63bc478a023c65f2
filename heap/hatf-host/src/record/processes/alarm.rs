//! Wakes the threads that record processes when something happens outside of the spools: a process ends, a signal
//! arrives, or a control file changes.
//!
//! A thread that records a process waits for the bells in its spool, and a thread cannot wait for a futex and for file
//! descriptors at the same time. Therefore one thread waits for the file descriptors of all processes and rings their
//! bells.

use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hatf_record::{Header, Work};
use rustix::fs::inotify;
use rustix::process::{Resource, getrlimit};

use super::process::ProcessEnd;

/// The numbers of file descriptors that do not belong to a process.
const SIGNALS: u64 = 0;
const FILES: u64 = 1;
/// Minimum limit on open files with which the alarm opens files.
const FILES_LEAST: u64 = 64;
/// Maximum number of file descriptors that are reported at a time.
const REPORTS: u8 = 64;

/// The descriptor of the counter to which signal handlers add, or -1 if there is none.
static COUNTER: AtomicI32 = AtomicI32::new(-1);

/// Returns the counter to which signal handlers add, which lives as long as this process. It is always readable.
fn counter() -> Option<&'static OwnedFd> {
    static FD: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let fd = FD.get_or_init(|| {
        // SAFETY: the arguments are numbers.
        let fd = unsafe { libc::eventfd(1, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        // SAFETY: the descriptor was just created and has no other owner.
        (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
    });
    COUNTER.store(fd.as_ref().map_or(-1, |fd| fd.as_raw_fd()), Ordering::SeqCst);
    fd.as_ref()
}

/// Wakes the threads of all alarms. May be called in a signal handler.
pub(crate) fn notify() {
    let fd = COUNTER.load(Ordering::SeqCst);
    if fd >= 0 {
        let one = 1_u64;
        // SAFETY: `errno` of this thread, and 8 bytes that are written to a descriptor that is never closed.
        unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::write(fd, (&raw const one).cast(), size_of::<u64>());
            *errno = before;
        }
    }
}

/// A process whose threads are woken.
struct Sleeper {
    number: u64,
    header: *const Header,
}

// SAFETY: a header consists of atomics, and the guard that removes the entry borrows it.
unsafe impl Send for Sleeper {}

impl Sleeper {
    fn ring(&self) {
        // SAFETY: the header is mapped until the guard has removed this entry.
        let header = unsafe { &*self.header };
        Work::ALL.into_iter().for_each(|work| header.ring_in_any_case(work));
    }
}

/// The file descriptors for which a thread waits, and the spools whose threads it wakes.
pub(crate) struct Alarm {
    epoll: Option<OwnedFd>,
    files: Option<OwnedFd>,
    sleepers: Mutex<Vec<Sleeper>>,
}

/// The kinds of reports since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reports {
    /// Whether [`notify`] was called.
    pub(super) notified: bool,
    /// Whether a file in a watched directory has changed.
    pub(super) files: bool,
}

impl Alarm {
    /// Creates an alarm. If this process may open few files, it needs them for recording, so the alarm has none and wakes
    /// all threads at intervals.
    pub(super) fn new() -> Self {
        let mut alarm = Self { epoll: None, files: None, sleepers: Mutex::default() };
        if getrlimit(Resource::Nofile).current.is_some_and(|limit| limit < FILES_LEAST) {
            return alarm;
        }
        // SAFETY: the argument is a number.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        // SAFETY: the descriptor was just created and has no other owner.
        alarm.epoll = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) });
        if !counter().is_some_and(|fd| alarm.add(fd, SIGNALS)) {
            alarm.epoll = None;
        }
        let files = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).ok();
        alarm.files = files.filter(|fd| alarm.add(fd, FILES));
        alarm
    }

    /// Adds a descriptor. Returns false if the system refuses.
    fn add(&self, fd: &OwnedFd, number: u64) -> bool {
        self.change(libc::EPOLL_CTL_ADD, fd, number)
    }

    /// Ends the current or the next call of [`Self::wait`]. Unlike [`notify`], concerns this alarm only, and does not
    /// depend on a write.
    pub(super) fn end_wait(&self) {
        // The counter is readable, so it is reported again.
        if let Some(fd) = counter() {
            self.change(libc::EPOLL_CTL_MOD, fd, SIGNALS);
        }
    }

    fn change(&self, operation: libc::c_int, fd: &OwnedFd, number: u64) -> bool {
        let Some(epoll) = &self.epoll else { return false };
        // Each change is reported once, so that several recordings in this process can share the counter.
        let events = libc::EPOLLIN.cast_unsigned() | libc::EPOLLET.cast_unsigned();
        let mut event = libc::epoll_event { events, u64: number };
        // SAFETY: two open descriptors, and a struct that the kernel reads.
        unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) == 0 }
    }

    /// Watches the files that are moved into a directory and, with `written`, files that are written there. Returns
    /// false if the system refuses.
    pub(super) fn watch(&self, folder: &Path, written: bool) -> bool {
        use inotify::WatchFlags as Flags;
        let written = if written { Flags::CREATE | Flags::MODIFY | Flags::CLOSE_WRITE } else { Flags::empty() };
        let flags = Flags::MOVED_TO | Flags::ONLYDIR | written;
        self.files.as_ref().is_some_and(|files| inotify::add_watch(files, folder, flags).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Sleeper>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that sleep on the bells of a spool, as long as the returned value lives, whenever the given
    /// process ends or all threads are to be woken.
    pub(crate) fn wake<'a>(&'a self, header: &'a Header, process: Option<&ProcessEnd>) -> Woken<'a> {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(FILES + 1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        self.lock().push(Sleeper { number, header });
        let has_process = process.and_then(ProcessEnd::fd).is_some_and(|fd| self.add(fd, number));
        Woken { alarm: self, number, has_process }
    }

    /// Wakes the threads of all processes.
    pub(crate) fn ring_all(&self) {
        self.lock().iter().for_each(Sleeper::ring);
    }

    /// Waits until something happens or the time is over. Wakes the threads of processes that have ended.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> Reports {
        let Some(epoll) = &self.epoll else {
            std::thread::sleep(timeout.unwrap_or_default());
            return Reports { files: false, notified: true };
        };
        let limit =
            timeout.map_or(-1, |timeout| libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX));
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; REPORTS as usize];
        // SAFETY: an open descriptor, and as many structs as stated, which the kernel fills.
        let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), REPORTS.into(), limit) };
        let mut reports = Reports::default();
        for event in events.iter().take(usize::try_from(count).unwrap_or_default()) {
            match event.u64 {
                SIGNALS => reports.notified = true,
                FILES => reports.files = true,
                number => self.lock().iter().filter(|sleeper| sleeper.number == number).for_each(Sleeper::ring),
            }
        }
        reports
    }

    /// Discards the kernel's reports on files, which must happen before the files are read.
    pub(super) fn discard(&self) {
        let mut bytes = [0; 4096];
        let Some(files) = &self.files else { return };
        while rustix::io::read(files.as_fd(), &mut bytes).is_ok_and(|length| length > 0) {}
    }
}

/// A registration that ends on drop.
pub(crate) struct Woken<'a> {
    alarm: &'a Alarm,
    number: u64,
    has_process: bool,
}

impl Woken<'_> {
    /// Returns whether the end of the process wakes its threads.
    pub(super) fn has_process(&self) -> bool {
        self.has_process
    }
}

impl Drop for Woken<'_> {
    fn drop(&mut self) {
        self.alarm.lock().retain(|sleeper| sleeper.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_end_of_a_process_wakes_its_sleepers() {
        let alarm = Alarm::new();
        let (ours, other) = (Header::default(), Header::default());
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let (_other, end) = (alarm.wake(&other, None), ProcessEnd::of(child.id()));
        let woken = alarm.wake(&ours, Some(&end));
        if !woken.has_process() {
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        }
        let words = Work::ALL.map(|work| (work, ours.lie_down(work), other.lie_down(work)));
        drop(child.stdin.take());
        let begun = Instant::now();
        while !ours.sleep(Work::Events, words[0].1, Duration::ZERO) {
            alarm.wait(Some(LONG));
            assert!(begun.elapsed() < LONG);
        }
        for (work, ours_word, other_word) in words {
            assert!(ours.sleep(work, ours_word, LONG) && !other.sleep(work, other_word, Duration::ZERO));
        }
        alarm.ring_all();
        assert!(other.sleep(Work::Chunks, words[1].2, LONG));
        drop(woken);
        let word = ours.lie_down(Work::Chunks);
        alarm.ring_all();
        assert!(!ours.sleep(Work::Chunks, word, Duration::ZERO));
        child.wait().unwrap();
    }

    #[test]
    fn files_and_signals_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let alarm = Alarm::new();
        assert!(alarm.watch(folder.path(), true));
        assert!(!alarm.watch(&folder.path().join("none"), true));
        for name in ["a", "b"] {
            std::fs::write(folder.path().join(name), "on").unwrap();
            while !alarm.wait(Some(LONG)).files {}
            alarm.discard();
        }
        notify();
        while !alarm.wait(Some(LONG)).notified {}
        assert_eq!(alarm.wait(Some(Duration::ZERO)), Reports::default());
        alarm.end_wait();
        assert!(alarm.wait(Some(LONG)).notified);
    }
}
