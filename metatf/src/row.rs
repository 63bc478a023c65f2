//! Decoding one record, leaf by leaf, in the order of its bytes.
//!
//! Longer than other files: what is decoded in line and what is decoded apart from it are the two halves of one loop.

use crate::container::{Content, Order, Origin};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::format::{ExprOp, Format, Interpretation, Leaf, LeafKind, Record, Steps};
use crate::state::{BYTES, HISTORY, LAST, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, State};
use crate::streams::Streams;
use crate::typed::Source;
use std::marker::PhantomData;

/// How many repeated items a record may have beyond the bytes it stores (spec 3.3).
pub(crate) const FREE_ITEMS: u64 = 65_536;

/// What a row gives instead of a value when it cannot go on. Why is kept in the row, for whoever decodes: results of
/// leaves stay small.
#[derive(Clone, Copy, Debug)]
pub struct Stopped(pub(crate) ());

impl From<Stopped> for Error {
    /// A stand-in for the error in the row.
    #[cold]
    fn from(_: Stopped) -> Self {
        Self::at(0, ErrorKind::Usage("the row stopped"))
    }
}

/// The leaves of one record, asked for in order. Generated code and the universal reader both decode through this.
pub trait Row<'a> {
    /// What stands for an error here.
    type Error: Into<Error>;

    /// Stops with an error of the caller's.
    fn stop(&mut self, error: Error) -> Self::Error;

    /// The value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// What spec 4 and 7 say: input that ends, a constant that differs, a stream that is used up.
    fn number(&mut self, leaf: u8) -> Result<u64, Self::Error>;

    /// The bytes of the byte array `leaf`.
    ///
    /// # Errors
    /// A width expression out of range, or input that ends.
    fn bytes(&mut self, leaf: u8) -> Result<&'a [u8], Self::Error>;

    /// Announces `count` repeated items and checks them against the limit of spec 3.3.
    ///
    /// # Errors
    /// Too many items.
    fn items(&mut self, count: u64) -> Result<usize, Self::Error>;
}

/// Gives the bytes behind a [`Content`].
pub(crate) trait Bytes {
    fn bytes<'c>(&'c self, content: &'c Content) -> &'c [u8];
}

/// How a position in a content is named in an error (spec 7).
pub(crate) fn place(origin: Origin, position: usize) -> Place {
    match origin {
        Origin::Stored(offset) => Place { offset: offset + position as u64, ..Place::default() },
        Origin::Packed(offset) => Place { offset, content: Some(position as u64), ..Place::default() },
    }
}

/// The stored integer in the first bytes of `eight` under a plan, in the given byte order.
#[inline]
pub(crate) fn cut(eight: [u8; 8], plan: &Plan, order: Order) -> u64 {
    match order {
        Order::Little => u64::from_le_bytes(eight) & plan.mask,
        // A width of 0 shifts by 0 and is masked away.
        Order::Big => (u64::from_be_bytes(eight) >> ((64 - 8 * u32::from(plan.width)) & 63)) & plan.mask,
    }
}

/// The stored integer at `position` under a plan, in the given byte order; `None` where the data ends before it does.
#[inline]
pub(crate) fn stored(data: &[u8], position: usize, plan: &Plan, order: Order) -> Option<u64> {
    let mut eight = [0; 8];
    match data.get(position..position + 8) {
        Some(bytes) => eight.copy_from_slice(bytes),
        None => {
            let bytes = data.get(position..position + usize::from(plan.width))?;
            eight.get_mut(..bytes.len())?.copy_from_slice(bytes);
        }
    }
    Some(cut(eight, plan, order))
}

/// The value of a stored integer (the one formula), noted as the leaf's previous and last value.
#[inline]
pub(crate) fn value(raw: u64, plan: &Plan, cells: &mut [u64]) -> u64 {
    with_cells(plain(raw, plan), plan, cells)
}

/// The formula without history.
#[inline]
pub(crate) fn plain(raw: u64, plan: &Plan) -> u64 {
    (raw ^ plan.sign).wrapping_sub(plan.sign).wrapping_add(plan.base)
}

/// Completes the formula with history, and notes the value.
#[inline]
fn with_cells(plain: u64, plan: &Plan, cells: &mut [u64]) -> u64 {
    let value = plain.wrapping_add(history(plan, cells));
    note(value, plan, cells);
    value
}

