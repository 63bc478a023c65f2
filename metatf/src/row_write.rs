//! Encoding one record, the mirror of `row`: `raw = value - base - (previous & history)`, and "does it fit" is "does it
//! survive the way back".

use crate::container::Order;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::format::{Format, Interpretation, LeafKind, Record};
use crate::row::{FREE_ITEMS, evaluate, note};
use crate::state::{Plan, State};
use crate::stream_write::StreamWriters;

/// A value that the leaf's encoding cannot hold as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) leaf: u8,
    pub(crate) value: u64,
    /// Bytes that would hold it under the interpretation in force, 1 to 8.
    pub(crate) needs: u8,
}

/// What a cell held before the record in progress.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cell: u32,
    value: u64,
}

/// What is kept while a record is encoded, so that it can be taken back; reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Attempt {
    pub(crate) misfits: Vec<Misfit>,
    undo: Vec<Undo>,
}

impl Attempt {
    pub(crate) fn start(&mut self) {
        self.misfits.clear();
        self.undo.clear();
    }

    /// Puts the cells back as they were at [`Attempt::start`].
    pub(crate) fn roll_back(&mut self, cells: &mut [u64]) {
        while let Some(undo) = self.undo.pop() {
            if let Some(cell) = cells.get_mut(undo.cell as usize) {
                *cell = undo.value;
            }
        }
    }
}

/// Takes the leaves of one record, in order. What [`Row`](crate::Row) is for reading.
pub struct RowWriter<'t> {
    pub(crate) format: &'t Format,
    pub(crate) record: &'t Record,
    pub(crate) state: &'t mut State,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    pub(crate) out: &'t mut Vec<u8>,
    /// Where the record begins in `out`.
    pub(crate) start: usize,
    pub(crate) order: Order,
    pub(crate) attempt: &'t mut Attempt,
    pub(crate) streams: &'t mut StreamWriters,
    pub(crate) items: u64,
}

/// The stored integer for a value under a plan, before it is cut to its width.
#[inline]
pub(crate) fn raw(value: u64, plan: &Plan, cells: &[u64]) -> u64 {
    let previous = cells.get(plan.read as usize).copied().unwrap_or(0) & plan.history;
    value.wrapping_sub(plan.base).wrapping_sub(previous)
}

/// Whether a stored integer survives being cut to the plan's width.
#[inline]
pub(crate) fn fits(raw: u64, plan: &Plan) -> bool {
    ((raw & plan.mask) ^ plan.sign).wrapping_sub(plan.sign) == raw
}

/// Bytes that hold `raw`, 1 to 8; sign-extended or not.
#[allow(clippy::cast_possible_truncation, reason = "1 to 8")]
pub(crate) fn bytes_for(raw: u64, signed: bool) -> u8 {
    let folded = if signed { (raw << 1) ^ ((raw as i64 >> 63) as u64) } else { raw };
    // The sign bit of a negative number folds away; what is left needs one bit more than its magnitude.
    let bits = 64 - folded.leading_zeros();
    (bits.div_ceil(8).max(1)) as u8
}

