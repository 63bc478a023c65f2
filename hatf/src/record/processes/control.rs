//! Recording that is turned off and on from outside: by a file that says so, or by a signal to this process.

use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hatf_record::Header;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes of the file that count.
const BEGINNING: usize = 32;

/// ControlSignals that came, to turn recording off or on.
static TOGGLES: AtomicU32 = AtomicU32::new(0);
/// ControlSignals that came, for a trace of what is kept.
static DUMPS: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_toggle(_: libc::c_int) {
    TOGGLES.fetch_add(1, Ordering::Relaxed);
}

extern "C" fn on_dump(_: libc::c_int) {
    DUMPS.fetch_add(1, Ordering::Relaxed);
}

/// What is wanted of all processes of a recording.
pub(crate) struct Control {
    /// ControlSignals that had come when the recording began.
    toggles: u32,
    dump_signals: u32,
    /// How often the file asked for a trace.
    dumps: AtomicU32,
    /// The file as it was then.
    file: Option<WatchedFile>,
    /// How often somebody asked, and in the lowest bit whether recording is to be off; 0: nobody did.
    wanted: AtomicU32,
    stop: AtomicBool,
}

impl Control {
    /// Makes one before the program runs. What the file says by then does not count.
    pub(crate) fn new(file: Option<PathBuf>) -> Self {
        let file = file.map(|file| WatchedFile { last: beginning(&file), file });
        let (wanted, dumps, stop) = (AtomicU32::new(0), AtomicU32::new(0), AtomicBool::new(false));
        let (toggles, dump_signals) = (TOGGLES.load(Ordering::Relaxed), DUMPS.load(Ordering::Relaxed));
        Self { toggles, dump_signals, dumps, file, wanted, stop }
    }

    /// Asks all processes that do not know yet; `seen` is what this one knows.
    pub(crate) fn apply(&self, seen: &mut u32, header: &Header) {
        let wanted = self.wanted.load(Ordering::Relaxed);
        if std::mem::replace(seen, wanted) != wanted {
            header.ask(wanted & 1 != 0);
        }
    }

    /// Returns how often somebody asked all processes for a trace of what is kept.
    pub(crate) fn dumps(&self) -> u32 {
        let signals = DUMPS.load(Ordering::Relaxed).wrapping_sub(self.dump_signals);
        self.dumps.load(Ordering::Relaxed).wrapping_add(signals)
    }

    /// Returns whether there is a file.
    pub(crate) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    fn ask(&self, off: bool) {
        let before = self.wanted.load(Ordering::Relaxed);
        self.wanted.store((before & !1).wrapping_add(2) | u32::from(off), Ordering::Relaxed);
    }

    /// Ends [`Control::run`].
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Looks at the file and for signals until it is stopped. A signal asks for what the first process is not.
    pub(crate) fn run(&self, first: &Header) {
        let (mut file, mut toggles) = (self.file.clone(), self.toggles);
        while !self.stop.load(Ordering::Relaxed) {
            let came = TOGGLES.load(Ordering::Relaxed);
            if came.wrapping_sub(std::mem::replace(&mut toggles, came)) % 2 == 1 {
                self.ask(first.off.load(Ordering::Relaxed) == 0);
            }
            let text = file.as_mut().and_then(WatchedFile::changed);
            match text.as_deref().and_then(|text| text.split_whitespace().next()) {
                Some("on" | "start") => self.ask(false),
                Some("off" | "stop") => self.ask(true),
                Some("dump") => drop(self.dumps.fetch_add(1, Ordering::Relaxed)),
                _ => {}
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// A file that is looked at now and then.
#[derive(Clone)]
struct WatchedFile {
    file: PathBuf,
    last: Option<String>,
}

impl WatchedFile {
    /// Returns the beginning of the file, if it is another than before.
    fn changed(&mut self) -> Option<String> {
        let text = beginning(&self.file);
        if text == self.last {
            return None;
        }
        self.last = text;
        self.last.clone()
    }
}

/// Reads the beginning of a regular file, in small letters; others could keep us waiting.
fn beginning(file: &Path) -> Option<String> {
    use std::io::Read as _;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = [0; BEGINNING];
    let length = std::fs::File::open(file).ok()?.read(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(bytes.get(..length)?).to_lowercase())
}

/// Takes signals for the time that it lives.
pub(crate) struct ControlSignals([Option<(libc::c_int, libc::sigaction)>; 2]);

impl ControlSignals {
    /// Takes those that turn recording off and on, and ask for a trace.
    pub(crate) fn take(toggle: Option<i32>, dump: Option<i32>) -> Self {
        let take = |signal: Option<i32>, handler: extern "C" fn(libc::c_int)| {
            let signal = signal?;
            // SAFETY: zero is a value of this structure of integers and pointers; the handler changes an atomic.
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
            // SAFETY: the action that the system returned before.
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
        for (text, expected) in [("on\n", Some("on\n")), ("On\n", None), ("DUMP 2", Some("dump 2")), ("", Some(""))] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(watched.changed().as_deref(), expected, "{text}");
        }
        // A folder, and a file that would be read for ever.
        for other in [folder.path(), Path::new("/dev/zero")] {
            assert_eq!(beginning(other), None);
        }
    }

    #[test]
    fn each_question_is_another() {
        let (control, header, mut seen) = (Control::new(None), Header::default(), 0);
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
