//! Runs of `baseOffset`: of all places where such a run may have begun, which is cheapest now.
//!
//! A run is possible while its values lie within what its width can tell apart, whatever the base; so runs that end here may
//! begin as far back as a *window* reaches, which only moves on. What is cheapest in a window that moves is kept in a queue
//! that ascends, as are the window's least and greatest values: each step enters and leaves each queue once. A window also
//! has the number of bytes of its base, as a base takes as many in its metadata record.

use super::plan_step::{PlanStep, unsigned};
use super::plan_step::{base, half};
use metatf::internals::bytes_for;
use std::ops::Range;

/// Widths tried: more hardly pay for the metadata.
const WIDEST: u8 = 3;

/// Widths tried, and lanes that windows have: the first.
pub(super) const LANES: usize = WIDEST as usize;

/// How far back values lie within what a width can tell apart.
#[derive(Debug)]
struct Reach {
    width: u8,
    /// One less than what the width can tell apart.
    span: u64,
    /// All values there are lie within it.
    whole: bool,
    least: Queue<u64>,
    most: Queue<u64>,
    start: u32,
    /// Values of the last step.
    last: (u64, u64),
    /// Its windows' numbers; those of bases with more bytes stand behind.
    windows: Range<usize>,
}

/// Runs of one width whose base takes one number of bytes.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) width: u8,
    /// Bytes of the base.
    bytes: u8,
    /// The greatest value that such a base reaches.
    limit: u64,
    /// Where a run may begin, and what that costs less the bytes of all steps before; ascending. It is empty where the step
    /// before this one was not asked for.
    queue: Queue<i64>,
    next: u32,
}

/// Where a window's cheapest run to a step begins, and the mode it came from were it to begin here.
#[derive(Debug)]
pub(super) struct Begin {
    at: u32,
    begin: u32,
    window: u8,
    from: u8,
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    /// One for each lane.
    reaches: Vec<Reach>,
    windows: Vec<Window>,
    /// For each step, and each window that it was asked of, in their order.
    begins: Vec<Begin>,
}

impl Windows {
    /// For steps with values from `least` to `most`; `begins` is room.
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

    /// Widths of runs, by lane.
    pub(super) fn widths(&self) -> impl Iterator<Item = u8> {
        self.reaches.iter().map(|r| r.width)
    }

    pub(super) fn get(&self, window: usize) -> Option<&Window> {
        self.windows.get(window)
    }

    /// Takes up the values of a step, and gets those of the next. Gives for each lane the least cost behind it in a run of that
    /// width, and the window; where none is possible or worth it the cost is `i64::MAX`. `enter`: what it costs to begin a
    /// run here, without the bytes of its base, and the mode that comes from; `before` and `behind` count the occurrences up
    /// to the step.
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
            // A run here goes no higher: windows that reach that far with a shorter base are as good as those behind.
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

    /// Where a window's cheapest run that ends behind a step begins, and the mode before it.
    pub(super) fn begin(&self, window: usize, at: usize) -> (usize, u8) {
        let find = |at: usize| {
            let key = |b: &Begin| (b.at as usize, usize::from(b.window));
            let found = self.begins.binary_search_by_key(&(at, window), key).ok();
            found.and_then(|i| self.begins.get(i))
        };
        let begin = find(at).map_or(at, |b| b.begin as usize);
        (begin, find(begin).map_or(0, |b| b.from))
    }

    /// Gives the room back.
    pub(super) fn into_begins(self) -> Vec<Begin> {
        self.begins
    }
}

impl Window {
    /// Where the cheapest run to this step begins, and what it costs, less the bytes of all steps up to it; it begins at
    /// `start` at the earliest, and beginning one here costs `level`.
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
    /// Takes up a step's values. False where no run from here or to here is worth it: its values need more room, or it would be
    /// the only one; then `default` is at least as good, as its value takes no more bytes than a base and an offset.
    #[inline(always)]
    fn advance(&mut self, at: u32, step: &PlanStep, next: Option<&PlanStep>) -> bool {
        if self.whole {
            return true;
        }
        let last = self.last;
        self.last = (step.least, step.most);
        // Far from the value before: the window begins again.
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
            // The older of the two has to go, with all before it.
            self.start = least.0.min(most.0) + 1;
            self.least.first_from(self.start);
            self.most.first_from(self.start);
        }
        true
    }
}

/// Numbers with the steps they belong to; old ones leave at the front.
#[derive(Debug)]
struct Queue<T> {
    all: Vec<(u32, T)>,
    /// Those before have left.
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

    /// This one alone.
    #[inline(always)]
    fn restart(&mut self, at: u32, number: T) {
        self.clear();
        self.all.push((at, number));
    }

    #[inline(always)]
    fn first(&self) -> Option<(u32, T)> {
        self.all.get(self.head).copied()
    }

    /// Adds a number; those at the back of which `goes` is true leave first.
    #[inline(always)]
    fn push_while(&mut self, at: u32, number: T, goes: impl Fn(T) -> bool) {
        let mut len = self.all.len();
        while len > self.head && self.all.get(len - 1).is_some_and(|back| goes(back.1)) {
            len -= 1;
        }
        self.all.truncate(len);
        // Room for what has left is used again.
        if len == self.head {
            self.clear();
        } else if self.head > len / 2 && len == self.all.capacity() {
            self.all.drain(..self.head);
            self.head = 0;
        }
        self.all.push((at, number));
    }

    /// The first number of this step or a later one; those before it leave.
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
