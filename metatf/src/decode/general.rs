//! Decoding a record leaf by leaf, in the order of its bytes.
//!
//! This file is longer than most because the inlined fast path and the out-of-line slow path are two halves of one
//! loop.

use super::{Decoding, tag};
use crate::format::{Interpretation, Leaf, LeafKind, Record, Step};
use crate::formula::{
    BYTES, HISTORY, PREDICTED, Plan, SPECIAL, STRIDED, cut, evaluate, history, note, plain, stored, value, with_cells,
};
use crate::record::{FREE_ITEMS, MOST_UNTIL, Row, Source, Stopped, Visit, Walk, walk};
use crate::state::History;
use crate::streams::place;
use metatf_container::{Error, ErrorKind, Origin, Result};

/// A row that decodes a record directly from a part's content.
pub struct ContentRow<'t, 'd> {
    pub(crate) decoding: Decoding<'t, 'd>,
    pub(crate) record: &'t Record,
    /// Position of the next byte to read.
    pub(crate) position: usize,
    pub(crate) start: usize,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    pub(crate) items: u64,
}

impl<'t, 'd> Decoding<'t, 'd> {
    /// Creates a row for the record that begins at `start`. Decoding continues with the byte at `at`. The record is
    /// identified by its index in the format and the index of its first plan.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn row(
        self,
        (record, first): (u16, usize),
        (start, position): (usize, usize),
    ) -> Option<ContentRow<'t, 'd>> {
        let record = self.format.records.get(usize::from(record))?;
        Some(ContentRow { decoding: self, record, position, start, first, items: 0 })
    }

    /// Decodes a numeric leaf of a record on the slow path. Returns its value and the start of the next leaf.
    #[cold]
    #[inline(never)]
    pub(super) fn number(
        &mut self,
        record: (u16, usize),
        place: (usize, usize),
        leaf: u8,
    ) -> Result<(u64, usize), Stopped> {
        let mut row = self.reborrow().row(record, place).ok_or(Stopped(()))?;
        let value = row.number(leaf)?;
        Ok((value, row.position))
    }

    /// Decodes a byte array of a record. Returns the array and the start of the next leaf.
    #[cold]
    #[inline(never)]
    pub(super) fn bytes(
        &mut self,
        record: (u16, usize),
        place: (usize, usize),
        leaf: u8,
    ) -> Result<(&'d [u8], usize), Stopped> {
        let mut row = self.reborrow().row(record, place).ok_or(Stopped(()))?;
        let bytes = row.bytes(leaf)?;
        Ok((bytes, row.position))
    }
}

impl Decoding<'_, '_> {
    /// Stops at a record with too many items.
    #[cold]
    #[inline(never)]
    pub(super) fn too_many(&mut self, record: (u16, usize), place: (usize, usize), items: u64) -> Stopped {
        let Some(mut row) = self.reborrow().row(record, place) else { return Stopped(()) };
        row.stop_at(None, ErrorKind::TooManyItems(items))
    }
}

impl<'t, 'd> ContentRow<'t, 'd> {
    /// Returns an error at the byte at `position`, which is the first byte of `leaf`.
    #[cold]
    pub(crate) fn fail(&self, position: usize, leaf: Option<u8>, kind: ErrorKind) -> Error {
        let mut place = place(self.decoding.origin, position);
        let section = self.decoding.format.sections.get(self.decoding.encoding.section);
        place.section = section.map(|s| s.number);
        place.tag = section.filter(|s| !s.stream).map(|_| self.found_tag());
        place.leaf = leaf;
        place.record_start = Some(match self.decoding.origin {
            Origin::Stored(offset) => offset + self.start as u64,
            Origin::Packed(_) => self.start as u64,
        });
        Error { kind, place }
    }

