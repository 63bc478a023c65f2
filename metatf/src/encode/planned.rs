//! Encoding a record whose shape is known when the program is compiled: the mirror of `row_shaped`.

use crate::buffer::{Pen, Room, Written};
use crate::decode::stops_silently;
use crate::error::{Error, Result};
use crate::format::Floor;
use crate::formula::{HISTORY, PREDICTED, Plan, STRIDED, plain};
use crate::record::{Known, Put, Stopped, WriteFields};
use std::marker::PhantomData;

pub(crate) const STORED: u8 = 0;
pub(crate) const FORMULA: u8 = 1;
pub(crate) const FORETOLD: u8 = 2;
pub(crate) const GATHERED: u8 = 3;
pub(crate) const CHANGED: u8 = 5;

/// Better than any tier: every leaf is stored as [`Known::EXPECTED`] says; of these are the plans.
const EXPECTED: u8 = u8::MAX;

/// Encodes a record of tier `GRADE` and keeps it in its room. None where it does not fit; then nothing has happened.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn put<S: Known, T: WriteFields, const PLANS: usize, const GRADE: u8>(
    room: &mut Room<'_>,
    plans: &[Plan; PLANS],
    fields: &T,
) -> Option<()> {
    let mut row = PlannedEncoder::<S, PLANS, GRADE>::new(room, plans)?;
    fields.write_fields(&mut row, 0).ok()?;
    let written = row.written()?;
    room.keep(written);
    Some(())
}

/// As [`put`], for a record that is stored as is expected.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn put_specialized<S: Known, T: WriteFields>(room: &mut Room<'_>, fields: &T) -> Option<()> {
    put::<S, T, 256, EXPECTED>(room, &const { S::EXPECTED }, fields)
}

/// Leaves of a record that were left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left {
    /// Those whose codes are missing.
    pub(crate) codes: u32,
    /// Those whose values go to stream sections.
    pub(crate) strided: u32,
}

/// Takes the leaves of an `S` whose tier is at most `GRADE`; codes are left 0, and what belongs to streams is left out. It goes
/// through to the end whatever comes, and tells then whether everything fitted.
pub(crate) struct PlannedEncoder<'o, S, const PLANS: usize, const GRADE: u8> {
    pen: Pen<'o>,
    /// Of the whole section, or of the record where that is as expected.
    plans: &'o [Plan; PLANS],
    /// The number written last: the length of the byte array that follows.
    previous: u64,
    /// Not 0 where something does not fit.
    misfit: u64,
    /// Leaves that were left out.
    missing: Left,
    shape: PhantomData<S>,
}

impl<'o, S: Known, const PLANS: usize, const GRADE: u8> PlannedEncoder<'o, S, PLANS, GRADE> {
    /// The next record of a room; none where that is full.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(room: &'o mut Room<'_>, plans: &'o [Plan; PLANS]) -> Option<Self> {
        let mut pen = room.pen()?;
        pen.constant_width(S::TAG.into(), const { if S::TAG_WIDTH < 8 { S::TAG_WIDTH } else { 8 } });
        Some(Self { pen, plans, previous: 0, misfit: 0, missing: Left::default(), shape: PhantomData })
    }

    /// What to keep of the record; none where it does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn written(&self) -> Option<Written> {
        (self.misfit == 0).then(|| self.pen.written())
    }

    /// Passes a number that is stored elsewhere.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn pass(&mut self, value: u64) {
        self.previous = value;
    }

    /// What is missing.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn left(&self) -> Left {
        self.missing
    }

    /// Stores the low bytes of a number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(&mut self, raw: u64, plan: &Plan) {
        let width = plan.width.into();
        let stored = if GRADE == EXPECTED { self.pen.constant_width(raw, width) } else { self.pen.number(raw, width) };
        if !stored {
            self.misfit = 1;
        }
    }
}

impl<S: Known, const PLANS: usize, const GRADE: u8> Put for PlannedEncoder<'_, S, PLANS, GRADE> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        self.previous = value;
        let floor = S::FLOORS[usize::from(leaf)];
        if let Floor::Fixed(fixed) = floor
            && GRADE != CHANGED
        {
            self.misfit |= value ^ fixed;
            return Ok(());
        }
        let first = if GRADE == EXPECTED { 0 } else { S::FIRST };
        let Some(plan) = self.plans.get(first + usize::from(leaf)) else { return Err(Stopped(())) };
        if GRADE >= FORETOLD && plan.flags & (STRIDED | HISTORY) != 0 {
            self.missing.strided += 1;
            self.misfit |= u64::from(plan.flags & HISTORY);
            return Ok(());
        }
        if GRADE >= FORETOLD && matches!(floor, Floor::Predicted) && plan.flags & PREDICTED != 0 {
            self.missing.codes += 1;
            self.misfit |= u64::from(plan.width == 0);
            self.store(0, plan);
            return Ok(());
        }
        if GRADE == STORED {
            self.misfit |= (value & plan.mask) ^ value;
            self.store(value, plan);
            return Ok(());
        }
        let raw = value.wrapping_sub(plan.base);
        self.misfit |= plain(raw & plan.mask, plan) ^ value;
        self.store(raw, plan);
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        self.misfit |= length ^ bytes.len() as u64;
        // A branch that is foreseen: most often there is nothing.
        if !bytes.is_empty() && !self.pen.bytes(bytes) {
            return Err(Stopped(()));
        }
        Ok(())
    }

    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
