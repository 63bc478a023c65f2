//! Decoding a record whose shape is known when the program is compiled, and some of whose values a model tells, or come from a
//! stream section, or go by the value before.
//!
//! As [`PlannedRow`](crate::row_shaped::PlannedRow), but it cannot begin again, since models have learnt by then: what is out
//! of the ordinary in a leaf is done for this leaf alone.

use super::Run;
use crate::error::{Error, ErrorKind};
use crate::format::Floor;
use crate::formula::{
    HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, STRIDED, eight, history, note, plain, taken,
};
use crate::record::{Known, Row, Source, Stopped};
use std::marker::PhantomData;

/// The leaves of an `S` whose tier is `FORETOLD` or `TOLD`; or, where `CHANGED` says so, of that tier.
pub(crate) struct StatefulRow<'p, 'r, S, const PLANS: usize, const CHANGED: bool> {
    pub(crate) run: &'p mut Run<'r>,
    /// Next byte to read.
    pub(crate) at: usize,
    /// The number read last: the length of the byte array that follows.
    pub(crate) previous: u64,
    pub(crate) shape: PhantomData<S>,
}

impl<S: Known, const PLANS: usize, const CHANGED: bool> StatefulRow<'_, '_, S, PLANS, CHANGED> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let (value, at) = self.run.number((S::RECORD, S::FIRST), self.at, leaf)?;
        self.at = at;
        self.previous = value;
        Ok(value)
    }
}

impl<'r, S: Known, const PLANS: usize, const CHANGED: bool> Row<'r> for StatefulRow<'_, 'r, S, PLANS, CHANGED> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        self.run.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let floor = S::FLOORS[usize::from(leaf)];
        if let Floor::Fixed(value) = floor
            && !CHANGED
        {
            self.previous = value;
            return Ok(value);
        }
        let state = &mut *self.run.state;
        let plans = state.plans.first_chunk::<PLANS>();
        let Some(plan) = plans.and_then(|plans| plans.get(S::FIRST + usize::from(leaf))) else {
            return self.slow(leaf);
        };
        let (width, flags) = (plan.width.bytes(), plan.flags);
        if matches!(floor, Floor::Fixed(_)) && width == 0 && flags == 0 {
            self.previous = plan.base;
            return Ok(plan.base);
        }
        let value = if matches!(floor, Floor::Predicted) && flags & PREDICTED != 0 {
            let Some(eight) = eight(self.run.data, self.at) else { return self.slow(leaf) };
            let (code, model) = (u64::from_le_bytes(eight) & plan.mask, plan.base);
            #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
            let Some(value) = state.decode_hit(model as u16, code) else { return self.slow(leaf) };
            if flags & (PREVIOUS | REFERENCED) != 0
                && let Some(plan) = state.plans.get(S::FIRST + usize::from(leaf))
            {
                note(value, plan, &mut state.cells);
            }
            value
        } else if flags & STRIDED != 0 {
            let Some(value) = self.run.streams.ready(plan.base) else { return self.slow(leaf) };
            if flags & (PREVIOUS | REFERENCED) != 0 {
                note(value, plan, &mut state.cells);
            }
            value
        } else {
            let Some(eight) = eight(self.run.data, self.at) else { return self.slow(leaf) };
            let mut value = plain(u64::from_le_bytes(eight) & plan.mask, plan);
            if flags & !LAST != 0 {
                if flags & HISTORY != 0 {
                    value = value.wrapping_add(history(plan, &state.cells));
                }
                note(value, plan, &mut state.cells);
            }
            value
        };
        self.at += width;
        self.previous = value;
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        let (bytes, at) = match taken(self.run.data, self.at, length) {
            Some(bytes) => (bytes, self.at + bytes.len()),
            None => {
                // The length is right before.
                if let Some(plan) = self.run.state.plans.get(S::FIRST + usize::from(leaf.saturating_sub(1))) {
                    note(self.previous, &Plan { flags: LAST, ..*plan }, &mut self.run.state.cells);
                }
                self.run.bytes((S::RECORD, S::FIRST), self.at, leaf)?
            }
        };
        self.at = at;
        Ok(bytes)
    }

    fn items(&mut self, _: u64) -> Result<usize, Stopped> {
        Err(self.run.stop(Error::at(0, ErrorKind::Usage("a record with items is decoded leaf by leaf"))))
    }
}

impl<'r, S: Known, const PLANS: usize, const CHANGED: bool> Source<'r> for StatefulRow<'_, 'r, S, PLANS, CHANGED> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