/// What the formula adds of a cell.
#[inline]
pub(crate) fn history(plan: &Plan, cells: &[u64]) -> u64 {
    cells.get(plan.read as usize).copied().unwrap_or(0) & plan.history
}

/// Notes a value where somebody looks at it.
#[inline]
pub(crate) fn note(value: u64, plan: &Plan, cells: &mut [u64]) {
    if plan.is(PREVIOUS)
        && let Some(cell) = cells.get_mut(plan.write as usize)
    {
        *cell = value;
    }
    if plan.is(LAST | REFERENCED)
        && let Some(cell) = cells.get_mut(plan.last as usize)
    {
        *cell = value;
    }
}

/// Evaluates a width expression; `leaf` gives the last value of a leaf. `None` where a step leaves 0 to 2^64-1.
pub(crate) fn evaluate(program: &[ExprOp], mut leaf: impl FnMut(u8) -> u64) -> Option<u64> {
    let mut stack = Vec::new();
    if let [ExprOp::Leaf(only)] = program {
        return Some(leaf(*only));
    }
    for op in program {
        let value = match *op {
            ExprOp::Push(n) => n,
            ExprOp::Leaf(l) => leaf(l),
            ExprOp::Add | ExprOp::Sub | ExprOp::Mul => {
                let (b, a) = (stack.pop()?, stack.pop()?);
                let (a, b): (u64, u64) = (a, b);
                match *op {
                    ExprOp::Add => a.checked_add(b)?,
                    ExprOp::Sub => a.checked_sub(b)?,
                    _ => a.checked_mul(b)?,
                }
            }
        };
        stack.push(value);
    }
    stack.pop()
}

/// Decodes a record straight from a part's content.
pub struct ContentRow<'t, 'd> {
    pub(crate) format: &'t Format,
    pub(crate) record: &'t Record,
    pub(crate) data: &'d [u8],
    /// Next byte to read.
    pub(crate) position: usize,
    pub(crate) start: usize,
    pub(crate) origin: Origin,
    pub(crate) order: Order,
    pub(crate) state: &'t mut State,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    pub(crate) streams: &'t mut Streams,
    pub(crate) source: &'t dyn Bytes,
    pub(crate) items: u64,
    /// Why the row stopped.
    pub(crate) stopped: &'t mut Option<Error>,
}

impl<'t, 'd> ContentRow<'t, 'd> {
    /// An error about the byte at `position` (the first byte of `leaf`).
    #[cold]
    pub(crate) fn fail(&self, position: usize, leaf: Option<u8>, kind: ErrorKind) -> Error {
        let mut place = place(self.origin, position);
        let section = self.format.sections.get(self.state.section);
        place.section = section.map(|s| s.number);
        place.tag = section.filter(|s| !s.stream).map(|_| self.record.tag);
        place.leaf = leaf;
        place.record_start = Some(match self.origin {
            Origin::Stored(offset) => offset + self.start as u64,
            Origin::Packed(_) => self.start as u64,
        });
        Error { kind, place }
    }

