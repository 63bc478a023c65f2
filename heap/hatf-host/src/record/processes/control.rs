//! External requests to a recording, by files or by signals to this process: to turn recording off and on, to set a
//! mark, or to flush sooner.

use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hatf_record::{Clock, Header};

use super::alarm::{Alarm, notify};
use crate::record::order::{MemorySamples, Outside};
use crate::record::spool::{CONTROL, WATCHED};

/// The time from a change of a file until the file is read, so that several changes are one. Also the interval at which
/// the files are checked if the kernel does not report changes.
const LOOK: Duration = Duration::from_millis(20);
/// The interval at which the user's file is checked. The kernel does not report a change by another machine, or of a
/// file to which a symbolic link points.
const USERS_FILE: Duration = Duration::from_secs(1);
/// The interval at which it is checked whether somebody still watches.
const STILL_WATCHED: Duration = Duration::from_millis(500);
/// The number of bytes to read from the beginning of the file.
const BEGINNING: usize = 256;
/// Maximum number of external marks.
const MARKS: usize = 1 << 16;
/// The time for which a recording counts as watched after the file was touched.
const TOUCHED: Duration = Duration::from_secs(3);

/// The number of signals received that turn recording off or on.
static TOGGLES: AtomicU32 = AtomicU32::new(0);
/// The number of signals received that request a trace of the kept part.
static DUMPS: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_toggle(_: libc::c_int) {
    TOGGLES.fetch_add(1, Ordering::Relaxed);
    notify();
}

extern "C" fn on_dump(_: libc::c_int) {
    DUMPS.fetch_add(1, Ordering::Relaxed);
    notify();
}

/// The requests to all processes of a recording.
pub(crate) struct Control {
    /// The numbers of signals received before the recording began.
    toggles: u32,
    dump_signals: u32,
    /// The number of times that the file requested a trace.
    dumps: AtomicU32,
    /// The control files to check, which are the user's file and the spool's file, with the content that was read last.
    files: Vec<WatchedFile>,
    /// The file that is touched while somebody watches.
    touched: PathBuf,
    watched: AtomicBool,
    clock: Clock,
    /// Stamps and names of marks.
    marks: Mutex<Vec<(u64, String)>>,
    /// The number of requests to turn recording on or off, or 0 if there was no request. The lowest bit is set if
    /// recording is to be off.
    wanted: AtomicU32,
    stop: AtomicBool,
    /// Wakes the threads that serve requests, and this one.
    pub(crate) alarm: Alarm,
}

impl Control {
    /// Creates the state before the program runs. The initial content of the files is not executed. `spool` is the
    /// directory of the first process's spool, and `clock` its stamp clock.
    pub(crate) fn new(file: Option<PathBuf>, spool: &Path, clock: Clock) -> Self {
        let files = file.into_iter().chain([spool.join(CONTROL)]);
        Self {
            toggles: TOGGLES.load(Ordering::Relaxed),
            dump_signals: DUMPS.load(Ordering::Relaxed),
            dumps: AtomicU32::new(0),
            files: files.map(|file| WatchedFile { last: beginning(&file), file }).collect(),
            touched: spool.join(WATCHED),
            watched: AtomicBool::new(false),
            clock,
            marks: Mutex::default(),
            wanted: AtomicU32::new(0),
            stop: AtomicBool::new(false),
            alarm: Alarm::new(),
        }
    }

