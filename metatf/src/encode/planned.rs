//! Encodes a record whose shape is known at compile time, mirroring `decode/specialized.rs` and `decode/planned.rs`.
//!
//! Every leaf is computed and stored, whether it fits or not. A single comparison at the end detects whether all of
//! them fit. Nothing is committed before that.

use crate::buffer::{RawWriter, SpareCapacity};
use crate::decode::stops_silently;
use crate::format::Floor;
use crate::formula::{Plan, Width, plain};
use crate::record::{Known, Put, Stopped, WriteFields};
use metatf_container::{Error, Result};
use std::marker::PhantomData;

/// Encodes a record in the planned tier. Returns `None` and changes nothing if the record does not fit.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn put<S: Known, T: WriteFields, const PLANS: usize>(
    spare: &mut SpareCapacity<'_>,
    plans: &[Plan; PLANS],
    fields: &T,
) -> Option<()> {
    let mut row = PlannedEncoder::<S, PLANS, false>::new(spare, plans)?;
    fields.write_fields(&mut row, 0).ok()?;
    row.commit()
}

/// Encodes a record of a section in the specialized tier. Returns `None` and changes nothing if the record does not
/// fit.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn put_specialized<S: Known, T: WriteFields>(spare: &mut SpareCapacity<'_>, fields: &T) -> Option<()> {
    let mut row = PlannedEncoder::<S, 256, true>::new(spare, &const { S::EXPECTED })?;
    fields.write_fields(&mut row, 0).ok()?;
    row.commit()
}

/// An encoder for the leaves of an `S`, in order. If `SPECIALIZED` is set, the plans are [`Known::EXPECTED`], which are
/// compile-time constants.
pub(crate) struct PlannedEncoder<'o, S, const PLANS: usize, const SPECIALIZED: bool> {
    out: RawWriter<'o>,
    /// The plans of the complete section, or only the plans of the record if it is specialized.
    plans: &'o [Plan; PLANS],
    /// The most recently written number. If a byte array follows, this is its length.
    previous: u64,
    /// Nonzero if a leaf does not fit.
    misfit: u64,
    shape: PhantomData<S>,
}

impl<'o, S: Known, const PLANS: usize, const SPECIALIZED: bool> PlannedEncoder<'o, S, PLANS, SPECIALIZED> {
    /// Begins a record with its tag. Returns `None` if the spare capacity is exhausted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(spare: &'o mut SpareCapacity<'_>, plans: &'o [Plan; PLANS]) -> Option<Self> {
        let mut out = spare.record()?;
        out.constant_width(S::TAG.into(), const { Width::saturating(S::TAG_WIDTH) });
        Some(Self { out, plans, previous: 0, misfit: 0, shape: PhantomData })
    }

    /// Commits the record. Returns `None` if it does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(self) -> Option<()> {
        (self.misfit == 0).then(|| self.out.commit())
    }

    /// Returns the plan of a leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn plan(&self, leaf: u8) -> Result<&'o Plan, Stopped> {
        let first = if SPECIALIZED { 0 } else { S::FIRST };
        self.plans.get(first + usize::from(leaf)).ok_or(Stopped(()))
    }

    /// Stores the low bytes of a number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(&mut self, raw: u64, plan: &Plan) {
        let stored =
            if SPECIALIZED { self.out.constant_width(raw, plan.width) } else { self.out.number(raw, plan.width) };
        self.require(stored);
    }

    /// Marks the record as not fitting unless a condition holds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn require(&mut self, condition: bool) {
        if !condition {
            self.misfit = 1;
        }
    }

    /// Stores a number according to its plan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn planned(&mut self, value: u64, plan: &Plan) {
        self.previous = value;
        let raw = value.wrapping_sub(plan.base);
        self.misfit |= plain(raw & plan.mask, plan) ^ value;
        self.store(raw, plan);
    }

    /// Checks that a number equals its default, so that it need not be stored.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn default(&mut self, value: u64, default: u64) {
        self.previous = value;
        self.misfit |= value ^ default;
    }

    /// Stores a number like [`planned`](Self::planned), according to a plan that is a compile-time constant.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn expected(&mut self, value: u64, plan: &Plan) {
        self.previous = value;
        let raw = value.wrapping_sub(plan.base);
        self.misfit |= plain(raw & plan.mask, plan) ^ value;
        let stored = self.out.constant_width(raw, plan.width);
        self.require(stored);
    }

    /// Stores the code of a number with a width that is a compile-time constant. The code must fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn code(&mut self, value: u64, code: u64, width: Width) {
        self.previous = value;
        let stored = self.out.constant_width(code, width);
        self.require(stored);
    }

    /// Stores the low bytes of the integer derived from a number.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn stored(&mut self, value: u64, raw: u64, plan: &Plan) {
        self.previous = value;
        self.store(raw, plan);
    }

    /// Returns whether all leaves so far fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn fits(&self) -> bool {
        self.misfit == 0
    }

    /// Returns the position of the next leaf.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn at(&self) -> usize {
        self.out.at()
    }

    /// Stores no bytes for a number, because its value is stored in a stream section.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn skip(&mut self, value: u64) {
        self.previous = value;
    }
}

impl<S: Known, const PLANS: usize, const SPECIALIZED: bool> Put for PlannedEncoder<'_, S, PLANS, SPECIALIZED> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        if let Floor::Fixed(fixed) = S::FLOORS[usize::from(leaf)] {
            self.default(value, fixed);
            return Ok(());
        }
        let plan = self.plan(leaf)?;
        self.planned(value, plan);
        Ok(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        self.misfit |= length ^ bytes.len() as u64;
        // The compiler expects this branch not to be taken, because the array is usually empty.
        if !bytes.is_empty() && !self.out.bytes(bytes) {
            return Err(Stopped(()));
        }
        Ok(())
    }

    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
