//! Encodes a stateful record, whose shape is known at compile time, mirroring `decode/stateful.rs`. Its values may go
//! to stream sections, be predicted by a model, depend on the previous value, or be saved for other leaves.
//!
//! The leaves are encoded in a single pass. Since learning cannot be undone, a model runs only if all earlier leaves
//! fit. If a later leaf does not fit, `general.rs` encodes the record with the codes that the models returned.

use crate::buffer::SpareCapacity;
use crate::decode::stops_silently;
use crate::encode::{Attempt, PlannedEncoder, StreamWriters};
use crate::format::{Floor, Format, FormatRef};
use crate::formula::{HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, STRIDED, fits, raw};
use crate::record::{Known, Put, Stopped};
use crate::state::{CODE, Encoding, History, bit};
use metatf_container::{Error, Result};

/// The state that a record changes besides its bytes.
pub(crate) struct Effects<'o> {
    pub(crate) format: &'o FormatRef,
    pub(crate) history: &'o mut History,
    pub(crate) streams: &'o mut StreamWriters,
    pub(crate) attempt: &'o mut Attempt,
    /// Whether predicted leaves are stored in the attempt for the live-set carry-over.
    pub(crate) logged: bool,
    /// Whether models may run before the record is known to fit. This is true if a value that does not fit causes
    /// metadata instead of an error.
    pub(crate) may_learn: bool,
}

/// An encoder for the leaves of an `S`, a stateful record. It stops if it cannot encode a leaf; the changes up to that
/// point are recorded in the attempt and in the stream sections. If `EXPECTED` is set, all plans except for defaults
/// are compile-time constants.
///
/// Nothing takes the address of this encoder, so the compiler keeps it in registers.
pub(crate) struct StatefulEncoder<'o, S, const PLANS: usize, const EXPECTED: bool> {
    row: PlannedEncoder<'o, S, PLANS, false>,
    encoding: &'o Encoding,
    effects: Effects<'o>,
    /// Whether every default is the one specified in the DTD.
    has_defaults: bool,
}

impl<'o, S: Known, const PLANS: usize, const EXPECTED: bool> StatefulEncoder<'o, S, PLANS, EXPECTED> {
    /// Begins a record. Returns `None` if the spare capacity is exhausted.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn new(
        spare: &'o mut SpareCapacity<'_>,
        encoding: &'o Encoding,
        mut effects: Effects<'o>,
    ) -> Option<Self> {
        effects.attempt.start_stateful(effects.logged);
        effects.streams.start_record();
        let row = PlannedEncoder::new(spare, encoding.plans.first_chunk::<PLANS>()?)?;
        // If the record has several predicted leaves, models may run only if the stream sections accept every value, so
        // that no leaf fails after an earlier model has learned.
        effects.may_learn &=
            const { predicted_leaves(&S::FLOORS) < 2 } || models_can_put(effects.streams, effects.format, encoding);
        let has_defaults = encoding.tiers.changed_defaults() & const { bit(S::POSITION) } == 0;
        Some(Self { row, encoding, effects, has_defaults })
    }

    /// Commits the record. Returns `None` if it does not fit.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn commit(self) -> Option<()> {
        self.row.commit()
    }

    /// Stores the code of a value.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn predicted(&mut self, leaf: u8, value: u64, plan: &Plan) -> Result<(), Stopped> {
        // Every code fits in one byte, so any nonzero width is sufficient. In a record with byte arrays, the model must
        // not learn yet, because an array that is too long for a chunk would cause an error after the model has
        // learned.
        let may_learn = self.effects.may_learn && const { !has_arrays(&S::FLOORS) };
        if !may_learn || !EXPECTED && plan.width.is_zero() || !self.row.fits() {
            return Err(Stopped(()));
        }
        let Effects { format, history, streams, attempt, logged, .. } = &mut self.effects;
        if *logged {
            attempt.add_prediction(self.encoding, &history.cells, plan, (leaf, value), self.row.at());
        }
        #[allow(clippy::cast_possible_truncation, reason = "model indices fit in 16 bits")]
        let code = match history.encode_hit(&self.encoding.model_cells, plan.base as u16, value) {
            Some(code) => {
                // The code is needed only if the record is rolled back, which cannot happen after its last leaf.
                if usize::from(leaf) + 1 < S::LEAVES {
                    attempt.push_code(code);
                }
                code
            }
            None => miss(format, (self.encoding, history), streams, attempt, plan, (leaf, value)).ok_or(Stopped(()))?,
        };
        if EXPECTED {
            self.row.code(value, code, CODE);
        } else {
            self.row.stored(value, code, plan);
        }
        Ok(())
    }
}