    /// Forwards the current request to a process unless the process has already seen it. `seen` is the last request
    /// that the process has seen.
    pub(crate) fn apply(&self, seen: &mut u32, header: &Header) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if std::mem::replace(seen, wanted) != wanted {
            header.ask(wanted & 1 != 0);
        }
    }

    /// Returns the number of times that all processes were asked for a trace of the kept part.
    pub(crate) fn dumps(&self) -> u32 {
        let signals = DUMPS.load(Ordering::Relaxed).wrapping_sub(self.dump_signals);
        self.dumps.load(Ordering::Relaxed).wrapping_add(signals)
    }

    /// Returns whether somebody is watching the recording and expects to see events soon.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Relaxed)
    }

    /// Returns the number of marks set so far.
    pub(crate) fn marks_by_now(&self) -> usize {
        self.lock_marks().len()
    }

    /// Adds the marks after the first `seen` marks to the samples of a process, and updates `seen`.
    pub(crate) fn marks(&self, seen: &mut usize, samples: &MemorySamples) {
        let marks = self.lock_marks();
        for (stamp, name) in marks.get(*seen..).unwrap_or_default() {
            samples.add(*stamp, Outside::Mark(name.clone()));
        }
        *seen = marks.len();
    }

    fn lock_marks(&self) -> MutexGuard<'_, Vec<(u64, String)>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, name: &str) {
        let mut marks = self.lock_marks();
        if marks.len() < MARKS && !name.is_empty() {
            marks.push((self.clock.now(), name.to_owned()));
        }
    }

    /// Executes the first line of a file.
    fn obey(&self, text: &str) {
        let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word.to_lowercase().as_str() {
            "on" | "start" => self.ask(false),
            "off" | "stop" => self.ask(true),
            "dump" => drop(self.dumps.fetch_add(1, Ordering::Relaxed)),
            "mark" => self.mark(rest.trim()),
            _ => {}
        }
    }

    fn ask(&self, off: bool) {
        let before = self.wanted.load(Ordering::Relaxed);
        self.wanted.store((before & !1).wrapping_add(2) | u32::from(off), Ordering::Relaxed);
    }

    /// Ends [`Control::run`].
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.alarm.end_wait();
        self.alarm.ring_all();
    }

    /// Waits for changes of the files, for signals and for the ends of processes until stopped. A signal requests the
    /// opposite of the first process's state.
    pub(crate) fn run(&self, first: &Header) {
        let (mut files, mut toggles) = (self.files.clone(), self.toggles);
        let mut served = Default::default();
        let waits = self.watch_files();
        while !self.stop.load(Ordering::Relaxed) {
            self.alarm.discard();
            let came = TOGGLES.load(Ordering::Relaxed);
            if came.wrapping_sub(std::mem::replace(&mut toggles, came)) % 2 == 1 {
                self.ask(first.off.load(Ordering::Relaxed) == 0);
            }
            files.iter_mut().filter_map(WatchedFile::changed).for_each(|text| self.obey(&text));
            let is_watched = is_touched(&self.touched);
            let was_watched = self.watched.swap(is_watched, Ordering::Relaxed);
            let requests = (self.wanted.load(Ordering::Relaxed), self.dumps(), self.marks_by_now());
            if std::mem::replace(&mut served, requests) != requests || is_watched && !was_watched {
                self.alarm.ring_all();
            }
            let timeout = match () {
                () if !waits => Some(LOOK),
                () if is_watched => Some(STILL_WATCHED),
                () => Some(USERS_FILE).filter(|_| self.files.len() > 1),
            };
            let reports = self.alarm.wait(timeout);
            if reports.notified {
                self.alarm.ring_all();
            }
            if reports.files && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Makes the kernel report changes of the files. Returns false if it cannot.
    fn watch_files(&self) -> bool {
        let [users @ .., _] = self.files.as_slice() else { return false };
        // If the directory of the user's file does not exist yet, the file is checked at intervals anyway.
        for file in users {
            let folder = file.file.parent().filter(|folder| !folder.as_os_str().is_empty());
            self.alarm.watch(folder.unwrap_or(Path::new(".")), true);
        }
        // The files in the directory of the spool are moved there.
        self.touched.parent().is_some_and(|folder| self.alarm.watch(folder, false))
    }
}

/// Returns whether a file was touched recently.
fn is_touched(file: &Path) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified()).ok();
    // If the clock has been set back in the meantime, the age is unknown.
    modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age < TOUCHED)
}

