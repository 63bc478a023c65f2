//! Encoding a record whose shape is known when the program is compiled, and some of whose values a model tells: the mirror of
//! `row_foretold`.
//!
//! The leaves are gone through twice. First all but the codes is stored, by a [`ShapedWriter`], and nothing has happened if
//! something does not fit. Then the models run, whose learning cannot be taken back, and their codes are put in place.
//!
//! [`ShapedWriter`]: crate::row_shaped_write::ShapedWriter

use crate::error::{Error, Result};
use crate::grade::Floor;
use crate::row::Stopped;
use crate::row_write::{Attempt, Put};
use crate::state::{LAST, PREDICTED, REFERENCED, State};
use crate::typed::Known;
use std::marker::PhantomData;

/// The second time. It stops where a leaf needs more than a code; what models have learnt by then is in `attempt`.
pub(crate) struct ForetoldWriter<'o, S, const PLANS: usize> {
    out: &'o mut [u8],
    at: usize,
    state: &'o mut State,
    attempt: &'o mut Attempt,
    /// The predicted leaves are to be noted.
    logged: bool,
    /// How many predicted leaves are left.
    codes: u32,
    shape: PhantomData<S>,
}

impl<'o, S: Known, const PLANS: usize> ForetoldWriter<'o, S, PLANS> {
    /// A record that begins `at` a place in `out`, with so many predicted leaves.
    #[inline(always)]
    pub(crate) fn new(
        (out, at): (&'o mut [u8], usize),
        state: &'o mut State,
        attempt: &'o mut Attempt,
        logged: bool,
        codes: u32,
    ) -> Self {
        Self { out, at: at + S::TAG_WIDTH, state, attempt, logged, codes, shape: PhantomData }
    }
}

impl<S: Known, const PLANS: usize> Put for ForetoldWriter<'_, S, PLANS> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, _: Error) -> Stopped {
        Stopped(())
    }

    #[inline(always)]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        if let Floor::Fixed(_) = S::FLOORS[usize::from(leaf)] {
            return Ok(());
        }
        let index = S::FIRST + usize::from(leaf);
        let plans = self.state.plans.first_chunk::<PLANS>();
        let Some(plan) = plans.and_then(|plans| plans.get(index)) else { return Err(Stopped(())) };
        let (flags, last, at) = (plan.flags, plan.last, self.at);
        self.at += usize::from(plan.width);
        if matches!(S::FLOORS[usize::from(leaf)], Floor::Foretold) && flags & PREDICTED != 0 {
            #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
            let model = plan.base as u16;
            if self.logged {
                self.attempt.note(self.state, index, value, at);
            }
            let code = self.state.foretell(model, value).ok_or(Stopped(()))?;
            self.codes -= 1;
            // Should the record stop, then at a later one.
            if self.codes > 0 {
                self.attempt.know(code);
            }
            // Of a code that needs no element there is one byte; others are 0 already.
            #[allow(clippy::cast_possible_truncation, reason = "under 256")]
            if let Some(byte) = self.out.get_mut(at) {
                *byte = code as u8;
            }
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

    #[inline(always)]
    fn bytes(&mut self, _: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.at += bytes.len();
        Ok(())
    }

    fn items(&mut self, _: usize) -> Result<(), Stopped> {
        Err(Stopped(()))
    }

    fn last(&self, _: u8) -> u64 {
        0
    }
}
