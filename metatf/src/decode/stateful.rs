//! Decodes a record whose shape is known at compile time, according to its current plans. Its values may be saved for
//! other leaves, depend on the previous value, be predicted by a model, or come from a stream section. A row for any
//! record, including one with repetitions, also handles all other leaves, although it calls a function for some of them.
//!
//! Decoding cannot be restarted, because models may have learned from the record already. The slow path of a leaf
//! therefore handles only that leaf.

use super::Decoding;
use crate::format::Floor;
use crate::formula::{
    self, BYTES, HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, eight, note, plain, taken,
};
use crate::record::{FREE_ITEMS, Known, Row, Source, Stopped};
use metatf_container::{Error, Order};
use std::marker::PhantomData;

/// A row that reads the leaves of an `S`, which is a planned or stateful record unless `ANY` is set.
pub(crate) struct StatefulRow<'p, 't, 'r, S, const PLANS: usize, const ANY: bool> {
    pub(crate) decoding: &'p mut Decoding<'t, 'r>,
    /// The plans of the complete section. They are a separate reference, so the compiler knows that stores to the
    /// history do not change them.
    pub(crate) plans: &'t [Plan; PLANS],
    pub(crate) data: &'r [u8],
    /// The start of the record, and the position of the next byte to read.
    pub(crate) place: (usize, usize),
    /// Whether every default is the one specified in the DTD.
    pub(crate) has_defaults: bool,
    /// The most recently read number. If a byte array follows, this is its length.
    pub(crate) previous: u64,
    /// Number of repeated items.
    pub(crate) items: u64,
    pub(crate) shape: PhantomData<S>,
}

impl<'r, S: Known, const PLANS: usize, const ANY: bool> StatefulRow<'_, '_, 'r, S, PLANS, ANY> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let (value, at) = self.decoding.number((S::RECORD, S::FIRST), self.place, leaf)?;
        self.place.1 = at;
        self.previous = value;
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes_slow(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let (bytes, at) = self.decoding.bytes((S::RECORD, S::FIRST), self.place, leaf)?;
        self.place.1 = at;
        Ok(bytes)
    }

    /// Ends the record and checks the limit on items, now that its size is known (spec 3.3).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        self.limit_items(self.place.1)
    }

    /// Checks the limit on items for a record that ends at or before a position.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn limit_items(&mut self, end: usize) -> Result<(), Stopped> {
        if self.items > (end - self.place.0) as u64 + FREE_ITEMS {
            return Err(self.decoding.too_many((S::RECORD, S::FIRST), self.place, self.items));
        }
        Ok(())
    }
}

impl<'r, S: Known, const PLANS: usize, const ANY: bool> Row<'r> for StatefulRow<'_, '_, 'r, S, PLANS, ANY> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        self.decoding.stop(error)
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
        let Some(plan) = self.plans.get(S::FIRST + usize::from(leaf)) else { return self.slow(leaf) };
        let (width, flags) = (plan.width.bytes(), plan.flags);
        if matches!(floor, Floor::Fixed(_)) && width == 0 && flags == 0 {
            self.previous = plan.base;
            return Ok(plan.base);
        }
        let value = if flags & STRIDED != 0 {
            let Some(value) = self.decoding.streams.ready(plan.base) else { return self.slow(leaf) };
            value
        } else {
            let Some(eight) = eight(self.data, self.place.1) else { return self.slow(leaf) };
            let raw = u64::from_le_bytes(eight) & plan.mask;
            // Most leaves need nothing more. In a record without repetitions, the only leaf whose last value is needed is
            // the length directly before a byte array.
            if flags & !(if ANY { 0 } else { LAST }) == 0 {
                self.place.1 += width;
                self.previous = plain(raw, plan);
                return Ok(self.previous);
            }
            let Decoding { encoding, history, .. } = &mut *self.decoding;
            if (ANY && S::MODELS || matches!(floor, Floor::Predicted)) && flags & PREDICTED != 0 {
                #[allow(clippy::cast_possible_truncation, reason = "model indices fit in 16 bits")]
                let value = history.decode_hit(&encoding.model_cells, plan.base as u16, raw);
                let Some(value) = value else { return self.slow(leaf) };
                value
            } else if ANY && flags & (SPECIAL | BYTES) != 0 {
                match S::BITS[usize::from(leaf)] {
                    Some((of, bit)) if self.decoding.order == Order::Little => self.last(of) >> bit & 1,
                    _ => return self.slow(leaf),
                }
            } else if flags & HISTORY != 0 {
                plain(raw, plan).wrapping_add(formula::history(plan, &history.cells))
            } else {
                plain(raw, plan)
            }
        };
        if flags & (PREVIOUS | REFERENCED | if ANY { LAST } else { 0 }) != 0 {
            note(value, plan, &mut self.decoding.history.cells);
        }
        self.place.1 += width;
        self.previous = value;
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        if ANY {
            let plan = self.plans.get(S::FIRST + usize::from(leaf)).filter(|plan| plan.flags & !HISTORY == BYTES);
            let Some(plan) = plan else { return self.bytes_slow(leaf) };
            let length = plan.base.wrapping_add(formula::history(plan, &self.decoding.history.cells));
            let Some(bytes) = taken(self.data, self.place.1, length) else { return self.bytes_slow(leaf) };
            self.place.1 += bytes.len();
            return Ok(bytes);
        }
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        if length == 0 {
            return Ok(&[]);
        }
        let Some(bytes) = taken(self.data, self.place.1, length) else {
            // The length is stored directly before the bytes.
            if let Some(plan) = self.plans.get(S::FIRST + usize::from(leaf.saturating_sub(1))) {
                note(self.previous, &Plan { flags: LAST, ..*plan }, &mut self.decoding.history.cells);
            }
            return self.bytes_slow(leaf);
        };
        self.place.1 += bytes.len();
        Ok(bytes)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn items(&mut self, count: u64) -> Result<usize, Stopped> {
        self.items = self.items.saturating_add(count);
        self.limit_items(self.data.len())?;
        usize::try_from(count).map_err(|_| self.decoding.too_many((S::RECORD, S::FIRST), self.place, count))
    }
}

impl<'r, S: Known, const PLANS: usize, const ANY: bool> Source<'r> for StatefulRow<'_, '_, 'r, S, PLANS, ANY> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn last(&self, leaf: u8) -> u64 {
        let Decoding { encoding, history, .. } = &*self.decoding;
        let plan = encoding.plan(S::FIRST + usize::from(leaf));
        plan.and_then(|plan| history.cells.get(plan.last as usize)).copied().unwrap_or(0)
    }
}