    /// Goes on with a row of its own, so that this one, whose address nobody else takes, is kept in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn apart<T>(&mut self, go_on: impl FnOnce(&mut ContentRow<'_, 'd>) -> T) -> T {
        let mut row = ContentRow {
            format: self.format,
            record: self.record,
            data: self.data,
            position: self.position,
            start: self.start,
            origin: self.origin,
            order: self.order,
            state: self.state,
            first: self.first,
            streams: self.streams,
            source: self.source,
            items: self.items,
            stopped: self.stopped,
        };
        let result = go_on(&mut row);
        self.position = row.position;
        self.items = row.items;
        result
    }

    /// A numeric leaf that is not decoded in line: the formula is not all, or fewer than 8 bytes are left.
    #[inline(never)]
    fn number_apart(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let value = self.number_of(leaf);
        value.map_err(|error| self.stop(error))
    }

    fn number_of(&mut self, leaf: u8) -> Result<u64> {
        let index = self.first + usize::from(leaf);
        match self.state.plan(index).copied() {
            Some(plan) if plan.is(BYTES) => Err(self.fail(self.position, Some(leaf), ErrorKind::Usage("not a number"))),
            Some(plan) if plan.is(SPECIAL) => self.special(leaf, &plan),
            Some(plan) => self.inline(leaf, &plan),
            None => Err(self.fail(self.position, Some(leaf), ErrorKind::Usage("no such leaf"))),
        }
    }

    /// The value behind the code of a predicted leaf.
    fn predicted(&mut self, leaf: u8, plan: &Plan, model: u16) -> Result<u64> {
        let at = self.position;
        let Some(code) = stored(self.data, at, plan, self.order) else {
            return Err(self.fail(at, Some(leaf), ErrorKind::Truncated("a record")));
        };
        self.position += usize::from(plan.width);
        let (format, source, order) = (self.format, self.source, self.order);
        let target = format.models.get(usize::from(model)).map_or(0, |m| m.section);
        // A model has a cursor of its own, apart from that of leaves that stride.
        let reader = format.sections.len() + self.state.section;
        let streams = &mut *self.streams;
        let mut next = || streams.next(format, source, order, (reader, target), 1);
        let State { models, model_cells, cells, .. } = &mut *self.state;
        match models.decode(model_cells, model, cells, code, &mut next) {
            Ok(Ok(value)) => {
                note(value, plan, &mut self.state.cells);
                Ok(value)
            }
            Ok(Err(kind)) => Err(self.fail(at, Some(leaf), kind)),
            Err(e) if matches!(e.kind, ErrorKind::NoElement { .. }) => Err(self.fail(at, Some(leaf), e.kind)),
            Err(e) => Err(e),
        }
    }

    fn special(&mut self, leaf: u8, plan: &Plan) -> Result<u64> {
        let at = self.position;
        let index = self.first + usize::from(leaf);
        let value = match self.state.interpretation(index) {
            Interpretation::SectionStride(target, stride) => {
                let (order, reader) = (self.order, self.state.section);
                let element = self.streams.next(self.format, self.source, order, (reader, target), stride);
                let value = element.map_err(|e| match e.kind {
                    ErrorKind::NoElement { .. } => self.fail(at, Some(leaf), e.kind),
                    _ => e,
                })?;
                note(value, plan, &mut self.state.cells);
                value
            }
            Interpretation::Predicted(model) => self.predicted(leaf, plan, model)?,
            _ => self.inline(leaf, plan)?,
        };
        match self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant) {
            Some(expected) if expected != value => {
                Err(self.fail(at, Some(leaf), ErrorKind::NotConstant { found: value, expected }))
            }
            _ => Ok(value),
        }
    }

    fn inline(&mut self, leaf: u8, plan: &Plan) -> Result<u64> {
        match stored(self.data, self.position, plan, self.order) {
            Some(raw) => {
                self.position += usize::from(plan.width);
                Ok(value(raw, plan, &mut self.state.cells))
            }
            None => Err(self.fail(self.position, Some(leaf), ErrorKind::Truncated("a record"))),
        }
    }

    /// The length of a byte array that is the result of an expression.
    #[inline(never)]
    fn length_apart(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let length = match self.leaf(leaf).map(|l| &l.kind) {
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            _ => return Err(self.stop_at(Some(leaf), ErrorKind::Usage("not a byte array"))),
        };
        length.ok_or_else(|| self.stop_at(Some(leaf), ErrorKind::Expression))
    }

    /// Stops with an error about the next byte.
    #[cold]
    #[inline(never)]
    fn stop_at(&mut self, leaf: Option<u8>, kind: ErrorKind) -> Stopped {
        let error = self.fail(self.position, leaf, kind);
        self.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take(&mut self, leaf: u8, length: u64) -> Result<&'d [u8], Stopped> {
        let rest = self.data.get(self.position..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|n| rest.get(..n)) {
            Some(bytes) => {
                self.position += bytes.len();
                Ok(bytes)
            }
            None => Err(self.apart(|row| row.stop_at(Some(leaf), ErrorKind::Length(length)))),
        }
    }

    pub(crate) fn leaf(&self, leaf: u8) -> Option<&'t Leaf> {
        self.record.leaves.get(usize::from(leaf))
    }

    /// The last value read for a leaf of this record.
    pub(crate) fn last(&self, leaf: u8) -> u64 {
        let plan = self.state.plan(self.first + usize::from(leaf));
        plan.and_then(|p| self.state.cells.get(p.last as usize)).copied().unwrap_or(0)
    }

    /// The end of the record: the limit on items, now that its size is known (spec 3.3).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        let stored = (self.position - self.start) as u64;
        if self.items > stored + FREE_ITEMS {
            return Err(self.apart(|row| row.stop_at(None, ErrorKind::TooManyItems(row.items))));
        }
        Ok(())
    }

    /// Visits all leaves in order: what the universal reader, skipping and checking do.
    #[inline]
    pub(crate) fn walk(&mut self, visit: &mut impl Visit<'d>) -> Result<(), Stopped> {
        let first = usize::from(!self.format.sections.get(self.state.section).is_some_and(|s| s.stream));
        walk(self, self.record, first, visit)
    }
}

