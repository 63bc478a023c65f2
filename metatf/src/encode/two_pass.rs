//! Encoding a record whose shape is known when the program is compiled, and some of whose values a model tells, or go to a stream
//! section: the mirror of `row_foretold`.
//!
//! The leaves are gone through twice. First all but these is stored, by a [`PlannedEncoder`], and nothing has happened if
//! something does not fit. Then the models run, whose learning cannot be taken back, and their codes are put in place; streams
//! take their values.
//!
//! [`PlannedEncoder`]: crate::row_shaped_write::PlannedEncoder

use super::planned::CHANGED;
use crate::decode::stops_silently;
use crate::encode::{Attempt, Left, StreamWriters};
use crate::error::{Error, Result};
use crate::format::Floor;
use crate::formula::{LAST, PREDICTED, PREVIOUS, REFERENCED, STRIDED};
use crate::record::{Known, Put, Stopped};
use crate::state::State;
use std::marker::PhantomData;

/// The second time. It stops where a leaf needs more than a code, or a stream section more than one value at its end; what
/// models have learnt by then is in `attempt`, what streams took in `streams`.
pub(crate) struct SecondPass<'o, S, const PLANS: usize, const GRADE: u8> {
    out: &'o mut [u8],
    at: usize,
    state: &'o mut State,
    attempt: &'o mut Attempt,
    streams: &'o mut StreamWriters,
    /// The predicted leaves are to be noted.
    logged: bool,
    left: Left,
    shape: PhantomData<S>,
}

impl<'o, S: Known, const PLANS: usize, const GRADE: u8> SecondPass<'o, S, PLANS, GRADE> {
    /// A record that begins `at` a place in `out`, with what was left out of it the first time.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        (out, at): (&'o mut [u8], usize),
        state: &'o mut State,
        attempt: &'o mut Attempt,
        streams: &'o mut StreamWriters,
        (logged, left): (bool, Left),
    ) -> Self {
        Self { out, at: at + S::TAG_WIDTH, state, attempt, streams, logged, left, shape: PhantomData }
    }
}

impl<S: Known, const PLANS: usize, const GRADE: u8> Put for SecondPass<'_, S, PLANS, GRADE> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        let floor = S::FLOORS[usize::from(leaf)];
        if GRADE != CHANGED && matches!(floor, Floor::Fixed(_)) {
            return Ok(());
        }
        let index = S::FIRST + usize::from(leaf);
        let plans = self.state.plans.first_chunk::<PLANS>();
        let Some(plan) = plans.and_then(|plans| plans.get(index)) else { return Err(Stopped(())) };
        let (flags, previous, last, at) = (plan.flags, plan.write, plan.last, self.at);
        self.at += usize::from(plan.width);
        if matches!(floor, Floor::Predicted) && flags & PREDICTED != 0 {
            #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
            let model = plan.base as u16;
            if self.logged {
                self.attempt.note(self.state, index, value, at);
            }
            let code = self.state.encode_hit(model, value).ok_or(Stopped(()))?;
            self.left.codes -= 1;
            // Should the record stop, then at a later one.
            if self.left.codes > 0 || self.left.strided > 0 {
                self.attempt.know(code);
            }
            // Of a code that needs no element there is one byte; others are 0 already.
            #[allow(clippy::cast_possible_truncation, reason = "under 256")]
            if let Some(byte) = self.out.get_mut(at) {
                *byte = code as u8;
            }
        } else if flags & STRIDED != 0 {
            self.left.strided -= 1;
            if !self.streams.append(plan.base, value) {
                return Err(Stopped(()));
            }
        }
        if flags & PREVIOUS != 0
            && let Some(cell) = self.state.cells.get_mut(previous as usize)
        {
            self.attempt.keep(previous, *cell);
            *cell = value;
        }
        if flags & (LAST | REFERENCED) != 0
            && let Some(cell) = self.state.cells.get_mut(last as usize)
        {
            if flags & REFERENCED != 0 {
                self.attempt.keep(last, *cell);
            }
            *cell = value;
        }
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.at += bytes.len();
        Ok(())
    }

    fn last(&self, _: u8) -> u64 {
        0
    }
}