impl RowWriter<'_> {
    /// Encodes the value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// A constant with another value. A value that does not fit is noted; the writer deals with it after the record.
    #[inline]
    pub fn number(&mut self, leaf: u8, value: u64) -> Result<()> {
        let Some(&plan) = self.state.plan(self.first + usize::from(leaf)) else {
            return Err(self.fail(Some(leaf), ErrorKind::Usage("no such leaf")));
        };
        if plan.special && self.special(leaf, value)? {
            self.remember(&plan, value);
            return Ok(());
        }
        let raw = raw(value, &plan, &self.state.cells);
        if !fits(raw, &plan) {
            self.misfit(leaf, value, raw);
        }
        self.order.write(raw & plan.mask, usize::from(plan.width), self.out);
        self.remember(&plan, value);
        Ok(())
    }

    #[inline]
    fn remember(&mut self, plan: &Plan, value: u64) {
        for cell in [plan.write, plan.last] {
            let old = self.state.cells.get(cell as usize).copied().unwrap_or(0);
            self.attempt.undo.push(Undo { cell, value: old });
        }
        note(value, plan, &mut self.state.cells);
    }

    #[cold]
    fn misfit(&mut self, leaf: u8, value: u64, raw: u64) {
        // Leaves that store nothing will store the value as it is.
        let stores = self.state.interpretation(self.first + usize::from(leaf)).stores();
        let needs = if stores { bytes_for(raw, self.signed(leaf)) } else { bytes_for(value, false) };
        self.attempt.misfits.push(Misfit { leaf, value, needs });
    }

    fn signed(&self, leaf: u8) -> bool {
        let interpretation = self.state.interpretation(self.first + usize::from(leaf));
        !matches!(interpretation, Interpretation::None | Interpretation::SectionOffset(_))
    }

    /// A constant is checked; a stride goes to its stream section. True where nothing is stored here.
    #[cold]
    fn special(&mut self, leaf: u8, value: u64) -> Result<bool> {
        if let Some(expected) = self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant)
            && expected != value
        {
            return Err(self.fail(Some(leaf), ErrorKind::NotConstant { found: value, expected }));
        }
        let interpretation = self.state.interpretation(self.first + usize::from(leaf));
        if matches!(interpretation, Interpretation::Predicted(_)) {
            return Err(self.fail(Some(leaf), ErrorKind::Usage("predicted fields cannot be written")));
        }
        let Interpretation::SectionStride(target, stride) = interpretation else { return Ok(false) };
        if !self.streams.put(self.format, self.state.section, target, stride, value) {
            self.attempt.misfits.push(Misfit { leaf, value, needs: bytes_for(value, false) });
        }
        Ok(true)
    }

    /// Encodes the byte array `leaf`.
    ///
    /// # Errors
    /// Bytes of another length than the leaf's width says.
    pub fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<()> {
        let length = match self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            Some(LeafKind::Array(n)) => Some(u64::from(*n)),
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            _ => return Err(self.fail(Some(leaf), ErrorKind::Usage("not a byte array"))),
        };
        match length {
            Some(length) if length == bytes.len() as u64 => {
                self.out.extend_from_slice(bytes);
                Ok(())
            }
            Some(_) => Err(self.fail(Some(leaf), ErrorKind::Usage("the byte array is not as long as its width says"))),
            None => Err(self.fail(Some(leaf), ErrorKind::Expression)),
        }
    }

    /// Announces `count` repeated items, which must be what the counting leaf says.
    ///
    /// # Errors
    /// Items so many that no reader would take them (spec 3.3).
    pub fn items(&mut self, count: usize) -> Result<()> {
        self.items = self.items.saturating_add(count as u64);
        Ok(())
    }

    /// The last value written for a leaf of this record.
    pub(crate) fn last(&self, leaf: u8) -> u64 {
        let plan = self.state.plan(self.first + usize::from(leaf));
        plan.and_then(|p| self.state.cells.get(p.last as usize)).copied().unwrap_or(0)
    }

    /// The end of the record: the limit on items (spec 3.3).
    pub(crate) fn finish(&self) -> Result<()> {
        if self.items > (self.out.len() - self.start) as u64 + FREE_ITEMS {
            return Err(self.fail(None, ErrorKind::TooManyItems(self.items)));
        }
        Ok(())
    }

    #[cold]
    pub(crate) fn fail(&self, leaf: Option<u8>, kind: ErrorKind) -> Error {
        let section = self.format.sections.get(self.state.section);
        let place = Place {
            section: section.map(|s| s.number),
            tag: section.filter(|s| !s.stream).map(|_| self.record.tag),
            leaf,
            ..Place::default()
        };
        Error { kind, place }
    }
}
