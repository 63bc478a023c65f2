//! Decoding one record, leaf by leaf, in the order of its bytes.

use crate::container::{Content, Order, Origin};
use crate::error::{Error, ErrorKind, Place, Result};
use crate::format::{ExprOp, Format, Interpretation, Leaf, LeafKind, Record, Step};
use crate::state::{Plan, State};
use crate::streams::Streams;

/// How many repeated items a record may have beyond the bytes it stores (spec 3.3).
pub(crate) const FREE_ITEMS: u64 = 65_536;

/// The leaves of one record, asked for in order. Generated code and the universal reader both decode through this.
pub trait Row<'a> {
    /// The value of the numeric leaf `leaf`.
    ///
    /// # Errors
    /// What spec 4 and 7 say: input that ends, a constant that differs, a stream that is used up.
    fn number(&mut self, leaf: u8) -> Result<u64>;

    /// The bytes of the byte array `leaf`.
    ///
    /// # Errors
    /// A width expression out of range, or input that ends.
    fn bytes(&mut self, leaf: u8) -> Result<&'a [u8]>;

    /// Announces `count` repeated items and checks them against the limit of spec 3.3.
    ///
    /// # Errors
    /// Too many items.
    fn items(&mut self, count: u64) -> Result<usize>;
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
    Some(match order {
        Order::Little => u64::from_le_bytes(eight) & plan.mask,
        // A width of 0 shifts by 0 and is masked away.
        Order::Big => (u64::from_be_bytes(eight) >> ((64 - 8 * u32::from(plan.width)) & 63)) & plan.mask,
    })
}

/// The value of a stored integer (the one formula), noted as the leaf's previous and last value.
#[inline]
pub(crate) fn value(raw: u64, plan: &Plan, cells: &mut [u64]) -> u64 {
    let previous = cells.get(plan.read as usize).copied().unwrap_or(0) & plan.history;
    let value = (raw ^ plan.sign).wrapping_sub(plan.sign).wrapping_add(plan.base).wrapping_add(previous);
    note(value, plan, cells);
    value
}

#[inline]
pub(crate) fn note(value: u64, plan: &Plan, cells: &mut [u64]) {
    if let Some(cell) = cells.get_mut(plan.write as usize) {
        *cell = value;
    }
    if let Some(cell) = cells.get_mut(plan.last as usize) {
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
pub struct ContentRow<'t> {
    pub(crate) format: &'t Format,
    pub(crate) record: &'t Record,
    pub(crate) data: &'t [u8],
    /// Next byte to read; the reader's own position, so that it moves on with the row.
    pub(crate) position: &'t mut usize,
    pub(crate) start: usize,
    pub(crate) origin: Origin,
    pub(crate) order: Order,
    pub(crate) state: &'t mut State,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    pub(crate) streams: &'t mut Streams,
    pub(crate) source: &'t dyn Bytes,
    pub(crate) items: u64,
}

impl<'t> ContentRow<'t> {
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

    #[cold]
    fn special(&mut self, leaf: u8, plan: Plan) -> Result<u64> {
        let at = *self.position;
        let index = self.first + usize::from(leaf);
        let value = match self.state.interpretation(index) {
            Interpretation::SectionStride(target, stride) => {
                let order = self.order;
                let section = self.state.section;
                let element = self.streams.next(self.format, self.source, order, section, target, stride);
                let value = element.map_err(|e| match e.kind {
                    ErrorKind::NoElement { .. } => self.fail(at, Some(leaf), e.kind),
                    _ => e,
                })?;
                note(value, &plan, &mut self.state.cells);
                value
            }
            Interpretation::Predicted(_) => {
                return Err(self.fail(at, Some(leaf), ErrorKind::Usage("predicted fields cannot be read")));
            }
            _ => self.inline(leaf, &plan)?,
        };
        match self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant) {
            Some(expected) if expected != value => {
                Err(self.fail(at, Some(leaf), ErrorKind::NotConstant { found: value, expected }))
            }
            _ => Ok(value),
        }
    }

    #[inline]
    fn inline(&mut self, leaf: u8, plan: &Plan) -> Result<u64> {
        match stored(self.data, *self.position, plan, self.order) {
            Some(raw) => {
                *self.position += usize::from(plan.width);
                Ok(value(raw, plan, &mut self.state.cells))
            }
            None => Err(self.fail(*self.position, Some(leaf), ErrorKind::Truncated("a record"))),
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
    pub(crate) fn finish(&self) -> Result<()> {
        let stored = (*self.position - self.start) as u64;
        if self.items > stored + FREE_ITEMS {
            return Err(self.fail(*self.position, None, ErrorKind::TooManyItems(self.items)));
        }
        Ok(())
    }

    /// Visits all leaves in order: what the universal reader, skipping and checking do.
    pub(crate) fn walk(&mut self, visit: &mut impl Visit) -> Result<()> {
        let first = usize::from(!self.format.sections.get(self.state.section).is_some_and(|s| s.stream));
        let steps = self.record.steps.get(first..).unwrap_or_default();
        self.walk_steps(steps, first, visit)
    }

    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn walk_steps(&mut self, steps: &'t [Step], offset: usize, visit: &mut impl Visit) -> Result<()> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => {
                    let value = self.number(leaf)?;
                    visit.number(value);
                }
                Step::Bytes(leaf) => {
                    let bytes = self.bytes(leaf)?;
                    visit.bytes(bytes);
                }
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    for _ in 0..self.items(self.last(count))? {
                        self.walk_steps(body, offset + at, visit)?;
                    }
                    at = end;
                }
            }
        }
        Ok(())
    }
}

/// Takes the values of a record in the order of its leaves.
pub(crate) trait Visit {
    fn number(&mut self, value: u64);
    fn bytes(&mut self, bytes: &[u8]);
}

/// Skips.
impl Visit for () {
    fn number(&mut self, _: u64) {}
    fn bytes(&mut self, _: &[u8]) {}
}

impl<'t> Row<'t> for ContentRow<'t> {
    #[inline]
    fn number(&mut self, leaf: u8) -> Result<u64> {
        let Some(&plan) = self.state.plan(self.first + usize::from(leaf)) else {
            return Err(self.fail(*self.position, Some(leaf), ErrorKind::Usage("no such leaf")));
        };
        if plan.special { self.special(leaf, plan) } else { self.inline(leaf, &plan) }
    }

    fn bytes(&mut self, leaf: u8) -> Result<&'t [u8]> {
        let at = *self.position;
        let length = match self.leaf(leaf).map(|l| &l.kind) {
            Some(LeafKind::Array(n)) => Some(u64::from(*n)),
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            _ => return Err(self.fail(at, Some(leaf), ErrorKind::Usage("not a byte array"))),
        };
        let Some(length) = length else {
            return Err(self.fail(at, Some(leaf), ErrorKind::Expression));
        };
        let rest = self.data.get(at..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|n| rest.get(..n)) {
            Some(bytes) => {
                *self.position = at + bytes.len();
                Ok(bytes)
            }
            None => Err(self.fail(at, Some(leaf), ErrorKind::Length(length))),
        }
    }

    fn items(&mut self, count: u64) -> Result<usize> {
        self.items = self.items.saturating_add(count);
        let most = (self.data.len() - self.start) as u64 + FREE_ITEMS;
        match usize::try_from(count) {
            Ok(n) if self.items <= most => Ok(n),
            _ => Err(self.fail(*self.position, None, ErrorKind::TooManyItems(self.items))),
        }
    }
}
