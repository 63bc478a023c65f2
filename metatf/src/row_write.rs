//! Encoding one record, the mirror of `row`: `raw = value - base - (previous & history)`, and "does it fit" is "does it
//! survive the way back".

use crate::buffer::room;
use crate::container::Order;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::format::{Format, Interpretation, LeafKind, Record};
use crate::predict::Context;
use crate::row::{FREE_ITEMS, evaluate, history, note};
use crate::state::{BYTES, HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, State};
use crate::stream_write::StreamWriters;

/// A value that the leaf's encoding cannot hold as it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Misfit {
    pub(crate) leaf: u8,
    pub(crate) value: u64,
    /// Bytes that would hold it under the interpretation in force, 1 to 8; or [`UNPREDICTED`].
    pub(crate) needs: u8,
}

/// A predicted leaf whose stream section has no room for what no candidate hits: it has to be stored as it is.
pub(crate) const UNPREDICTED: u8 = 0;

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
    /// Predicted leaves of the record, and what value models go by.
    pending: Vec<Pending>,
    numbers: Vec<u64>,
    /// For the record's predicted leaves whose values its models have learnt.
    codes: Vec<Known>,
    /// What they leave to stream sections.
    elements: Vec<u64>,
}

/// How a value that a model has learnt is stored.
#[derive(Clone, Copy, Debug)]
struct Known {
    code: u64,
    /// From where to where its elements are in [`Attempt::elements`].
    elements: (usize, usize),
}

/// A predicted leaf whose code is not known yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    leaf: u8,
    model: u16,
    value: u64,
    context: Context,
    /// Where its code goes.
    at: usize,
    width: u8,
}

/// A predicted leaf of a record that was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub(crate) model: u16,
    pub(crate) value: u64,
    pub(crate) context: Context,
    /// Where its code is in the section's chunk, and of how many bytes.
    pub(crate) at: usize,
    pub(crate) width: u8,
}

