//! Decodes a stateful record, whose shape is known at compile time. Its values may be saved for other leaves, depend on
//! the previous value, be predicted by a model, or come from a stream section.
//!
//! Decoding cannot be restarted, because models may have learned from the record already. The slow path of a leaf
//! therefore handles only that leaf.

use super::Decoding;
use crate::format::Floor;
use crate::formula::{self, HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, STRIDED, eight, note, plain, taken};
use crate::record::{Known, Row, Source, Stopped};
use metatf_container::{Error, ErrorKind};
use std::marker::PhantomData;

/// A row that reads the leaves of an `S`, a stateful record.
pub(crate) struct StatefulRow<'p, 't, 'r, S, const PLANS: usize> {
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
    pub(crate) shape: PhantomData<S>,
}

impl<S: Known, const PLANS: usize> StatefulRow<'_, '_, '_, S, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let (value, at) = self.decoding.number((S::RECORD, S::FIRST), self.place, leaf)?;
        self.place.1 = at;
        self.previous = value;
        Ok(value)
    }
}

impl<'r, S: Known, const PLANS: usize> Row<'r> for StatefulRow<'_, '_, 'r, S, PLANS> {
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
            // Most leaves need nothing more.
            if flags & !LAST == 0 {
                self.place.1 += width;
                self.previous = plain(raw, plan);
                return Ok(self.previous);
            }
            let Decoding { encoding, history, .. } = &mut *self.decoding;
            if matches!(floor, Floor::Predicted) && flags & PREDICTED != 0 {
                #[allow(clippy::cast_possible_truncation, reason = "model indices fit in 16 bits")]
                let value = history.decode_hit(&encoding.model_cells, plan.base as u16, raw);
                let Some(value) = value else { return self.slow(leaf) };
                value
            } else if flags & HISTORY != 0 {
                plain(raw, plan).wrapping_add(formula::history(plan, &history.cells))
            } else {
                plain(raw, plan)
            }
        };
        if flags & (PREVIOUS | REFERENCED) != 0 {
            note(value, plan, &mut self.decoding.history.cells);
        }
        self.place.1 += width;
        self.previous = value;
        Ok(value)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'r [u8], Stopped> {
        let length = S::FLOORS[usize::from(leaf)].length(self.previous);
        if length == 0 {
            return Ok(&[]);
        }
        let (bytes, at) = match taken(self.data, self.place.1, length) {
            Some(bytes) => (bytes, self.place.1 + bytes.len()),
            None => {
                // The length is stored directly before the bytes.
                if let Some(plan) = self.plans.get(S::FIRST + usize::from(leaf.saturating_sub(1))) {
                    note(self.previous, &Plan { flags: LAST, ..*plan }, &mut self.decoding.history.cells);
                }
                self.decoding.bytes((S::RECORD, S::FIRST), self.place, leaf)?
            }
        };
        self.place.1 = at;
        Ok(bytes)
    }

    fn items(&mut self, _: u64) -> Result<usize, Stopped> {
        Err(self.decoding.stop(Error::at(0, ErrorKind::Usage("a record with items is decoded leaf by leaf"))))
    }
}

impl<'r, S: Known, const PLANS: usize> Source<'r> for StatefulRow<'_, '_, 'r, S, PLANS> {
    fn last(&self, _: u8) -> u64 {
        self.previous
    }
}
