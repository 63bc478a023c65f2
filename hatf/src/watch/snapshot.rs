//! The numbers at one moment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::follow::{About, End, Followed, Reading};
use crate::analysis::{Glance, Timeline};
use crate::event::UserMetadata;
use crate::record::{SpoolState, resident_of};

/// Rates are those of this time.
const WINDOW: Duration = Duration::from_secs(2);

/// How long after its end a recording may take to finish its trace.
const FINISHES: Duration = Duration::from_secs(2);

/// What becomes of the program and its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The trace has nothing yet.
    #[default]
    Waiting,
    /// What the trace has is being read.
    Reading,
    /// It is being recorded.
    Recorded,
    /// The trace is whole, and says how the program ended, unless it went on.
    Ended(Option<End>),
    /// The trace has no end, and nobody writes it.
    Abandoned,
    /// The trace cannot be read on.
    Damaged(String),
}

/// The numbers at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// The program and its arguments.
    pub program: String,
    /// What becomes of it.
    pub state: State,
    /// The heap.
    pub glance: Glance,
    /// Events in a second, lately.
    pub rate: u64,
    /// What is in the spool, while it is being recorded.
    pub spool: Option<SpoolState>,
    /// The program's own pages that have memory, in bytes, over the trace's time, as far as they are known.
    pub resident: Timeline,
    /// What is odd about the trace.
    pub warnings: Vec<String>,
}

/// Makes snapshots.
pub struct Snapshots {
    followed: Arc<Followed>,
    /// Moments, the last times in the trace, and events by then.
    before: VecDeque<(Instant, u64, u64)>,
    /// What the kernel said of the process while it was watched.
    resident: Timeline,
    /// When there was a recording last.
    recorded: Instant,
}

impl Snapshots {
    /// Makes snapshots of a trace.
    #[must_use]
    pub fn new(followed: Arc<Followed>) -> Self {
        Self { followed, before: VecDeque::new(), resident: Timeline::default(), recorded: Instant::now() }
    }

    /// Makes one. `spool` is the state of its recording, if there is one.
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
        // Its own pages alone: the spool is shared.
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

    /// Returns events in a second of the trace while it is read from its beginning, and of ours while it grows.
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

/// Returns the program and its arguments, or the program's name in a trace that is private.
fn program(user_metadata: &UserMetadata) -> String {
    let words = user_metadata.get("command").and_then(|command| command.as_array());
    let words: Vec<_> = words.into_iter().flatten().filter_map(|word| word.as_str()).collect();
    let name = || user_metadata.get("program").and_then(|program| program.as_str()).unwrap_or_default();
    if words.is_empty() { name().to_owned() } else { words.join(" ") }
}