impl Attempt {
    /// The predicted leaves of the record.
    pub(crate) fn noted(&self) -> impl Iterator<Item = Noted> + '_ {
        self.pending.iter().map(|p| {
            let Pending { model, value, context, at, width, .. } = *p;
            Noted { model, value, context, at, width }
        })
    }

    /// The predicted leaves of the record, each with its code, once its models have learnt them.
    #[cfg(feature = "dynamic")]
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u8, u64)> + '_ {
        self.pending.iter().zip(&self.codes).map(|(pending, known)| (pending.leaf, known.code))
    }

    /// A record, before its first attempt.
    #[inline]
    pub(crate) fn start_record(&mut self) {
        self.codes.clear();
        self.elements.clear();
    }

    /// Of the next predicted leaf of the record the code is known, which is all there is to store.
    #[inline]
    pub(crate) fn know(&mut self, code: u64) {
        self.codes.push(Known { code, elements: (0, 0) });
    }

    /// Keeps what a cell held before the record.
    #[inline]
    pub(crate) fn keep(&mut self, cell: u32, value: u64) {
        self.undo.push(Undo { cell, value });
    }

    /// Notes a predicted leaf, by the index of its plan, and where its code goes.
    pub(crate) fn note(&mut self, state: &State, plan: usize, value: u64, at: usize) {
        let Some(&Plan { base, width, .. }) = state.plans.get(plan) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
        let model = base as u16;
        let context = state.model_cells.context(model, &state.cells, &mut self.numbers);
        self.pending.push(Pending { leaf: 0, model, value, context, at, width });
    }

    /// An attempt at a record.
    #[inline]
    pub(crate) fn start(&mut self) {
        self.misfits.clear();
        self.undo.clear();
        self.pending.clear();
        self.numbers.clear();
    }

    /// Whether the record has predicted leaves.
    #[inline]
    pub(crate) fn predicts(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Notes a predicted leaf, by the index of its plan, and where its code goes: models run when all else of the record
    /// fits.
    #[inline(never)]
    fn pend(&mut self, state: &mut State, plan: usize, leaf: u8, value: u64, at: usize) {
        let Some(&plan) = state.plans.get(plan) else { return };
        #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
        let model = plan.base as u16;
        let context = state.model_cells.context(model, &state.cells, &mut self.numbers);
        self.pending.push(Pending { leaf, model, value, context, at, width: plan.width });
        self.remember(&plan, &state.cells);
        note(value, &plan, &mut state.cells);
    }

    /// Runs the models of the record's predicted leaves, and puts their codes in place. There are misfits afterwards where a
    /// code does not fit its width: what the models have learnt they do not learn again in the record's next attempt. Or
    /// where the stream section cannot take what no candidate hits, or a strict writer may not widen: then the models have
    /// learnt nothing.
    pub(crate) fn predict(
        &mut self,
        format: &Format,
        state: &mut State,
        streams: &mut StreamWriters,
        (order, strict): (Order, bool),
        out: &mut [u8],
    ) {
        let State { section, models, model_cells, .. } = state;
        let reader = format.sections.len() + *section;
        let target = |model: u16| format.models.get(usize::from(model)).map_or(0, |m| m.section);
        // One leaf alone is looked at before it is learnt. Of several, all but the first may fail when others are learnt.
        let may_fail = |p: &Pending| (strict && p.width == 0) || streams.may_refuse(format, reader, target(p.model));
        let risky = self.codes.is_empty() && self.pending.len() > 1 && self.pending.iter().any(may_fail);
        let saved = risky.then(|| models.clone());
        for (i, pending) in self.pending.iter().enumerate() {
            let context = (pending.context, &*self.numbers);
            let code = match self.codes.get(i) {
                // Taking the record back took its elements back, too. There was room for them, so there is.
                Some(known) => {
                    let elements = self.elements.get(known.elements.0..known.elements.1).unwrap_or_default();
                    let put = streams.put_all(format, reader, target(pending.model), elements);
                    debug_assert!(put, "elements that were put before");
                    known.code
                }
                // The code of a hit takes a byte at most, which a strict writer may not add.
                None if (pending.width > 0 || !strict)
                    && let Some(code) = models.encode_hit(model_cells, pending.model, context.0, pending.value) =>
                {
                    self.codes.push(Known { code, elements: (0, 0) });
                    code
                }
                None => {
                    let start = self.elements.len();
                    let (known, room) = (models.is_known(model_cells, pending.model), models.room());
                    let found = models.find(model_cells, pending.model, context, pending.value, &mut self.elements);
                    self.elements.extend_from_slice(found.elements());
                    let needs = width_of(found.code);
                    let refused = strict && needs > pending.width;
                    let elements = self.elements.get(start..).unwrap_or_default();
                    let full = |streams: &mut StreamWriters| {
                        !elements.is_empty() && !streams.put_all(format, reader, target(pending.model), elements)
                    };
                    if refused || full(streams) {
                        let needs = if refused { needs } else { UNPREDICTED };
                        self.misfits.push(Misfit { leaf: pending.leaf, value: pending.value, needs });
                        match saved {
                            Some(saved) => *models = saved,
                            None if !known => models.forget(model_cells, pending.model, room),
                            None => {}
                        }
                        self.start_record();
                        return;
                    }
                    models.learn(model_cells, pending.model, context, pending.value, &found);
                    self.codes.push(Known { code: found.code, elements: (start, self.elements.len()) });
                    found.code
                }
            };
            let needs = width_of(code);
            if needs > pending.width {
                self.misfits.push(Misfit { leaf: pending.leaf, value: pending.value, needs });
            }
            let stored = out.get_mut(pending.at..pending.at + usize::from(pending.width));
            order.store(code, stored.unwrap_or_default());
        }
    }

    /// Keeps what a leaf's value is about to overwrite and later records may look at.
    #[inline]
    fn remember(&mut self, plan: &Plan, cells: &[u64]) {
        let mut keep = |cell: u32| {
            self.undo.push(Undo { cell, value: cells.get(cell as usize).copied().unwrap_or(0) });
        };
        if plan.is(PREVIOUS) {
            keep(plan.write);
        }
        if plan.is(REFERENCED) {
            keep(plan.last);
        }
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
pub trait Put {
    /// What stands for an error here.
    type Error;

    /// Stops with an error of the caller's.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// Encodes the value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// A constant with another value. A value that does not fit is noted; the writer deals with it after the record.
    fn number(&mut self, leaf: u8, value: u64) -> Result<(), Self::Error>;

    /// Encodes the byte array `leaf`.
    ///
    /// # Errors
    /// Bytes of another length than the leaf's width says.
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Announces `count` repeated items, which must be what the counting leaf says.
    ///
    /// # Errors
    /// Items so many that no reader would take them (spec 3.3).
    fn items(&mut self, count: usize) -> Result<(), Self::Error>;

    /// The last value written for a leaf of this record.
    fn last(&self, leaf: u8) -> u64;
}

/// Encodes a record whatever the state of its section.
pub struct RowWriter<'t> {
    pub(crate) format: &'t Format,
    pub(crate) record: &'t Record,
    pub(crate) state: &'t mut State,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    /// Bytes up to `at` are in use, those behind are room.
    pub(crate) out: &'t mut Vec<u8>,
    pub(crate) at: usize,
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
    value.wrapping_sub(plan.base).wrapping_sub(history(plan, cells))
}

/// The bytes of the stored integer, those that the plan stores first.
#[inline]
pub(crate) fn bytes_of(raw: u64, plan: &Plan, order: Order) -> [u8; 8] {
    match order {
        Order::Little => raw.to_le_bytes(),
        // A width of 0 shifts by 0, and stores nothing.
        Order::Big => (raw << ((64 - 8 * u32::from(plan.width)) & 63)).to_be_bytes(),
    }
}

/// Bytes that a code needs.
pub(crate) fn width_of(code: u64) -> u8 {
    if code == 0 { 0 } else { bytes_for(code, false) }
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
    /// Goes on with a row of its own, so that this one, whose address nobody else takes, is kept in registers.
    #[inline(always)]
    fn apart<T>(&mut self, go_on: impl FnOnce(&mut RowWriter<'_>) -> T) -> T {
        let mut row = RowWriter {
            format: self.format,
            record: self.record,
            state: self.state,
            first: self.first,
            out: self.out,
            at: self.at,
            start: self.start,
            order: self.order,
            attempt: self.attempt,
            streams: self.streams,
            items: self.items,
        };
        let result = go_on(&mut row);
        self.at = row.at;
        self.items = row.items;
        result
    }

    /// A numeric leaf that is not encoded in line: the formula is not all, or the value does not fit.
    #[inline(never)]
    fn number_apart(&mut self, leaf: u8, value: u64) -> Result<()> {
        let plan = match self.state.plan(self.first + usize::from(leaf)).copied() {
            Some(plan) if !plan.is(BYTES) => plan,
            Some(_) => return Err(self.fail(Some(leaf), ErrorKind::Usage("not a number"))),
            None => return Err(self.fail(Some(leaf), ErrorKind::Usage("no such leaf"))),
        };
        if plan.is(PREDICTED) {
            self.attempt.pend(self.state, self.first + usize::from(leaf), leaf, value, self.at);
            self.store([0; 8], plan.width);
            return Ok(());
        } else if !plan.is(SPECIAL) || !self.special(leaf, value)? {
            let raw = raw(value, &plan, &self.state.cells);
            if !fits(raw, &plan) {
                self.misfit(leaf, value, raw);
            }
            self.store(bytes_of(raw, &plan, self.order), plan.width);
        }
        self.attempt.remember(&plan, &self.state.cells);
        note(value, &plan, &mut self.state.cells);
        Ok(())
    }

    /// The tag, which comes first.
    #[inline(always)]
    pub(crate) fn tag(&mut self, tag: u32, width: u8) {
        let plan = Plan { width, ..Plan::default() };
        self.store(bytes_of(tag.into(), &plan, self.order), width);
    }

    /// Stores the first `width` bytes.
    #[inline(always)]
    fn store(&mut self, eight: [u8; 8], width: u8) {
        if let Some(room) = room(self.out, self.at, eight.len()) {
            room.copy_from_slice(&eight);
            self.at += usize::from(width);
        }
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
    fn special(&mut self, leaf: u8, value: u64) -> Result<bool> {
        if let Some(expected) = self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant)
            && expected != value
        {
            return Err(self.fail(Some(leaf), ErrorKind::NotConstant { found: value, expected }));
        }
        let interpretation = self.state.interpretation(self.first + usize::from(leaf));
        let Interpretation::SectionStride(target, stride) = interpretation else { return Ok(false) };
        if !self.streams.put(self.format, (self.state.section, target), stride, value) {
            self.attempt.misfits.push(Misfit { leaf, value, needs: bytes_for(value, false) });
        }
        Ok(true)
    }

    /// The length of a byte array that is the result of an expression.
    #[inline(never)]
    fn length_apart(&self, leaf: u8) -> Result<u64> {
        let length = match self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            _ => return Err(self.fail(Some(leaf), ErrorKind::Usage("not a byte array"))),
        };
        length.ok_or_else(|| self.fail(Some(leaf), ErrorKind::Expression))
    }

    /// The end of the record: the limit on items (spec 3.3).
    #[inline(always)]
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.items > (self.at - self.start) as u64 + FREE_ITEMS {
            return self.apart(|row| Err(row.fail(None, ErrorKind::TooManyItems(row.items))));
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

impl Put for RowWriter<'_> {
    type Error = Error;

    #[cold]
    fn stop(&mut self, error: Error) -> Error {
        error
    }

    #[inline(always)]
    fn number(&mut self, leaf: u8, value: u64) -> Result<()> {
        let plan = self.state.plans.get(self.first + usize::from(leaf));
        let room = self.out.get_mut(self.at..).and_then(|room| room.first_chunk_mut());
        if let (Some(plan), Some(room)) = (plan, room) {
            if plan.flags & (SPECIAL | BYTES) == 0 {
                let plain = value.wrapping_sub(plan.base);
                let raw = if plan.flags == 0 { plain } else { plain.wrapping_sub(history(plan, &self.state.cells)) };
                if fits(raw, plan) {
                    // All eight bytes; the next leaf overwrites those that this one does not store.
                    *room = bytes_of(raw, plan, self.order);
                    self.at += usize::from(plan.width);
                    if plan.flags != 0 {
                        self.attempt.remember(plan, &self.state.cells);
                        note(value, plan, &mut self.state.cells);
                    }
                    return Ok(());
                }
            } else if plan.flags & PREDICTED != 0 {
                *room = [0; 8];
                let at = self.at;
                self.at += usize::from(plan.width);
                self.attempt.pend(self.state, self.first + usize::from(leaf), leaf, value, at);
                return Ok(());
            } else if plan.flags & STRIDED != 0 && self.streams.append(plan.base, value) {
                self.attempt.remember(plan, &self.state.cells);
                note(value, plan, &mut self.state.cells);
                return Ok(());
            }
        }
        self.apart(|row| row.number_apart(leaf, value))
    }

    #[inline(always)]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<()> {
        let plan = self.state.plans.get(self.first + usize::from(leaf));
        let length = match plan.filter(|plan| plan.flags & !HISTORY == BYTES) {
            Some(plan) => plan.base.wrapping_add(history(plan, &self.state.cells)),
            None => self.apart(|row| row.length_apart(leaf))?,
        };
        if length != bytes.len() as u64 {
            let what = ErrorKind::Usage("the byte array is not as long as its width says");
            return self.apart(|row| Err(row.fail(Some(leaf), what)));
        }
        if !bytes.is_empty()
            && let Some(room) = room(self.out, self.at, bytes.len())
        {
            room.copy_from_slice(bytes);
            self.at += bytes.len();
        }
        Ok(())
    }

    fn items(&mut self, count: usize) -> Result<()> {
        self.items = self.items.saturating_add(count as u64);
        Ok(())
    }

    fn last(&self, leaf: u8) -> u64 {
        let plan = self.state.plan(self.first + usize::from(leaf));
        plan.and_then(|p| self.state.cells.get(p.last as usize)).copied().unwrap_or(0)
    }
}