/// Returns whether stream sections accept every value that the section's models add.
fn models_can_put(streams: &StreamWriters, format: &Format, encoding: &Encoding) -> bool {
    streams.models_can_put(format, format.sections.len() + encoding.section)
}

/// Returns the code of a value that its model does not predict, or that the model's fast path does not handle.
#[cold]
#[inline(never)]
fn miss(
    format: &Format,
    (encoding, history): (&Encoding, &mut History),
    streams: &mut StreamWriters,
    attempt: &mut Attempt,
    plan: &Plan,
    value: (u8, u64),
) -> Option<u64> {
    let can_put = models_can_put(streams, format, encoding);
    can_put.then(|| attempt.predict_now(format, (encoding, history), streams, plan, value)).flatten()
}

impl<S: Known, const PLANS: usize, const EXPECTED: bool> Put for StatefulEncoder<'_, S, PLANS, EXPECTED> {
    stops_silently!(usize => ());

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Stopped> {
        let floor = S::FLOORS[usize::from(leaf)];
        if let Floor::Fixed(default) = floor
            && self.has_defaults
        {
            self.row.default(value, default);
            return Ok(());
        }
        let plan = self.row.plan(leaf)?;
        let flags = plan.flags;
        let is_expected = EXPECTED && matches!(floor, Floor::Stored | Floor::Predicted);
        if !is_expected && flags & !LAST == 0 {
            self.row.planned(value, plan);
            return Ok(());
        }
        if EXPECTED && matches!(floor, Floor::Stored) {
            self.row.expected(value, &S::EXPECTED[usize::from(leaf)]);
        } else if !is_expected && flags & STRIDED != 0 {
            let appended = self.effects.streams.append(plan.base, value);
            self.row.require(appended);
            self.row.skip(value);
        } else if matches!(floor, Floor::Predicted) && (EXPECTED || flags & PREDICTED != 0) {
            self.predicted(leaf, value, plan)?;
        } else if flags & HISTORY != 0 {
            let raw = raw(value, plan, &self.effects.history.cells);
            self.row.require(fits(raw, plan));
            self.row.stored(value, raw, plan);
        } else {
            self.row.planned(value, plan);
        }
        if flags & (PREVIOUS | REFERENCED) == 0 {
            return Ok(());
        }
        let Effects { history: History { cells, .. }, attempt, .. } = &mut self.effects;
        if flags & PREVIOUS != 0 {
            attempt.set_cell(plan.write, value, cells);
        }
        if flags & REFERENCED != 0 {
            attempt.set_cell(plan.last, value, cells);
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

/// Returns the number of leaves that a model may predict.
const fn predicted_leaves(floors: &[Floor; 256]) -> usize {
    let (mut leaf, mut count) = (0, 0);
    while leaf < floors.len() {
        if matches!(floors[leaf], Floor::Predicted) {
            count += 1;
        }
        leaf += 1;
    }
    count
}

/// Returns whether a record has byte arrays.
const fn has_arrays(floors: &[Floor; 256]) -> bool {
    let mut leaf = 0;
    while leaf < floors.len() {
        if matches!(floors[leaf], Floor::Array(_) | Floor::Counted) {
            return true;
        }
        leaf += 1;
    }
    false
}
