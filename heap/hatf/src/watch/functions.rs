//! The functions that hold memory, computed by grouping all stacks so far by application function.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hatf_lab::sites::{Amount, Counts, Measure};

use super::follow::{Followed, Reading};
use hatf_trace::stacks::Stacks;
use hatf_view::calls::{Folding, Group, GroupBy, Groups, Places, title};

/// Sort order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Sort by live bytes.
    #[default]
    Live,
    /// Sort by recent growth.
    Growth,
    /// Sort by live blocks.
    Blocks,
    /// Sort by bytes allocated in total.
    Allocated,
}

impl Sort {
    /// All sort orders.
    pub const ALL: [Self; 4] = [Self::Live, Self::Growth, Self::Blocks, Self::Allocated];

    /// Returns the sort key of a function.
    #[must_use]
    pub fn of(self, function: &Function) -> i128 {
        match self {
            Self::Live => function.live.bytes.into(),
            Self::Growth => function.growth,
            Self::Blocks => function.live.blocks.into(),
            Self::Allocated => function.allocated.bytes.into(),
        }
    }

    pub(super) fn next(self) -> Self {
        let place = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL.get(place + 1).copied().unwrap_or_default()
    }
}

/// Number of functions to keep for each sort order.
const ROWS: usize = 100;
/// Maximum number of source lines in the name of a function.
const LINES: usize = 3;
/// Time over which growth is measured.
const GROWTH: Duration = Duration::from_secs(10);
/// Interval at which the live bytes of stacks are saved for measuring growth.
const REMEMBER: Duration = Duration::from_secs(1);

/// The memory of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Name of the function, with file and lines.
    pub name: String,
    /// Live blocks.
    pub live: Amount,
    /// Allocations in total.
    pub allocated: Amount,
    /// Recent growth of live memory in bytes.
    pub growth: i128,
}

/// The functions that hold the most memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// The top functions of each sort order, unsorted.
    pub rows: Vec<Function>,
    /// Totals over all functions.
    pub total: Function,
    /// Number of functions that hold memory.
    pub count: usize,
    /// Whether the trace has stacks.
    pub has_stacks: bool,
    /// Number of frames without a name so far.
    pub unnamed: usize,
    /// Time over which growth was measured.
    pub over: Duration,
}

impl Functions {
    /// Returns the rows in the given sort order.
    #[must_use]
    pub fn sorted(&self, sort: Sort) -> Vec<&Function> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by(|a, b| sort.of(b).cmp(&sort.of(a)).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}

/// A finder of the functions that hold memory, for a growing trace.
pub struct Finder {
    folding: Folding,
    stacks: Stacks,
    counts: Vec<Counts>,
    /// Number of locations already looked up.
    named: usize,
    /// Live bytes of each stack at earlier points in the trace's time.
    before: VecDeque<(Duration, Vec<u64>)>,
    /// The latest time in the trace, and the real time at which it was first seen.
    last: (Duration, Instant),
    /// Trace time of the last update.
    now: Duration,
}

impl Finder {
    /// Creates a finder that folds frames into their callers according to `folding`.
    #[must_use]
    pub fn new(folding: Folding) -> Self {
        let stacks = Stacks::default().finished();
        let last = (Duration::ZERO, Instant::now());
        Self { folding, stacks, counts: Vec::new(), named: 0, before: VecDeque::new(), last, now: Duration::ZERO }
    }

    /// Copies new stacks and counts from the heap.
    pub fn look(&mut self, followed: &Followed) {
        let stacks = &mut self.stacks;
        let (counts, time) = followed.look(|tracker| {
            stacks.catch_up(&tracker.heap().stacks);
            let (report, _) = tracker.observer();
            (report.site_counts(), Duration::from_nanos(report.now()))
        });
        self.counts = counts;
        if self.last.0 != time {
            self.last = (time, Instant::now());
        }
        // Time passes even while a running program produces no events.
        let waits = followed.is_at_end() && followed.about().reading == Reading::Going;
        let now = time + if waits { self.last.1.elapsed() } else { Duration::ZERO };
        self.now = now;
        if self.before.back().is_none_or(|(at, _)| now.saturating_sub(*at) >= REMEMBER) {
            let live = self.counts.iter().map(|site| site.leaked.bytes).collect();
            self.before.push_back((now, live));
        }
        while self.before.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= GROWTH) {
            self.before.pop_front();
        }
    }

    /// Returns the number of frames that have not been looked up.
    #[must_use]
    pub fn unnamed(&self) -> usize {
        self.stacks.locations().len() - self.named
    }

    /// Looks up the remaining frames. `name` adds functions to the locations from the given number on.
    pub fn name(&mut self, name: impl FnOnce(&mut Stacks, usize)) {
        name(&mut self.stacks, self.named);
        self.named = self.stacks.locations().len();
    }

    /// Returns the functions that hold the most memory.
    #[must_use]
    pub fn functions(&mut self) -> Functions {
        let oldest = self.before.front();
        for (site, counts) in self.counts.iter_mut().enumerate() {
            let bytes = oldest.and_then(|(_, live)| live.get(site)).copied().unwrap_or(0);
            counts.at = Some(Amount { blocks: 0, bytes });
        }
        let places = Places::new(&self.stacks, &self.folding, GroupBy::Function);
        let groups = Groups::new(&places, &self.counts);
        let named = groups.groups.iter().zip(places.keys());
        let mut all: Vec<(Function, Option<(&Group, _)>)> =
            named.map(|(group, place)| (numbers(&group.own), Some((group, place)))).collect();
        all.push((Function { name: "unknown stack".to_owned(), ..numbers(&groups.unknown) }, None));
        all.retain(|(function, _)| function.allocated.blocks > 0);
        let total = self.counts.iter().fold(Counts::default(), |mut sum, site| {
            sum.add(site);
            sum
        });
        let count = all.len();
        let mut first: Vec<usize> = Vec::new();
        for sort in Sort::ALL {
            let mut order: Vec<usize> = (0..count).collect();
            let of = |number: &usize| all.get(*number).map_or(0, |(function, _)| sort.of(function));
            order.sort_by_key(|number| (std::cmp::Reverse(of(number)), *number));
            first.extend(order.into_iter().take(ROWS));
        }
        first.sort_unstable();
        first.dedup();
        let row = |number: usize| {
            let (function, group) = all.get(number)?;
            let name = group.map_or_else(
                || function.name.clone(),
                |(group, place)| {
                    // Show the lines that hold the most memory.
                    let mut lines: Vec<_> = group.lines.iter().collect();
                    lines.sort_by_key(|(line, counts)| (std::cmp::Reverse(counts.get(Measure::Leaked).bytes), **line));
                    let lines: Vec<u64> = lines.into_iter().map(|(line, _)| *line).take(LINES).collect();
                    title(place, &lines)
                },
            );
            Some(Function { name, ..function.clone() })
        };
        Functions {
            rows: first.into_iter().filter_map(row).collect(),
            total: numbers(&total),
            count,
            has_stacks: self.stacks.count() > 1,
            unnamed: self.unnamed(),
            over: oldest.map_or(Duration::ZERO, |(at, _)| self.now.saturating_sub(*at)),
        }
    }
}

/// Returns the amounts of a function, without its name.
fn numbers(counts: &Counts) -> Function {
    let growth = i128::from(counts.leaked.bytes) - i128::from(counts.get(Measure::At).bytes);
    Function { name: String::new(), live: counts.leaked, allocated: counts.allocated, growth }
}
