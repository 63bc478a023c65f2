//! Finds runs of `baseOffset`. For each step, it determines the cheapest start of a run that includes this step.
//!
//! A run is possible while its values fit in the range of its width, whatever the base. Therefore, runs that end at a
//! step may start anywhere within a *window* before the step, and this window only moves forward. Ascending queues keep
//! track of the cheapest start in the window and of its minimum and maximum values, so each step enters and leaves each
//! queue once. The metadata record stores a base with as few bytes as possible, so there is a separate window for each
//! size of the base.

use super::plan_step::{PlanStep, unsigned};
use super::plan_step::{base, half};
use metatf::internals::bytes_for;
use std::ops::Range;

/// Maximum width to try; larger widths rarely pay for their metadata.
const WIDEST: u8 = 3;

/// Number of widths to try. Each width has its own lane, starting with lane 0.
pub(super) const LANES: usize = WIDEST as usize;

/// The preceding steps whose values lie within the range of a width.
#[derive(Debug)]
struct Reach {
    width: u8,
    /// One less than the size of the range.
    span: u64,
    /// Whether all values lie within the range.
    whole: bool,
    least: Queue<u64>,
    most: Queue<u64>,
    start: u32,
    /// Minimum and maximum value of the last step.
    last: (u64, u64),
    /// The indices of the windows with this width, in ascending order of the base size.
    windows: Range<usize>,
}

/// The runs with one width and one size of the base.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) width: u8,
    /// The size of the base in bytes.
    bytes: u8,
    /// The greatest value that can be reached with a base of this size.
    limit: u64,
    /// The possible starts of a run, each with its cost minus the bytes of all earlier steps, in ascending order. Empty
    /// if the window was not used in the previous step.
    queue: Queue<i64>,
    next: u32,
}

/// The start of a window's cheapest run to a step, and the mode from which a run starting at the step would come.
#[derive(Debug)]
pub(super) struct Begin {
    at: u32,
    begin: u32,
    window: u8,
    from: u8,
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    /// The reach of each lane.
    reaches: Vec<Reach>,
    windows: Vec<Window>,
    /// The starts for each step and each window used in the step, in order.
    begins: Vec<Begin>,
}

impl Windows {
    /// Creates windows for steps with values from `least` to `most`. `begins` provides the memory.
    pub(super) fn new((least, most): (u64, u64), mut begins: Vec<Begin>) -> Self {
        begins.clear();
        let mut new = Self { begins, ..Self::default() };
        for width in 1..unsigned(most).min(WIDEST + 1) {
            let bytes = |most: u64| bytes_for(base(most, width), false);
            let first = new.windows.len();
            for bytes in bytes(least)..=bytes(most) {
                let limit = (u64::MAX >> (64 - 8 * u32::from(bytes))).saturating_add(half(width) - 1);
                new.windows.push(Window { width, bytes, limit, queue: Queue::default(), next: 0 });
            }
            let span = half(width) * 2 - 1;
            new.reaches.push(Reach {
                width,
                span,
                whole: most - least <= span,
                least: Queue::default(),
                most: Queue::default(),
                start: 0,
                last: (0, 0),
                windows: first..new.windows.len(),
            });
        }
        new
    }

    pub(super) fn count(&self) -> usize {
        self.windows.len()
    }

    /// Returns the widths of runs, by lane.
    pub(super) fn widths(&self) -> impl Iterator<Item = u8> {
        self.reaches.iter().map(|r| r.width)
    }

    pub(super) fn get(&self, window: usize) -> Option<&Window> {
        self.windows.get(window)
    }

    /// Processes the values of a step. Returns for each lane the lowest cost of a run of that width after the step, and
    /// the window of this run. The cost is `i64::MAX` if no run is possible or worthwhile. `enter` is the cost of
    /// starting a run here, excluding the bytes of its base, and the mode before the run. `before` and `behind` are the
    /// numbers of occurrences up to the start and up to the end of the step.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        (at, step, next): (u32, &PlanStep, Option<&PlanStep>),
        enter: [(i64, u8); LANES],
        (before, behind): (i64, i64),
    ) -> [(i64, u8); LANES] {
        let mut best = [(i64::MAX, 0); LANES];
        for ((best, enter), reach) in best.iter_mut().zip(enter).zip(&mut self.reaches) {
            if !reach.advance(at, step, next) {
                continue;
            }
            let width = i64::from(reach.width);
            let level = enter.0 - width * before;
            // `highest` limits the values of a run that includes this step. If a window reaches it, windows with longer
            // bases are no better.
            let highest = step.least.saturating_add(reach.span);
            let windows = self.windows.get_mut(reach.windows.clone()).unwrap_or_default();
            for (window, number) in windows.iter_mut().zip(reach.windows.clone()) {
                if window.limit < step.most {
                    continue;
                }
                let (begin, cost) = window.cost(at, reach.start, level);
                let number = u8::try_from(number).unwrap_or(u8::MAX);
                self.begins.push(Begin { at, begin, window: number, from: enter.1 });
                if cost + width * behind < best.0 {
                    *best = (cost + width * behind, number);
                }
                if window.limit >= highest {
                    break;
                }
            }
        }
        best
    }

    /// Returns the start of a window's cheapest run that ends after a step, and the mode before it.
    pub(super) fn begin(&self, window: usize, at: usize) -> (usize, u8) {
        let find = |at: usize| {
            let key = |b: &Begin| (b.at as usize, usize::from(b.window));
            let found = self.begins.binary_search_by_key(&(at, window), key).ok();
            found.and_then(|i| self.begins.get(i))
        };
        let begin = find(at).map_or(at, |b| b.begin as usize);
        (begin, find(begin).map_or(0, |b| b.from))
    }

    /// Returns the memory for reuse.
    pub(super) fn into_begins(self) -> Vec<Begin> {
        self.begins
    }
}