    /// Continues in a copy of this row. Since the address of the original is never taken, the compiler keeps the
    /// original in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow<T>(&mut self, go_on: impl FnOnce(&mut ContentRow<'_, 'd>) -> T) -> T {
        let Self { record, position, start, first, items, .. } = *self;
        let mut row = ContentRow { decoding: self.decoding.reborrow(), record, position, start, first, items };
        let result = go_on(&mut row);
        self.position = row.position;
        self.items = row.items;
        result
    }

    /// Decodes a numeric leaf on the slow path, which is needed if the formula alone does not yield the value or if
    /// fewer than 8 bytes are left.
    #[inline(never)]
    fn number_slow(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let value = self.number_of(leaf);
        value.map_err(|error| self.stop(error))
    }

    fn number_of(&mut self, leaf: u8) -> Result<u64> {
        let index = self.first + usize::from(leaf);
        match self.decoding.encoding.plan(index).copied() {
            Some(plan) if plan.is(BYTES) => {
                Err(self.fail(self.position, Some(leaf), ErrorKind::Usage("the leaf is not a number")))
            }
            Some(plan) if plan.is(SPECIAL) => self.special(leaf, &plan),
            Some(plan) => self.inline(leaf, &plan),
            None => Err(self.fail(self.position, Some(leaf), ErrorKind::Usage("the record has no such leaf"))),
        }
    }

    /// Returns the value represented by the code of a predicted leaf.
    fn predicted(&mut self, leaf: u8, plan: &Plan, model: u16) -> Result<u64> {
        let at = self.position;
        let Some(code) = stored(self.decoding.data, at, plan, self.decoding.order) else {
            return Err(self.fail(at, Some(leaf), ErrorKind::Truncated("a record")));
        };
        self.position += plan.width.bytes();
        let Decoding { format, encoding, source, order, .. } = self.decoding;
        let target = format.models.get(usize::from(model)).map_or(0, |m| m.section);
        // The models of a section share a cursor, which is separate from the cursor of the section's striding leaves.
        let reader = format.sections.len() + encoding.section;
        let streams = &mut *self.decoding.streams;
        let mut next = || streams.next(format, source, order, (reader, target), 1);
        let History { cells, models } = &mut *self.decoding.history;
        match models.decode(&encoding.model_cells, model, cells, code, &mut next) {
            Ok(Ok(value)) => {
                note(value, plan, &mut self.decoding.history.cells);
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
        let value = match self.decoding.encoding.interpretation(index) {
            Interpretation::SectionStride(target, stride) => {
                let (order, reader) = (self.decoding.order, self.decoding.encoding.section);
                let element = self.decoding.streams.next(
                    self.decoding.format,
                    self.decoding.source,
                    order,
                    (reader, target),
                    stride,
                );
                let value = element.map_err(|e| match e.kind {
                    ErrorKind::NoElement { .. } => self.fail(at, Some(leaf), e.kind),
                    _ => e,
                })?;
                note(value, plan, &mut self.decoding.history.cells);
                value
            }
            Interpretation::Predicted(model) => self.predicted(leaf, plan, model)?,
            _ if leaf == 0 && self.record.is_catch_all() => self.tag(plan),
            _ if self.is_computed(leaf) => self.computed(leaf, plan)?,
            _ => self.inline(leaf, plan)?,
        };
        match self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant) {
            Some(expected) if expected != value => {
                Err(self.fail(at, Some(leaf), ErrorKind::NotConstant { found: value, expected }))
            }
            _ => Ok(value),
        }
    }

    /// Returns the tag stored at the start of the record.
    fn found_tag(&self) -> u32 {
        let Decoding { data, order, format, .. } = &self.decoding;
        let found =
            if self.record.is_catch_all() { tag(data, self.start, format.tag_width.into(), *order) } else { None };
        found.unwrap_or(self.record.tag)
    }

    /// Returns the tag of a catch-all record as a value.
    fn tag(&mut self, plan: &Plan) -> u64 {
        let tag = self.found_tag().into();
        note(tag, plan, &mut self.decoding.history.cells);
        tag
    }

    fn is_computed(&self, leaf: u8) -> bool {
        matches!(self.leaf(leaf), Some(Leaf { kind: LeafKind::Computed(_) | LeafKind::Scanned(_), .. }))
    }

    /// Computes a count from its expression or its items.
    fn computed(&mut self, leaf: u8, plan: &Plan) -> Result<u64> {
        let value = match self.leaf(leaf).map(|l| &l.kind) {
            Some(LeafKind::Computed(program)) => evaluate(program, |l| self.last(l)),
            Some(LeafKind::Scanned(until)) => Some(self.scan(leaf, until)?),
            _ => None,
        };
        let value = value.ok_or_else(|| self.fail(self.position, Some(leaf), ErrorKind::Expression))?;
        note(value, plan, &mut self.decoding.history.cells);
        Ok(value)
    }

    fn inline(&mut self, leaf: u8, plan: &Plan) -> Result<u64> {
        match stored(self.decoding.data, self.position, plan, self.decoding.order) {
            Some(raw) => {
                self.position += plan.width.bytes();
                Ok(value(raw, plan, &mut self.decoding.history.cells))
            }
            None => Err(self.fail(self.position, Some(leaf), ErrorKind::Truncated("a record"))),
        }
    }

    /// Returns a byte array whose length is computed by an expression, or which ends at a terminator.
    #[inline(never)]
    fn bytes_slow(&mut self, leaf: u8) -> Result<&'d [u8], Stopped> {
        let length = match self.leaf(leaf).map(|l| &l.kind) {
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            Some(LeafKind::Until(end)) => return self.until(leaf, *end),
            Some(LeafKind::Rest) => {
                let step = self.record.steps.iter().position(|step| *step == Step::Bytes(leaf)).unwrap_or_default();
                let left = self.before_tail(step + 1).checked_sub(self.position);
                return match left {
                    Some(length) => self.take(leaf, length as u64),
                    None => Err(self.stop_at(Some(leaf), ErrorKind::Truncated("a record"))),
                };
            }
            _ => return Err(self.stop_at(Some(leaf), ErrorKind::Usage("the leaf is not a byte array"))),
        };
        let length = length.ok_or_else(|| self.stop_at(Some(leaf), ErrorKind::Expression))?;
        self.take(leaf, length)
    }

    /// Returns the bytes before the terminator `end`.
    fn until(&mut self, leaf: u8, end: u8) -> Result<&'d [u8], Stopped> {
        let rest = self.decoding.data.get(self.position..).unwrap_or_default();
        // The search is bounded, because a salvaging reader may start a search at every byte.
        let near = rest.get(..MOST_UNTIL + 1).unwrap_or(rest);
        let Some(length) = near.iter().position(|&byte| byte == end) else {
            let kind = if near.len() < rest.len() { ErrorKind::NoEnd(end) } else { ErrorKind::Truncated("a record") };
            return Err(self.stop_at(Some(leaf), kind));
        };
        self.position += length + 1;
        Ok(rest.get(..length).unwrap_or_default())
    }

    /// Stops with an error at the next byte.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_at(&mut self, leaf: Option<u8>, kind: ErrorKind) -> Stopped {
        let error = self.fail(self.position, leaf, kind);
        self.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take(&mut self, leaf: u8, length: u64) -> Result<&'d [u8], Stopped> {
        let rest = self.decoding.data.get(self.position..).unwrap_or_default();
        match usize::try_from(length).ok().and_then(|n| rest.get(..n)) {
            Some(bytes) => {
                self.position += bytes.len();
                Ok(bytes)
            }
            None => Err(self.slow(|row| row.stop_at(Some(leaf), ErrorKind::Length(length)))),
        }
    }

    pub(crate) fn leaf(&self, leaf: u8) -> Option<&'t Leaf> {
        self.record.leaves.get(usize::from(leaf))
    }

    /// Returns the last value read for a leaf of this record.
    pub(crate) fn last(&self, leaf: u8) -> u64 {
        let plan = self.decoding.encoding.plan(self.first + usize::from(leaf));
        plan.and_then(|p| self.decoding.history.cells.get(p.last as usize)).copied().unwrap_or(0)
    }

    /// Ends the record and checks the limit on items, now that its size is known (spec 3.3).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self) -> Result<(), Stopped> {
        let stored = (self.position - self.start) as u64;
        if self.items > stored + FREE_ITEMS {
            return Err(self.slow(|row| row.stop_at(None, ErrorKind::TooManyItems(row.items))));
        }
        Ok(())
    }

    /// Visits all leaves in order. The dynamic reader uses this function, and so do skipping and checking.
    #[inline]
    pub(crate) fn walk(&mut self, visit: &mut impl Visit<'d>) -> Result<(), Stopped> {
        walk(self, self.record, self.record.first_value(), visit)
    }
}