/// A file that is checked periodically.
#[derive(Clone)]
struct WatchedFile {
    file: PathBuf,
    last: Option<String>,
}

impl WatchedFile {
    /// Returns the beginning of the file if it has changed.
    fn changed(&mut self) -> Option<String> {
        let text = beginning(&self.file);
        if text == self.last {
            return None;
        }
        self.last = text;
        self.last.clone()
    }
}

/// Reads the beginning of a regular file. Reading other kinds of files could block.
fn beginning(file: &Path) -> Option<String> {
    use std::io::Read as _;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = [0; BEGINNING];
    let length = std::fs::File::open(file).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).into_owned())
}

/// A value that handles signals as long as it lives.
pub(crate) struct ControlSignals([Option<(libc::c_int, libc::sigaction)>; 2]);

impl ControlSignals {
    /// Installs handlers for the signals that turn recording off and on and that request a trace.
    pub(crate) fn take(toggle: Option<i32>, dump: Option<i32>) -> Self {
        let take = |signal: Option<i32>, handler: extern "C" fn(libc::c_int)| {
            let signal = signal?;
            // SAFETY: all zeros is a valid value of this struct of integers and pointers; the handler only changes an
            // atomic.
            unsafe {
                let (mut before, mut ours): (libc::sigaction, libc::sigaction) =
                    (std::mem::zeroed(), std::mem::zeroed());
                ours.sa_sigaction = handler as usize;
                ours.sa_flags = libc::SA_RESTART;
                (libc::sigaction(signal, &raw const ours, &raw mut before) == 0).then_some((signal, before))
            }
        };
        Self([take(toggle, on_toggle), take(dump, on_dump)])
    }
}

impl Drop for ControlSignals {
    fn drop(&mut self) {
        for (signal, before) in self.0.iter().flatten() {
            // SAFETY: this is the action that the system returned before.
            unsafe { libc::sigaction(*signal, before, null_mut()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("control");
        let mut watched = WatchedFile { file: file.clone(), last: None };
        assert_eq!(watched.changed(), None);
        for (text, expected) in [("on\n", Some("on\n")), ("on\n", None), ("DUMP 2", Some("DUMP 2")), ("", Some(""))] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(watched.changed().as_deref(), expected, "{text}");
        }
        // A directory, and a file of endless length.
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert_eq!(beginning(other), None);
        }
    }

    /// A process that begins later does not receive earlier marks.
    #[test]
    fn marks_have_names() {
        let control = Control::new(None, Path::new("/dev/null/none"), Clock::Monotonic);
        ["mark", "mark  ", "marks a", "Mark The first one \n2\n", "mark b"].iter().for_each(|text| control.obey(text));
        let (samples, mut seen) = (MemorySamples::default(), 1);
        control.marks(&mut seen, &samples);
        assert_eq!((seen, control.marks_by_now()), (2, 2));
        let names: Vec<_> = control.lock_marks().iter().map(|(_, name)| name.clone()).collect();
        assert_eq!(names, ["The first one", "b"]);
        assert!(!control.is_watched() && !is_touched(Path::new("/dev/null/none")));
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(is_touched(file.path()));
        file.as_file().set_modified(std::time::SystemTime::now() - TOUCHED).unwrap();
        assert!(!is_touched(file.path()));
    }

    #[test]
    fn each_question_is_another() {
        let nowhere = Path::new("/dev/null/none");
        let (control, header, mut seen) = (Control::new(None, nowhere, Clock::Monotonic), Header::default(), 0);
        control.apply(&mut seen, &header);
        assert!(!header.conditions().has(hatf_record::Conditions::CHANGE));
        for off in [false, false, true] {
            control.ask(off);
            control.apply(&mut seen, &header);
            assert!(header.clear(hatf_record::Conditions::CHANGE).has(hatf_record::Conditions::CHANGE));
            assert_eq!(header.off.load(Ordering::Relaxed), u32::from(off));
        }
    }
}
