//! Reads a growing trace in a separate thread and maintains its totals.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hatf_lab::{Heap, HeapTracker, Observer};
use metatf::container::{GrowingFile, Reader};

use hatf_trace::event::{Event, EventKind, EventSink, UserMetadata, copy};
use hatf_trace::forms::{HEAP, Head};
use hatf_trace::heap::HeapReader;
use hatf_trace::{Error, Result};
use hatf_view::analysis::{ReportBuilder, Timeline};

/// Time for which the reader yields to threads waiting to access the heap.
const GIVE_WAY: Duration = Duration::from_micros(20);
/// Maximum number of warnings to keep.
const WARNINGS: usize = 8;

/// The end of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The program exited with this status.
    Exit(u64),
    /// The program was killed by this signal.
    Killed(u64),
}

/// Progress of reading a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// More records may follow.
    #[default]
    Going,
    /// All records have been read.
    Ended,
    /// Reading failed with this message.
    Failed(String),
}

/// Information from a trace that [`ReportBuilder`] does not collect.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The end of the program.
    pub end: Option<End>,
    /// The program's private resident pages over time, if the trace contains them.
    pub resident: Option<Timeline>,
}

impl Observer for Beside {
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        match record.kind {
            EventKind::Exit { status } => self.end = Some(End::Exit(status)),
            EventKind::Killed { signal } => self.end = Some(End::Killed(signal)),
            EventKind::Image { .. } => self.end = None,
            EventKind::Resident(resident) => {
                self.resident.get_or_insert_default().note(record.time, resident.private());
            }
            _ => {}
        }
        Ok(())
    }
}

/// The tracker of the heap, which the reading thread owns.
pub(super) type Tracker = HeapTracker<(ReportBuilder, Beside)>;

/// A trace that is being read.
pub struct Followed {
    tracker: Mutex<Tracker>,
    /// Number of threads waiting to access the heap. The reader yields to them.
    wanted: AtomicU32,
    about: Mutex<About>,
    /// Whether the current content of the file has been read completely.
    at_end: Arc<AtomicBool>,
}

/// Information about the trace itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Progress of reading.
    pub reading: Reading,
    /// User metadata of the trace.
    pub user_metadata: UserMetadata,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
}

/// Starts a thread that reads a growing heap.dtd trace. The thread ends with the process or at the end of the trace.
///
/// # Errors
/// Returns an error if the file does not exist or no thread can be created.
pub fn follow(path: &Path) -> Result<Arc<Followed>> {
    let name = path.display().to_string();
    let file = GrowingFile::open(path).map_err(Error::system(name.clone()))?;
    let tracker = HeapTracker::new((ReportBuilder::new(), Beside::default())).with_sizes_only();
    let (wanted, about, at_end) = (AtomicU32::new(0), Mutex::default(), file.at_end());
    let followed = Arc::new(Followed { tracker: Mutex::new(tracker), wanted, about, at_end });
    let reader = Arc::clone(&followed);
    let read = move || {
        let reading = match reader.read(file) {
            Ok(()) => Reading::Ended,
            Err(error) => Reading::Failed(error.to_string()),
        };
        reader.lock_about().reading = reading;
    };
    std::thread::Builder::new().name("hatf-reader".to_owned()).spawn(read).map_err(Error::system("a thread"))?;
    Ok(followed)
}

impl Followed {
    fn read(self: &Arc<Self>, file: GrowingFile) -> Result<()> {
        let failed = |error: metatf::Error| Error::Trace(error.to_string().into());
        let mut container = Reader::from_read(file).map_err(failed)?;
        let is_heap = (HEAP.sniff)(&Head { bytes: &[], trace: Some(&container) });
        if !is_heap || container.header().version == 0 {
            return Err(Error::Trace("only heap-format traces written by hatf record can be watched".into()));
        }
        let about = Arc::clone(self);
        container.on_warning(move |warning| {
            let warnings = &mut about.lock_about().warnings;
            if warnings.len() < WARNINGS {
                warnings.push(warning.to_string());
            }
        });
        copy(&mut HeapReader::of(container)?, &mut Reads(self))
    }

    /// Calls `look` with the current heap.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Tracker) -> T) -> T {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let tracker = self.lock();
        self.wanted.fetch_sub(1, Ordering::SeqCst);
        look(&tracker)
    }

    /// Returns whether the current content of the file has been read completely.
    pub fn is_at_end(&self) -> bool {
        self.at_end.load(Ordering::Relaxed)
    }

    /// Returns information about the trace itself.
    pub fn about(&self) -> About {
        self.lock_about().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Tracker> {
        self.tracker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_about(&self) -> MutexGuard<'_, About> {
        self.about.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink that updates the heap. Other threads can access the heap between two events.
struct Reads<'f>(&'f Followed);

impl EventSink for Reads<'_> {
    #[inline]
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        while self.0.wanted.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(GIVE_WAY);
        }
        self.0.lock().event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.0.lock().comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.0.lock_about().user_metadata.extend(user_metadata.clone());
        self.0.lock().user_metadata(user_metadata)
    }
}