impl<'d> Walk<'d> for ContentRow<'_, 'd> {
    #[inline]
    fn end(&mut self) -> Result<(), Stopped> {
        self.finish()
    }
}

impl<'d> Row<'d> for ContentRow<'_, 'd> {
    type Error = Stopped;

    #[cold]
    fn stop(&mut self, error: Error) -> Stopped {
        self.decoding.stop(error)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8) -> Result<u64, Stopped> {
        let index = self.first + usize::from(leaf);
        let eight = self.decoding.data.get(self.position..).and_then(|rest| rest.first_chunk());
        match (self.decoding.encoding.plans.get(index), eight) {
            (Some(plan), Some(eight)) if plan.flags & (SPECIAL | BYTES) == 0 => {
                self.position += plan.width.bytes();
                let plain = plain(cut(*eight, plan, self.decoding.order), plan);
                Ok(if plan.flags == 0 { plain } else { with_cells(plain, plan, &mut self.decoding.history.cells) })
            }
            (Some(plan), Some(eight)) if plan.flags & PREDICTED != 0 => {
                let (plan, code) = (*plan, cut(*eight, plan, self.decoding.order));
                #[allow(clippy::cast_possible_truncation, reason = "model indices fit in 16 bits")]
                match self.decoding.history.decode_hit(&self.decoding.encoding.model_cells, plan.base as u16, code) {
                    Some(value) => {
                        self.position += plan.width.bytes();
                        note(value, &plan, &mut self.decoding.history.cells);
                        Ok(value)
                    }
                    None => self.slow(|row| row.number_slow(leaf)),
                }
            }
            (Some(plan), _) if plan.flags & STRIDED != 0 => match self.decoding.streams.ready(plan.base) {
                Some(value) => {
                    note(value, plan, &mut self.decoding.history.cells);
                    Ok(value)
                }
                None => self.slow(|row| row.number_slow(leaf)),
            },
            _ => self.slow(|row| row.number_slow(leaf)),
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8) -> Result<&'d [u8], Stopped> {
        let plan = self.decoding.encoding.plans.get(self.first + usize::from(leaf));
        let length = match plan.filter(|plan| plan.flags & !HISTORY == BYTES) {
            Some(plan) => plan.base.wrapping_add(history(plan, &self.decoding.history.cells)),
            None => return self.slow(|row| row.bytes_slow(leaf)),
        };
        self.take(leaf, length)
    }

    fn items(&mut self, count: u64) -> Result<usize, Stopped> {
        self.items = self.items.saturating_add(count);
        let most = (self.decoding.data.len() - self.start) as u64 + FREE_ITEMS;
        match usize::try_from(count) {
            Ok(n) if self.items <= most => Ok(n),
            _ => Err(self.slow(|row| row.stop_at(None, ErrorKind::TooManyItems(row.items)))),
        }
    }
}

impl<'d> Source<'d> for ContentRow<'_, 'd> {
    #[inline]
    fn last(&self, leaf: u8) -> u64 {
        ContentRow::last(self, leaf)
    }
}
