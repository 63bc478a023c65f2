//! Decoding a stateful record, whose shape is known when the program is compiled: values are noted for others, go by the value
//! before, are predicted by a model or come from a stream section.
//!
//! It cannot begin again, since models have learnt by then. So the slow path of a leaf handles that leaf alone.

use super::Run;
use crate::format::Floor;
use crate::formula::{
    HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, STRIDED, eight, history, note, plain, taken,
};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::{Error, ErrorKind};
use std::marker::PhantomData;

/// The leaves of an `S` that is stateful.
pub(crate) struct StatefulRow<'p, 'r, S, const PLANS: usize> {
    pub(crate) run: &'p mut Run<'r>,
    pub(crate) data: &'r [u8],
    /// Where the record begins, and the next byte to read.
    pub(crate) place: (usize, usize),
    /// Every default is the one that the DTD gives.
    pub(crate) has_defaults: bool,
    /// The number read last: the length of the byte array that follows.
    pub(crate) previous: u64,
    pub(crate) shape: PhantomData<S>,
}

impl<S: Known, const PLANS: usize> StatefulRow<'_, '_, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let (value, at) = self.run.number((S::RECORD, S::FIRST), self.place, leaf)?;
        self.place.1 = at;
        self.previous = value;
        Ok(value)
    }
}

impl<'r, S: Known, const PLANS: usize> Row<'r> for StatefulRow<'_, 'r, S, PLANS> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        self.run.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let floor = S::FLOORS[usize::from(leaf)];
        if let Floor::Fixed(value) = floor
            && self.has_defaults
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
            let Some(eight) = eight(self.data, self.place.1) else { return self.slow(leaf) };
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
            let Some(eight) = eight(self.data, self.place.1) else { return self.slow(leaf) };
            let mut value = plain(u64::from_le_bytes(eight) & plan.mask, plan);
            if flags & !LAST != 0 {
                if flags & HISTORY != 0 {
                    value = value.wrapping_add(history(plan, &state.cells));
                }
                note(value, plan, &mut state.cells);
            }
            value
        };
        self.place.1 += width;
        self.previous = value;
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        let (bytes, at) = match taken(self.data, self.place.1, length) {
            Some(bytes) => (bytes, self.place.1 + bytes.len()),
            None => {
                // The length is right before.
                if let Some(plan) = self.run.state.plans.get(S::FIRST + usize::from(leaf.saturating_sub(1))) {
                    note(self.previous, &Plan { flags: LAST, ..*plan }, &mut self.run.state.cells);
                }
                self.run.bytes((S::RECORD, S::FIRST), self.place, leaf)?
            }
        };
        self.place.1 = at;
        Ok(bytes)
    }

    fn items(&mut self, _: u64) -> Result<usize, Stopped> {
        Err(self.run.stop(Error::at(0, ErrorKind::Usage("a record with items is decoded leaf by leaf"))))
    }
}

impl<'r, S: Known, const PLANS: usize> Source<'r> for StatefulRow<'_, 'r, S, PLANS> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