impl Window {
    /// Returns the start of the cheapest run that includes this step, and its cost minus the bytes of all earlier
    /// steps. The run starts at `start` or later, and starting a run here costs `level`.
    #[inline(always)]
    fn cost(&mut self, at: u32, start: u32, level: i64) -> (u32, i64) {
        let level = level + i64::from(self.bytes);
        let mut first = (at, level);
        if self.next != at || start == at {
            self.queue.restart(at, level);
        } else {
            self.queue.push_while(at, level, |back| back > level);
            first = self.queue.first_from(start).unwrap_or(first);
        }
        self.next = at + 1;
        first
    }
}

impl Reach {
    /// Processes a step's values. Returns false if no run that starts or ends at this step is worthwhile, either
    /// because its values need a larger width or because the run would consist of this step alone. For a single step,
    /// `default` is at least as good, because its value takes no more bytes than a base and an offset.
    #[inline(always)]
    fn advance(&mut self, at: u32, step: &PlanStep, next: Option<&PlanStep>) -> bool {
        if self.whole {
            return true;
        }
        let last = self.last;
        self.last = (step.least, step.most);
        // The value is far from the previous value, so the window restarts.
        if last.1.max(step.most) - last.0.min(step.least) > self.span {
            self.start = at;
            if step.most - step.least > self.span {
                self.start = at + 1;
                return false;
            }
            if step.uniform && next.is_none_or(|next| step.most.max(next.most) - step.least.min(next.least) > self.span)
            {
                return false;
            }
            self.least.restart(at, step.least);
            self.most.restart(at, step.most);
            return true;
        }
        self.least.push_while(at, step.least, |back| back >= step.least);
        self.most.push_while(at, step.most, |back| back <= step.most);
        while let (Some(least), Some(most)) = (self.least.first(), self.most.first())
            && most.1 - least.1 > self.span
        {
            // Remove the older of the two, and everything before it.
            self.start = least.0.min(most.0) + 1;
            self.least.first_from(self.start);
            self.most.first_from(self.start);
        }
        true
    }
}

/// A queue of numbers with their steps. Old numbers are removed at the front.
#[derive(Debug)]
struct Queue<T> {
    all: Vec<(u32, T)>,
    /// Index of the first number that has not been removed.
    head: usize,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { all: Vec::new(), head: 0 }
    }
}

impl<T: Copy> Queue<T> {
    #[inline(always)]
    fn clear(&mut self) {
        self.all.clear();
        self.head = 0;
    }

    /// Replaces the content of the queue with this number.
    #[inline(always)]
    fn restart(&mut self, at: u32, number: T) {
        self.clear();
        self.all.push((at, number));
    }

    #[inline(always)]
    fn first(&self) -> Option<(u32, T)> {
        self.all.get(self.head).copied()
    }

    /// Adds a number after removing numbers at the back while `goes` returns true.
    #[inline(always)]
    fn push_while(&mut self, at: u32, number: T, goes: impl Fn(T) -> bool) {
        let mut len = self.all.len();
        while len > self.head && self.all.get(len - 1).is_some_and(|back| goes(back.1)) {
            len -= 1;
        }
        self.all.truncate(len);
        // Reuse the memory of removed numbers.
        if len == self.head {
            self.clear();
        } else if self.head > len / 2 && len == self.all.capacity() {
            self.all.drain(..self.head);
            self.head = 0;
        }
        self.all.push((at, number));
    }

    /// Removes the numbers of steps before `start`, and returns the first remaining number.
    #[inline(always)]
    fn first_from(&mut self, start: u32) -> Option<(u32, T)> {
        while let Some(first) = self.first() {
            if first.0 >= start {
                return Some(first);
            }
            self.head += 1;
        }
        None
    }
}
