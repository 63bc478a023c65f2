//! Collects the data of a trace, other than blocks, that its profile contains: the memory map and the program.

use std::collections::HashSet;

use hatf_lab::{Heap, Observer};

use hatf_trace::event::{Event, EventKind, UserMetadata};
use hatf_trace::stacks::{Module, Modules};

/// An [`Observer`] that collects the loaded modules and user metadata.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_trace::{Event, EventKind, EventSink};
/// use hatf_view::profile::Collect;
///
/// let mut tracker = HeapTracker::new(Collect::new());
/// let (start, end, name) = (0x1000, 0x2000, b"0a1b /bin/program");
/// tracker.event(&Event::new(EventKind::ModuleLoad { bias: start, start, end, name }))?;
/// tracker.event(&Event { time: 500, ..Event::malloc(0x8000, 24) })?;
///
/// let (_, collect) = tracker.into_parts();
/// let (modules, about) = collect.into_parts();
/// assert_eq!((modules[0].path.as_str(), modules[0].build_id.as_str()), ("/bin/program", "0a1b"));
/// assert_eq!(about["duration_ns"], 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Collect {
    modules: Modules,
    seen: HashSet<(u64, u64, u64, String)>,
    loaded: Vec<Module>,
    about: UserMetadata,
    /// The time of the last record, in nanoseconds since the start.
    duration: u64,
}

/// The user metadata keys that a profile copies from its trace.
const ABOUT: [&str; 4] = ["program", "command", "sampling", "start"];

/// The user metadata key for the time in nanoseconds from the start of a trace to its last record.
pub(super) const DURATION: &str = "duration_ns";

impl Collect {
    /// Creates an empty collector.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the modules in the order in which they were first loaded, and the user metadata.
    #[must_use]
    pub fn into_parts(mut self) -> (Vec<Module>, UserMetadata) {
        self.about.insert(DURATION.to_owned(), self.duration.into());
        (self.loaded, self.about)
    }
}

impl Observer for Collect {
    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        self.duration = self.duration.max(record.time);
        self.modules.note(&record.kind);
        if let EventKind::ModuleLoad { .. } = record.kind
            && let Some(module) = self.modules.last()
        {
            let number = self.loaded.len();
            if self.seen.insert((module.start, module.end, module.bias, module.path.clone())) {
                self.loaded.push(Module { number, ..module.clone() });
            }
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let about = user_metadata.iter().filter(|(key, value)| ABOUT.contains(&key.as_str()) && !value.is_null());
        self.about.extend(about.map(|(key, value)| (key.clone(), value.clone())));
    }
}
