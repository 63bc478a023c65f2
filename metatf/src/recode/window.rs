//! Runs of `baseOffset`: of all places where such a run may have begun, which is cheapest now.
//!
//! A run is possible while its values lie within what its width can tell apart, whatever the base; so runs that end here may
//! begin as far back as a *window* reaches, which only moves on. What is cheapest in a window that moves is kept in a queue
//! that ascends, as are the window's least and greatest values: each step enters and leaves each queue once. A window also
//! has the number of bytes of its base, as a base takes as many in its metadata record.

use super::leaf::{Sequence, Step};
use super::named::{base, half};
use crate::row_write::bytes_for;
use std::collections::VecDeque;

/// Widths tried: more hardly pay for the metadata.
const WIDEST: u8 = 3;

/// How far back values lie within what a width can tell apart.
#[derive(Debug)]
struct Reach {
    width: u8,
    least: VecDeque<(u32, u64)>,
    most: VecDeque<(u32, u64)>,
    start: u32,
    /// Values of the last step.
    last: (u64, u64),
}

/// Runs of one width whose base takes one number of bytes.
#[derive(Debug)]
pub(super) struct Window {
    reach: usize,
    pub(super) width: u8,
    /// Bytes of the base.
    pub(super) bytes: u8,
    /// The greatest value that such a base reaches.
    limit: u64,
    /// Where a run may begin, and what that costs less the bytes of all steps before; ascending.
    queue: VecDeque<(u32, i64)>,
    /// For each step: where the cheapest run to here begins, and the mode it came from were it to begin here.
    begins: Vec<(u32, u8)>,
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    reaches: Vec<Reach>,
    windows: Vec<Window>,
}

impl Windows {
    pub(super) fn new(sequence: &Sequence) -> Self {
        let mut new = Self::default();
        let needs = sequence.steps.iter().map(|s| s.none).max().unwrap_or(0);
        let extremes = sequence.steps.iter().fold((u64::MAX, 0), |(a, b), s| (s.most.min(a), s.most.max(b)));
        for width in 1..needs.min(WIDEST + 1) {
            let bytes = |most: u64| bytes_for(base(most, width), false);
            let mut seen = [false; 9];
            let mut see = |bytes: u8| seen.get_mut(usize::from(bytes)).into_iter().for_each(|seen| *seen = true);
            if bytes(extremes.0) == bytes(extremes.1) {
                see(bytes(extremes.0));
            } else {
                sequence.steps.iter().for_each(|step| see(bytes(step.most)));
            }
            new.reaches.push(Reach { width, least: VecDeque::new(), most: VecDeque::new(), start: 0, last: (0, 0) });
            for bytes in (1..=8_u8).filter(|&b| seen.get(usize::from(b)) == Some(&true)) {
                let limit = (u64::MAX >> (64 - 8 * u32::from(bytes))).saturating_add(half(width) - 1);
                new.windows.push(Window {
                    reach: new.reaches.len() - 1,
                    width,
                    bytes,
                    limit,
                    queue: VecDeque::new(),
                    begins: Vec::with_capacity(sequence.steps.len()),
                });
            }
        }
        new
    }

    pub(super) fn count(&self) -> usize {
        self.windows.len()
    }

    pub(super) fn get(&self, window: usize) -> Option<&Window> {
        self.windows.get(window)
    }

    /// Takes up the values of a step.
    #[inline]
    pub(super) fn advance(&mut self, at: u32, step: &Step) {
        for reach in &mut self.reaches {
            reach.advance(at, step);
        }
    }

    /// The cost behind a step in a run of this window, where beginning one here costs `enter` and comes from mode `from`;
    /// `before` and `behind` count the occurrences up to the step. `None` where no run is possible.
    #[inline]
    pub(super) fn cost(
        &mut self,
        window: usize,
        (at, step): (u32, &Step),
        (enter, from): (i64, u8),
        (before, behind): (i64, i64),
    ) -> Option<i64> {
        let window = self.windows.get_mut(window)?;
        let start = self.reaches.get(window.reach)?.start;
        window.begins.push((at, from));
        if step.most > window.limit || start > at {
            window.queue.clear();
            return None;
        }
        let width = i64::from(window.width);
        let level = enter - width * before;
        if start == at {
            window.queue.clear();
            window.queue.push_back((at, level));
            return Some(level + width * behind);
        }
        while window.queue.back().is_some_and(|back| back.1 > level) {
            window.queue.pop_back();
        }
        window.queue.push_back((at, level));
        while window.queue.front().is_some_and(|front| front.0 < start) {
            window.queue.pop_front();
        }
        let &(begin, level) = window.queue.front()?;
        if let Some(slot) = window.begins.last_mut() {
            slot.0 = begin;
        }
        Some(level + width * behind)
    }
}

impl Window {
    /// Where the cheapest run that ends behind this step begins, and the mode before it.
    pub(super) fn begin(&self, at: usize) -> (usize, u8) {
        let begin = self.begins.get(at).map_or(at, |b| b.0 as usize);
        (begin, self.begins.get(begin).map_or(0, |b| b.1))
    }
}

impl Reach {
    #[inline]
    fn advance(&mut self, at: u32, step: &Step) {
        let reach = half(self.width) * 2 - 1;
        let last = self.last;
        self.last = (step.least, step.most);
        // Far from the value before: the window begins anew.
        if last.1.max(step.most) - last.0.min(step.least) > reach {
            self.start = if step.most - step.least > reach { at + 1 } else { at };
            self.least.clear();
            self.most.clear();
            self.least.push_back((at, step.least));
            self.most.push_back((at, step.most));
            return;
        }
        while self.least.back().is_some_and(|back| back.1 >= step.least) {
            self.least.pop_back();
        }
        self.least.push_back((at, step.least));
        while self.most.back().is_some_and(|back| back.1 <= step.most) {
            self.most.pop_back();
        }
        self.most.push_back((at, step.most));
        while let (Some(least), Some(most)) = (self.least.front(), self.most.front())
            && most.1 - least.1 > reach
        {
            // The older of the two has to go, with all before it.
            self.start = least.0.min(most.0) + 1;
            while self.least.front().is_some_and(|f| f.0 < self.start) {
                self.least.pop_front();
            }
            while self.most.front().is_some_and(|f| f.0 < self.start) {
                self.most.pop_front();
            }
        }
    }
}
