//! Figures at one point in time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::follow::{About, End, Followed, Reading};
use hatf_host::record::{SpoolState, resident_of};
use hatf_trace::event::UserMetadata;
use hatf_view::analysis::{Glance, Timeline};

/// Time over which rates are measured.
const WINDOW: Duration = Duration::from_secs(2);

/// Time within which a recording should finish its trace after the program ends.
const FINISHES: Duration = Duration::from_secs(2);

/// State of the program and its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The trace is still empty.
    #[default]
    Waiting,
    /// The existing part of the trace is being read.
    Reading,
    /// The program is being recorded.
    Recorded,
    /// The trace is complete. It contains the program's end, unless the program outlived the recording.
    Ended(Option<End>),
    /// The trace is incomplete, and no process is writing it.
    Abandoned,
    /// The rest of the trace cannot be read.
    Damaged(String),
}

/// Figures at one point in time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The program and its arguments.
    pub program: String,
    /// State of the program and its trace.
    pub state: State,
    /// The heap.
    pub glance: Glance,
    /// Recent number of events per second.
    pub rate: u64,
    /// State of the spool, while the program is being recorded.
    pub spool: Option<SpoolState>,
    /// The known part of the program's private resident pages over time, in bytes.
    pub resident: Timeline,
    /// Warnings about the trace.
    pub warnings: Vec<String>,
}

/// Source of snapshots.
pub struct Snapshots {
    followed: Arc<Followed>,
    /// Earlier points in time, each with the latest trace time and the number of events up to that point.
    before: VecDeque<(Instant, u64, u64)>,
    /// Resident pages that the kernel reported while the program was watched.
    resident: Timeline,
    /// Time at which the recording was last seen running.
    recorded: Instant,
}

impl Snapshots {
    /// Prepares to take snapshots of a trace.
    #[must_use]
    pub fn new(followed: Arc<Followed>) -> Self {
        Self { followed, before: VecDeque::new(), resident: Timeline::default(), recorded: Instant::now() }
    }

    /// Takes a snapshot. `spool` is the state of the recording's spool, if a recording is running.
    #[must_use]
    pub fn snapshot(&mut self, spool: Option<SpoolState>) -> Snapshot {
        let (glance, beside) = self.followed.look(|tracker| {
            let (report, beside) = tracker.observer();
            (report.glance(tracker.heap()), beside.clone())
        });
        let About { reading, user_metadata, warnings } = self.followed.about();
        if spool.is_some() {
            self.recorded = Instant::now();
        }
        // Count only private pages, because the spool is shared memory.
        let kernel = spool.and_then(|spool| resident_of(spool.process));
        if let Some(resident) = kernel {
            self.resident.note(glance.now, resident.private());
        }
        let state = match reading {
            Reading::Failed(why) => State::Damaged(why),
            Reading::Ended => State::Ended(beside.end),
            Reading::Going if spool.is_none() && !self.followed.is_at_end() => State::Reading,
            Reading::Going if self.recorded.elapsed() > FINISHES => State::Abandoned,
            Reading::Going if user_metadata.is_empty() => State::Waiting,
            Reading::Going => State::Recorded,
        };
        let rate = self.rate(&glance);
        let resident = beside.resident.unwrap_or_else(|| self.resident.clone());
        Snapshot { program: program(&user_metadata), state, glance, rate, spool, resident, warnings }
    }

    /// Returns the number of events per second. Seconds are trace time while the existing part is read, and real time
    /// while the trace grows.
    fn rate(&mut self, glance: &Glance) -> u64 {
        let now = (Instant::now(), glance.now, glance.totals.records);
        self.before.push_back(now);
        while self.before.len() > 2 && self.before.get(1).is_some_and(|(at, ..)| at.elapsed() >= WINDOW) {
            self.before.pop_front();
        }
        let first = self.before.front().copied().unwrap_or(now);
        let ours = u64::try_from((now.0 - first.0).as_nanos()).unwrap_or(u64::MAX);
        let time = ours.max(now.1.saturating_sub(first.1)).max(1);
        let rate = u128::from(now.2.saturating_sub(first.2)) * 1_000_000_000 / u128::from(time);
        if ours == 0 { 0 } else { u64::try_from(rate).unwrap_or(u64::MAX) }
    }
}

/// Returns the program and its arguments, or only the program's name if the arguments are private.
fn program(user_metadata: &UserMetadata) -> String {
    let words = user_metadata.get("command").and_then(|command| command.as_array());
    let words: Vec<_> = words.into_iter().flatten().filter_map(|word| word.as_str()).collect();
    let name = || user_metadata.get("program").and_then(|program| program.as_str()).unwrap_or_default();
    if words.is_empty() { name().to_owned() } else { words.join(" ") }
}