/// A row that can be walked through.
pub(crate) trait Walk<'a>: Source<'a> {
    /// The end of the record.
    ///
    /// # Errors
    /// What a record has to keep as a whole.
    fn end(&mut self) -> Result<(), Self::Error>;
}

impl<'d> Walk<'d> for ContentRow<'_, 'd> {
    #[inline]
    fn end(&mut self) -> Result<(), Stopped> {
        self.finish()
    }
}

/// Visits the leaves of a record, from this step of its layout on.
#[inline]
pub(crate) fn walk<'a, R: Source<'a>>(
    row: &mut R,
    record: &Record,
    first: usize,
    visit: &mut impl Visit<'a>,
) -> Result<(), R::Error> {
    record.walk(first, &mut Visiting { row, visit, data: PhantomData })
}

/// A row whose values are visited.
struct Visiting<'w, 'a, R, V> {
    row: &'w mut R,
    visit: &'w mut V,
    data: PhantomData<&'a [u8]>,
}

impl<'a, R: Source<'a>, V: Visit<'a>> Steps for Visiting<'_, 'a, R, V> {
    type Error = R::Error;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<(), R::Error> {
        let value = self.row.number(leaf)?;
        self.visit.number(leaf, value);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<(), R::Error> {
        let bytes = self.row.bytes(leaf)?;
        self.visit.bytes(leaf, bytes);
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64, R::Error> {
        Ok(self.row.items(self.row.last(count))? as u64)
    }
}

/// Takes the values of a record in the order of its leaves.
pub(crate) trait Visit<'a> {
    fn number(&mut self, leaf: u8, value: u64);
    fn bytes(&mut self, leaf: u8, bytes: &'a [u8]);
}

/// Skips.
impl Visit<'_> for () {
    fn number(&mut self, _: u8, _: u64) {}
    fn bytes(&mut self, _: u8, _: &[u8]) {}
}

impl<'d> Row<'d> for ContentRow<'_, 'd> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let index = self.first + usize::from(leaf);
        let eight = self.data.get(self.position..).and_then(|rest| rest.first_chunk());
        match (self.state.plans.get(index), eight) {
            (Some(plan), Some(eight)) if plan.flags & (SPECIAL | BYTES) == 0 => {
                self.position += usize::from(plan.width);
                let plain = plain(cut(*eight, plan, self.order), plan);
                Ok(if plan.flags == 0 { plain } else { with_cells(plain, plan, &mut self.state.cells) })
            }
            (Some(plan), Some(eight)) if plan.flags & PREDICTED != 0 => {
                let (plan, code) = (*plan, cut(*eight, plan, self.order));
                #[allow(clippy::cast_possible_truncation, reason = "the index of a model")]
                match self.state.predicted_usual(plan.base as u16, code) {
                    Some(value) => {
                        self.position += usize::from(plan.width);
                        note(value, &plan, &mut self.state.cells);
                        Ok(value)
                    }
                    None => self.apart(|row| row.number_apart(leaf)),
                }
            }
            (Some(plan), _) if plan.flags & STRIDED != 0 => match self.streams.ready(plan.base) {
                Some(value) => {
                    note(value, plan, &mut self.state.cells);
                    Ok(value)
                }
                None => self.apart(|row| row.number_apart(leaf)),
            },
            _ => self.apart(|row| row.number_apart(leaf)),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'d [u8], Stopped> {
        let plan = self.state.plans.get(self.first + usize::from(leaf));
        let length = match plan.filter(|plan| plan.flags & !HISTORY == BYTES) {
            Some(plan) => plan.base.wrapping_add(history(plan, &self.state.cells)),
            None => self.apart(|row| row.length_apart(leaf))?,
        };
        self.take(leaf, length)
    }

    fn items(&mut self, count: u64) -> Result<usize, Stopped> {
        self.items = self.items.saturating_add(count);
        let most = (self.data.len() - self.start) as u64 + FREE_ITEMS;
        match usize::try_from(count) {
            Ok(n) if self.items <= most => Ok(n),
            _ => Err(self.apart(|row| row.stop_at(None, ErrorKind::TooManyItems(row.items)))),
        }
    }
}
