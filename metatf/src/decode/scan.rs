//! Counts the items of repetitions that end at the end of the content, or after an item that meets a condition (spec
//! 3.3).
//!
//! A reader needs the count before the items, so the items are decoded twice: first to count them, then to deliver
//! them. Counting decodes nested items only once, so a record takes time proportional to its size and its nesting
//! depth.

use super::ContentRow;
use crate::format::{ExprOp, LeafKind, Step};
use crate::formula::evaluate;
use crate::record::{Row as _, Stopped};
use metatf_container::{Error, ErrorKind, Result};
use std::ops::Range;

impl ContentRow<'_, '_> {
    /// Returns the number of items counted by `leaf`, which begin at the current position. Changes neither the position
    /// nor the history.
    #[cold]
    #[inline(never)]
    pub(super) fn scan(&mut self, leaf: u8, until: &[ExprOp]) -> Result<u64> {
        let is_repetition = |step: &Step| matches!(step, Step::Repeat { count, .. } if *count == leaf);
        let steps = &self.record.steps;
        let at = steps.iter().position(is_repetition);
        let Some((at, &Step::Repeat { end, .. })) = at.and_then(|at| Some((at, steps.get(at)?))) else {
            return Err(self.fail(self.position, Some(leaf), ErrorKind::Usage("the leaf counts no items")));
        };
        let body = at + 1..usize::from(end);
        let (position, items, data) = (self.position, self.items, self.decoding.data);
        if until.is_empty() {
            let end = self.before_tail(body.end);
            if end < position {
                return Err(self.fail(position, Some(leaf), ErrorKind::Truncated("a record")));
            }
            self.decoding.data = data.get(..end).unwrap_or(data);
        }
        let saved = self.cells(body.clone());
        let counted = self.count(leaf, body, until);
        for (cell, value) in saved {
            if let Some(cell) = self.decoding.history.cells.get_mut(cell as usize) {
                *cell = value;
            }
        }
        (self.position, self.items, self.decoding.data) = (position, items, data);
        counted.map_err(|stopped| self.decoding.stopped.take().unwrap_or_else(|| Error::from(stopped)))
    }

    /// Returns the cells that the leaves of these steps change, with their values.
    fn cells(&self, steps: Range<usize>) -> Vec<(u32, u64)> {
        let leaves = self.record.steps.get(steps).unwrap_or_default().iter();
        let plans = leaves.filter_map(|step| match *step {
            Step::Number(leaf) => self.decoding.encoding.plan(self.first + usize::from(leaf)),
            Step::Bytes(_) | Step::Repeat { .. } => None,
        });
        let value = |cell: u32| Some((cell, *self.decoding.history.cells.get(cell as usize)?));
        plans.flat_map(|plan| [plan.write, plan.last]).filter_map(value).collect()
    }

    /// Decodes items up to the end of the content or up to the first item that meets the condition.
    fn count(&mut self, leaf: u8, body: Range<usize>, until: &[ExprOp]) -> Result<u64, Stopped> {
        let mut count = 0;
        while !until.is_empty() || self.position < self.decoding.data.len() {
            self.items(1)?;
            self.pass(body.clone())?;
            count += 1;
            if until.is_empty() {
                continue;
            }
            match evaluate(until, |leaf| self.last(leaf)) {
                Some(0) => {}
                Some(_) => break,
                None => return Err(self.stop_at(Some(leaf), ErrorKind::Expression)),
            }
        }
        Ok(count)
    }

    /// Decodes the leaves of these steps. Recursion is bounded, because repetitions nest at most 32 levels deep.
    fn pass(&mut self, steps: Range<usize>) -> Result<(), Stopped> {
        let mut at = steps.start;
        while let Some(&step) = self.record.steps.get(at).filter(|_| at < steps.end) {
            at += 1;
            let kind = |leaf: u8| self.record.leaves.get(usize::from(leaf)).map(|leaf| &leaf.kind);
            match step {
                // The items of this count are counted below.
                Step::Number(leaf) if matches!(kind(leaf), Some(LeafKind::Scanned(_))) => {}
                Step::Number(leaf) => drop(self.number(leaf)?),
                Step::Bytes(leaf) => drop(self.bytes(leaf)?),
                Step::Repeat { count, end } => {
                    let body = at..usize::from(end);
                    at = body.end;
                    if let Some(LeafKind::Scanned(until)) = kind(count) {
                        self.count(count, body, until)?;
                    } else {
                        for _ in 0..self.items(self.last(count))? {
                            self.pass(body.clone())?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the position at which the steps from `first` on begin, if they end at the end of the content. Their
    /// sizes do not depend on their values.
    pub(super) fn before_tail(&self, first: usize) -> usize {
        let sizes = self.record.steps.get(first..).unwrap_or_default().iter().map(|step| match *step {
            Step::Number(leaf) => {
                self.decoding.encoding.plan(self.first + usize::from(leaf)).map_or(0, |plan| plan.width.bytes())
            }
            Step::Bytes(leaf) => match self.leaf(leaf).map(|leaf| &leaf.kind) {
                Some(LeafKind::Array(length)) => usize::try_from(*length).unwrap_or(usize::MAX),
                _ => 0,
            },
            Step::Repeat { .. } => 0,
        });
        let tail = sizes.fold(0, usize::saturating_add);
        self.decoding.data.len().saturating_sub(tail)
    }
}
