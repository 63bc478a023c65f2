//! The end of the recorded program, and its failed requests for memory.

use hatf_lab::{Heap, Observer};
use hatf_trace::event::{Event, EventKind, SEGMENT_END, UserMetadata};
use serde::Serialize;

/// The way in which the recorded program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The trace is not from `hatf record`, so it is unknown whether it extends to the end of a program.
    #[default]
    Unknown,
    /// The end of the program is missing: the recorder stopped before it, or could not observe it.
    NotRecorded,
    /// The trace is a segment of a recording that continues in the next segment.
    Continued,
    /// The trace is a snapshot of a running process, from `hatf inspect`.
    Snapshot,
    /// The program exited.
    Exited {
        /// The exit status.
        status: u64,
    },
    /// A signal killed the program.
    Killed {
        /// The number of the signal.
        signal: u64,
    },
    /// The kernel's OOM killer killed the program.
    OutOfMemory {
        /// The memory limit of the program's cgroup in bytes, if there is one.
        limit: Option<u64>,
    },
}

impl Ending {
    /// Returns whether the program decided to end. Otherwise, it could not free its blocks, so they are not leaks.
    #[must_use]
    pub fn is_exit(self) -> bool {
        matches!(self, Self::Exited { .. })
    }
}

/// A call that failed to allocate memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FailedRequest {
    /// The name of the C function.
    pub function: &'static str,
    /// The number of requested bytes.
    pub bytes: u64,
    /// The time of the call in nanoseconds.
    pub time: u64,
    /// The number of the stack of the call, or 0 if unknown.
    #[serde(skip)]
    pub site: u64,
}

/// An observer of the end of the program.
#[derive(Clone, Debug, Default)]
pub struct EndObserver {
    ending: Ending,
    /// Whether `hatf record` wrote the trace.
    is_recorded: bool,
    /// Whether the user metadata state that another segment follows.
    is_continued: bool,
    /// Whether `hatf inspect` wrote the trace.
    is_snapshot: bool,
    last_failed: Option<FailedRequest>,
    /// Whether recording is off.
    is_off: bool,
    /// Whether the user metadata states that the OOM killer killed the program.
    oom_kill: bool,
    /// The memory limit of the program's cgroup.
    limit: Option<u64>,
    /// Whether events were lost.
    has_losses: bool,
}

impl EndObserver {
    /// Creates an observer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the way in which the program ended.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match self.ending {
            Ending::Unknown if self.is_snapshot => Ending::Snapshot,
            Ending::Unknown if self.is_continued => Ending::Continued,
            Ending::Unknown if self.is_recorded => Ending::NotRecorded,
            Ending::Killed { .. } if self.oom_kill => Ending::OutOfMemory { limit: self.limit },
            ending => ending,
        }
    }

    /// Returns the last call that failed to allocate memory.
    #[must_use]
    pub fn last_failed(&self) -> Option<FailedRequest> {
        self.last_failed
    }

    /// Returns the memory limit of the program's cgroup in bytes.
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        self.limit
    }

    /// Returns whether every block that is live at the end was certainly never freed: the program exited, and the trace
    /// contains all events up to then.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.ending.is_exit() && !self.is_off && !self.has_losses
    }
}

impl Observer for EndObserver {
    #[inline]
    fn record(&mut self, event: &Event<'_>, heap: &Heap) -> hatf_lab::Result<()> {
        match event.kind {
            EventKind::Image { .. } => self.ending = Ending::Unknown,
            EventKind::Exit { status } => self.ending = Ending::Exited { status },
            EventKind::Killed { signal } => self.ending = Ending::Killed { signal },
            EventKind::Lost { events } => self.has_losses |= events > 0,
            EventKind::Recording { on } => self.is_off = !on,
            EventKind::Failed(call) => {
                self.last_failed = Some(FailedRequest {
                    function: call.function.name(),
                    bytes: call.size,
                    time: event.time,
                    site: heap.stacks.find(event.stack).unwrap_or(0),
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        self.oom_kill |= user_metadata.get("oom_kill").is_some_and(|kill| *kill == true);
        self.limit = self.limit.or(user_metadata.get("memory_limit").and_then(serde_json::Value::as_u64));
        self.is_continued |= user_metadata.contains_key(SEGMENT_END);
        self.is_snapshot |= user_metadata.contains_key("snapshot");
        self.is_recorded |= user_metadata.get("recorder").is_some_and(|recorder| !recorder.is_null());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatf_lab::HeapTracker;
    use hatf_trace::EventSink as _;
    use hatf_trace::event::{Call, Function};

    fn observe(recorder: &str, kinds: &[EventKind<'_>]) -> EndObserver {
        let mut tracker = HeapTracker::new(EndObserver::new());
        let user_metadata = [(recorder.to_owned(), "hatf".into())].into_iter().collect();
        tracker.user_metadata(&user_metadata).unwrap();
        for kind in kinds {
            let stack = (&[0x401136][..]).into();
            tracker.event(&Event { time: 7, stack, ..Event::new(*kind) }).unwrap();
        }
        tracker.into_parts().1
    }

    #[test]
    fn the_last_program_counts() {
        let image = EventKind::Image { process: 1, path: b"/bin/a" };
        let exit = EventKind::Exit { status: 3 };
        let of = |kinds: &[EventKind<'_>]| observe("recorder", kinds).ending();
        assert_eq!(of(&[image, exit]), Ending::Exited { status: 3 });
        assert_eq!(of(&[image, EventKind::Killed { signal: 9 }]), Ending::Killed { signal: 9 });
        assert_eq!(of(&[image, exit, image]), Ending::NotRecorded);
        assert_eq!(observe("host", &[image]).ending(), Ending::Unknown);
        assert_eq!(observe("snapshot", &[]).ending(), Ending::Snapshot);
        assert_eq!(observe("segment_end", &[image]).ending(), Ending::Continued);
        assert_eq!(observe("segment_end", &[image, exit]).ending(), Ending::Exited { status: 3 });
    }

    #[test]
    fn the_oom_killer_is_named() {
        let mut observer = observe("recorder", &[EventKind::Killed { signal: 9 }]);
        let user_metadata = [("oom_kill".to_owned(), true.into()), ("memory_limit".to_owned(), (1 << 20).into())];
        observer.user_metadata(&user_metadata.into_iter().collect());
        assert_eq!(observer.ending(), Ending::OutOfMemory { limit: Some(1 << 20) });
        assert!(!observer.is_complete());
    }

    #[test]
    fn incomplete_traces_show_no_leaks() {
        let exit = EventKind::Exit { status: 0 };
        let of = |kinds: &[EventKind<'_>]| observe("recorder", kinds).is_complete();
        assert!(of(&[exit]) && of(&[EventKind::Lost { events: 0 }, exit]));
        assert!(of(&[EventKind::Recording { on: false }, EventKind::Recording { on: true }, exit]));
        for kinds in [
            &[EventKind::Lost { events: 1 }, exit][..],
            &[EventKind::Recording { on: false }, exit],
            &[EventKind::Killed { signal: 15 }],
            &[],
        ] {
            assert!(!of(kinds), "{kinds:?}");
        }
    }

    #[test]
    fn the_last_failed_request_has_its_stack() {
        let call = |size| Call { size, ..Call::new(Function::Malloc) };
        let observed = observe("recorder", &[EventKind::Failed(call(5)), EventKind::Failed(call(1 << 20))]);
        let expected = FailedRequest { function: "malloc", bytes: 1 << 20, time: 7, site: 1 };
        assert_eq!(observed.last_failed(), Some(expected));
    }
}
