//! Encodes a record whose shape is known when the program is compiled, and whose values depend on more than its plans: stream
//! sections, models, previous values.
//!
//! The leaves are gone through twice. The first pass stores what plans say, and appends to streams; a record that does not fit
//! is taken back then. The second pass notes values, adds history and runs models, whose learning cannot be taken back. It is
//! left out where no leaf needs it.

use crate::buffer::SpareCapacity;
use crate::decode::stops_silently;
use crate::encode::{Attempt, PlannedEncoder, StreamWriters};
use crate::format::Floor;
use crate::formula::{HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, STRIDED, fits, raw};
use crate::record::{Known, Put, Stopped};
use crate::state::State;
use metatf_container::{Error, Order, Result};
use std::marker::PhantomData;

/// Flags of plans whose leaves need the second pass.
const NEEDS_SECOND_PASS: u8 = PREDICTED | HISTORY | PREVIOUS | REFERENCED;

/// What the first pass leaves to the second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Omitted {
    /// Leaves whose codes are missing.
    pub(crate) codes: u32,
    /// The flags of all leaves.
    flags: u8,
}

impl Omitted {
    /// Whether there is a second pass.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn any(self) -> bool {
        self.flags & NEEDS_SECOND_PASS != 0
    }

    /// Whether the second pass may find that a value does not fit when a model has learnt another one already.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn mixes_history(self) -> bool {
        self.codes > 0 && self.flags & HISTORY != 0
    }
}

/// Takes the leaves of an `S` whose tier is stateful for the first time.
pub(crate) struct FirstPass<'o, S, const PLANS: usize> {
    row: PlannedEncoder<'o, S, PLANS, false>,
    streams: &'o mut StreamWriters,
    omitted: Omitted,
}

impl<'o, S: Known, const PLANS: usize> FirstPass<'o, S, PLANS> {
    /// Begins a record. `None` where the spare capacity is used up.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        spare: &'o mut SpareCapacity<'_>,
        plans: &'o [Plan; PLANS],
        streams: &'o mut StreamWriters,
    ) -> Option<Self> {
        Some(Self { row: PlannedEncoder::new(spare, plans)?, streams, omitted: Omitted::default() })
    }

    /// Commits the record. `None` where it does not fit; then streams have to take back what they took.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(self) -> Option<Omitted> {
        self.row.commit().map(|()| self.omitted)
    }
}

impl<S: Known, const PLANS: usize> Put for FirstPass<'_, S, PLANS> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        let (plan, floor) = (self.row.plan(leaf)?, S::FLOORS[usize::from(leaf)]);
        if matches!(floor, Floor::Fixed(_)) && plan.flags == 0 && plan.width.is_zero() {
            self.row.default(value, plan.base);
            return Ok(());
        }
        self.omitted.flags |= plan.flags;
        let is_predicted = matches!(floor, Floor::Predicted) && plan.flags & PREDICTED != 0;
        if plan.flags & (STRIDED | PREDICTED | HISTORY) == 0 {
            self.row.planned(value, plan);
        } else if plan.flags & STRIDED != 0 {
            let appended = self.streams.append(plan.base, value);
            self.row.require(appended);
            self.row.skip(value);
        } else {
            if is_predicted {
                self.omitted.codes += 1;
                // A code takes a byte.
                self.row.require(!plan.width.is_zero());
            }
            self.row.placeholder(value, plan);
        }
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Stopped> {
        self.row.bytes(leaf, bytes)
    }

    fn last(&self, leaf: u8) -> u64 {
        self.row.last(leaf)
    }
}

/// Takes them for the second time. It stops where a leaf needs more than a code, or more bytes than it has; what models have
/// learnt by then is in `attempt`, as is what cells held before.
pub(crate) struct SecondPass<'o, S, const PLANS: usize> {
    out: &'o mut [u8],
    at: usize,
    state: &'o mut State,
    attempt: &'o mut Attempt,
    /// Predicted leaves are logged for the live-set carry-over.
    logged: bool,
    /// Codes that are still missing.
    codes: u32,
    /// See [`Omitted::mixes_history`].
    mixes_history: bool,
    shape: PhantomData<S>,
}

impl<'o, S: Known, const PLANS: usize> SecondPass<'o, S, PLANS> {
    /// Begins again with the record that starts `at` a place in `out`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        (out, at): (&'o mut [u8], usize),
        state: &'o mut State,
        attempt: &'o mut Attempt,
        logged: bool,
        omitted: Omitted,
    ) -> Self {
        let mixes_history = omitted.mixes_history();
        Self {
            out,
            at: at + S::TAG_WIDTH,
            state,
            attempt,
            logged,
            codes: omitted.codes,
            mixes_history,
            shape: PhantomData,
        }
    }
}

impl<S: Known, const PLANS: usize> Put for SecondPass<'_, S, PLANS> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        let index = S::FIRST + usize::from(leaf);
        let plans = self.state.encoding.plans.first_chunk::<PLANS>();
        let Some(plan) = plans.and_then(|plans| plans.get(index)) else { return Err(Stopped(())) };
        let (flags, previous, last, at) = (plan.flags, plan.write, plan.last, self.at);
        self.at += plan.width.bytes();
        if flags & NEEDS_SECOND_PASS == 0 {
            return Ok(());
        }
        if matches!(S::FLOORS[usize::from(leaf)], Floor::Predicted) && flags & PREDICTED != 0 {
            #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
            let model = plan.base as u16;
            if self.logged {
                self.attempt.add_prediction(self.state, plan, leaf, value, at);
            }
            let State { encoding, history } = &mut *self.state;
            let code = history.encode_hit(&encoding.model_cells, model, value).ok_or(Stopped(()))?;
            self.codes -= 1;
            // Should the record stop, then at a later leaf.
            if self.codes > 0 || self.mixes_history {
                self.attempt.push_code(code);
            }
            // A code that needs no element takes one byte; others are 0 already.
            #[allow(clippy::cast_possible_truncation, reason = "under 256")]
            if let Some(byte) = self.out.get_mut(at) {
                *byte = code as u8;
            }
        } else if flags & HISTORY != 0 {
            let raw = raw(value, plan, &self.state.history.cells);
            if !fits(raw, plan) {
                return Err(Stopped(()));
            }
            Order::Little.store(raw, self.out.get_mut(at..self.at).unwrap_or_default());
        }
        if flags & PREVIOUS != 0
            && let Some(cell) = self.state.history.cells.get_mut(previous as usize)
        {
            self.attempt.save_cell(previous, *cell);
            *cell = value;
        }
        if flags & REFERENCED != 0
            && let Some(cell) = self.state.history.cells.get_mut(last as usize)
        {
            self.attempt.save_cell(last, *cell);
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
