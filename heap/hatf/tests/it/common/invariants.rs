//! Invariants of every trace that the recorder writes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{HashMap, HashSet};
use std::path::Path;

use hatf_trace::event::Call;
use hatf_trace::forms::TraceReader;
use hatf_trace::{Event, EventKind, EventSource as _, Item};

/// Maximum number of listed violations of each kind.
const KEPT: usize = 3;

/// Checks a trace event by event.
#[derive(Default)]
pub(crate) struct Invariants {
    number: u64,
    /// The time of the last event.
    time: u64,
    /// The time of each thread's last event.
    times: HashMap<u64, u64>,
    started: HashSet<u64>,
    ended: HashSet<u64>,
    has_image: bool,
    /// The process has ended.
    is_over: bool,
    /// Addresses of live blocks.
    live: HashSet<u64>,
    /// Whether unrecorded blocks may be live or have ended, because recording was off, blocks were inherited or events
    /// were lost.
    uncertain: bool,
    broken: HashMap<&'static str, Vec<String>>,
    counts: HashMap<&'static str, u64>,
}

/// Returns the violations in a trace, one line for each kind.
pub(crate) fn broken(trace: &Path) -> Vec<String> {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut invariants = Invariants::default();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let is_image = matches!(event.kind, EventKind::Image { .. });
        invariants.check(&event);
        if is_image && !std::mem::replace(&mut invariants.has_image, true) {
            // A forked process inherits the blocks of its parent, which its trace does not list.
            invariants.uncertain = reader.user_metadata().contains_key("process");
        }
    }
    let Invariants { broken, counts, .. } = invariants;
    let mut lines: Vec<_> = broken
        .into_iter()
        .map(|(what, first)| format!("{what}: {} times: {}", counts[what], first.join("; ")))
        .collect();
    lines.sort();
    lines
}

impl Invariants {
    fn expect(&mut self, holds: bool, what: &'static str, event: &Event<'_>) {
        if holds {
            return;
        }
        *self.counts.entry(what).or_default() += 1;
        let first = self.broken.entry(what).or_default();
        if first.len() < KEPT {
            let Event { time, thread, kind, .. } = event;
            first.push(format!("event {}, time {time}, thread {thread}, {kind:?}", self.number));
        }
    }

    /// Checks the next event.
    pub(crate) fn check(&mut self, event: &Event<'_>) {
        self.number += 1;
        if let EventKind::Image { .. } = event.kind {
            self.times.clear();
            self.started.clear();
            self.ended.clear();
            self.live.clear();
            self.uncertain = false;
        }
        let thread = event.thread;
        let before = std::mem::replace(&mut self.time, event.time);
        self.expect(event.time >= before, "time goes back", event);
        self.expect(!self.is_over, "an event behind the end of the process", event);
        let last = self.times.insert(thread, event.time).unwrap_or(0);
        self.expect(event.time >= last, "a thread's time goes back", event);
        self.expect(!self.ended.contains(&thread), "an event of a thread that has ended", event);
        match event.kind {
            EventKind::ThreadStart { .. } => {
                let is_first = self.started.insert(thread);
                self.expect(is_first, "a thread begins twice", event);
            }
            EventKind::ThreadEnd => drop(self.ended.insert(thread)),
            EventKind::Exit { .. } | EventKind::Killed { .. } => self.is_over = true,
            // The live blocks are unknown when recording resumes, after lost events, and in a forked process.
            EventKind::Recording { .. } | EventKind::Lost { .. } => self.uncertain = true,
            EventKind::Call(Call { old, address, .. }) => {
                self.end(old, event);
                self.begin(address, event);
            }
            EventKind::ReallocEnd(Call { address, .. }) => self.begin(address, event),
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => self.end(address, event),
            _ => {}
        }
    }

    fn begin(&mut self, address: u64, event: &Event<'_>) {
        if address != 0 {
            let is_new = self.live.insert(address);
            self.expect(is_new || self.uncertain, "a block begins where one lives", event);
        }
    }

    fn end(&mut self, address: u64, event: &Event<'_>) {
        if address != 0 {
            let was = self.live.remove(&address);
            self.expect(was || self.uncertain, "a block ends that does not live", event);
        }
    }
}
