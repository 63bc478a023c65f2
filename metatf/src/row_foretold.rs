//! Decoding a record whose shape is known when the program is compiled, and some of whose values a model tells.
//!
//! As [`ShapedRow`](crate::row_shaped::ShapedRow), but it cannot begin again, since models have learnt by then: what is out
//! of the ordinary in a leaf is done for this leaf alone.

use crate::error::{Error, ErrorKind};
use crate::grade::Floor;
use crate::reader::Run;
use crate::row::{Row, Stopped, plain};
use crate::row_shaped::eight;
use crate::state::{LAST, PREDICTED, REFERENCED};
use crate::typed::{Known, Source};
use std::marker::PhantomData;

/// The leaves of an `S` whose grade is `FORETOLD`.
pub(crate) struct ForetoldRow<'p, 'r, S, const PLANS: usize> {
    pub(crate) run: &'p mut Run<'r>,
    /// Next byte to read.
    pub(crate) at: usize,
    /// The number read last: the length of the byte array that follows.
    pub(crate) previous: u64,
    pub(crate) shape: PhantomData<S>,
}

impl<S: Known, const PLANS: usize> ForetoldRow<'_, '_, S, PLANS> {
    #[inline(always)]
    fn apart(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let (value, at) = self.run.number((S::RECORD, S::FIRST), self.at, leaf)?;
        self.at = at;
        self.previous = value;
        Ok(value)
    }
}

impl<'r, S: Known, const PLANS: usize> Row<'r> for ForetoldRow<'_, 'r, S, PLANS> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        self.run.stop(error)
    }

    #[inline(always)]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        if let Floor::Fixed(value) = S::FLOORS[usize::from(leaf)] {
            self.previous = value;
            return Ok(value);
        }
        let state = &mut *self.run.state;
        let plans = state.plans.first_chunk::<PLANS>();
        let plan = plans.and_then(|plans| plans.get(S::FIRST + usize::from(leaf)));
        let (Some(plan), Some(eight)) = (plan, eight(self.run.data, self.at)) else {
            return self.apart(leaf);
        };
        let stored = u64::from_le_bytes(eight) & plan.mask;
        let (width, flags, last) = (plan.width, plan.flags, plan.last);
        let value = if matches!(S::FLOORS[usize::from(leaf)], Floor::Foretold) && flags & PREDICTED != 0 {
            #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
            match state.predicted_usual(plan.base as u16, stored) {
                Some(value) => value,
                None => return self.apart(leaf),
            }
        } else {
            plain(stored, plan)
        };
        self.at += usize::from(width);
        if flags & (LAST | REFERENCED) != 0
            && let Some(cell) = state.cells.get_mut(last as usize)
        {
            *cell = value;
        }
        self.previous = value;
        Ok(value)
    }

    #[inline(always)]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let length = match S::FLOORS[usize::from(leaf)] {
            Floor::Array(length) => length.into(),
            _ => self.previous,
        };
        let rest = self.run.data.get(self.at..).unwrap_or_default();
        let (bytes, at) = match usize::try_from(length).ok().and_then(|length| rest.get(..length)) {
            Some(bytes) => (bytes, self.at + bytes.len()),
            None => self.run.bytes((S::RECORD, S::FIRST), self.at, leaf)?,
        };
        self.at = at;
        Ok(bytes)
    }

    fn items(&mut self, _: u64) -> Result<usize, Stopped> {
        Err(self.run.stop(Error::at(0, ErrorKind::Usage("a record with items is decoded leaf by leaf"))))
    }
}

impl<'r, S: Known, const PLANS: usize> Source<'r> for ForetoldRow<'_, 'r, S, PLANS> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
