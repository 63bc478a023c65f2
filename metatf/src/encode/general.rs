//! Encodes a record leaf by leaf, in any state of its section, mirroring `decode/general.rs`. The stored integer is
//! `value - base - (previous & history)`. It fits if decoding it yields the original value.

use crate::buffer::Prefilled;
use crate::decode::{ContentRow, Decoding};
use crate::encode::{Attempt, GivenElements, Misfit, StreamWriters};
use crate::format::{Format, Interpretation, LeafKind, Record};
use crate::formula::{
    BYTES, HISTORY, PREDICTED, Plan, SPECIAL, STRIDED, Width, bytes_for, bytes_of, evaluate, fits, history, note, raw,
};
use crate::record::{FREE_ITEMS, MOST_UNTIL, Put, Visit};
use crate::state::State;
use crate::streams::{NoBytes, Streams};
use metatf_container::{Error, ErrorKind, Order, Origin, Place, Result};

/// Set in the number of items of a record that must be checked when it ends. The number then exceeds every limit.
const CHECK_AT_END: u64 = 1 << 63;

/// The error for a record after one that extends to the end of the content.
pub(crate) const NOT_LAST: &str = "the record before extends to the end, so no other record can follow it here";

fn is_stream(format: &Format, section: usize) -> bool {
    format.sections.get(section).is_some_and(|section| section.stream)
}

/// Compares the numbers of items that a reader finds with those given to the writer.
struct Counts<'c> {
    given: &'c [(u8, u64)],
    at: usize,
    /// The first count that differs: its leaf, the number given, and the number found.
    wrong: Option<(u8, u64, u64)>,
}

impl Visit<'_> for Counts<'_> {
    fn number(&mut self, leaf: u8, value: u64) {
        let Some(&(expected, given)) = self.given.get(self.at) else { return };
        if leaf == expected && self.wrong.is_none() {
            self.at += 1;
            self.wrong = (given != value).then_some((leaf, given, value));
        }
    }

    fn bytes(&mut self, _: u8, _: &[u8]) {}
}

/// A row that encodes a record in any state of its section.
pub struct RowWriter<'t> {
    pub(crate) format: &'t Format,
    pub(crate) record: &'t Record,
    pub(crate) state: &'t mut State,
    /// Index of the record's first plan.
    pub(crate) first: usize,
    /// The output. Bytes up to `at` are in use; later bytes are scratch space.
    pub(crate) out: Prefilled<'t>,
    pub(crate) at: usize,
    /// Start of the record in `out`.
    pub(crate) start: usize,
    pub(crate) order: Order,
    pub(crate) attempt: &'t mut Attempt,
    pub(crate) streams: &'t mut StreamWriters,
    pub(crate) items: u64,
}

impl<'t> RowWriter<'t> {
    /// Starts an attempt at a record. The record is given with the index of its first plan, and it begins at an offset
    /// in the bytes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn begin(
        format: &'t Format,
        (record, first): (&'t Record, usize),
        state: &'t mut State,
        (out, start): (Prefilled<'t>, usize),
        order: Order,
        (attempt, streams): (&'t mut Attempt, &'t mut StreamWriters),
    ) -> Self {
        attempt.start_attempt();
        streams.start_record();
        Self { format, record, state, first, out, at: start, start, order, attempt, streams, items: 0 }
    }
}

impl<'t> RowWriter<'t> {
    /// Returns the record being encoded.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn record(&self) -> &'t Record {
        self.record
    }
}

impl RowWriter<'_> {
    /// Continues in a copy of this row. Since the address of the original is never taken, the compiler keeps the
    /// original in registers.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn slow<T>(&mut self, work: impl FnOnce(&mut RowWriter<'_>) -> T) -> T {
        let mut row = RowWriter {
            format: self.format,
            record: self.record,
            state: self.state,
            first: self.first,
            out: self.out.reborrow(),
            at: self.at,
            start: self.start,
            order: self.order,
            attempt: self.attempt,
            streams: self.streams,
            items: self.items,
        };
        let result = work(&mut row);
        self.at = row.at;
        self.items = row.items;
        result
    }

    /// Encodes a numeric leaf on the slow path, which is needed if the formula alone does not yield the stored integer
    /// or if the value does not fit.
    #[inline(never)]
    fn number_slow(&mut self, leaf: u8, value: u64) -> Result<()> {
        let plan = match self.state.encoding.plan(self.first + usize::from(leaf)).copied() {
            Some(plan) if !plan.is(BYTES) => plan,
            Some(_) => return Err(self.fail(Some(leaf), ErrorKind::Usage("the leaf is not a number"))),
            None => return Err(self.fail(Some(leaf), ErrorKind::Usage("the record has no such leaf"))),
        };
        if plan.is(PREDICTED) {
            self.attempt.predict_later(self.state, self.first + usize::from(leaf), leaf, value, self.at);
            self.store([0; 8], plan.width);
            return Ok(());
        } else if !plan.is(SPECIAL) || !self.special(leaf, value)? {
            let raw = raw(value, &plan, &self.state.history.cells);
            if !fits(raw, &plan) {
                self.misfit(leaf, value, raw);
            }
            self.store(bytes_of(raw, &plan, self.order), plan.width);
        }
        self.attempt.save_cells(&plan, &self.state.history.cells);
        note(value, &plan, &mut self.state.history.cells);
        Ok(())
    }

    /// Encodes the tag, which comes first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn tag(&mut self, tag: u32) {
        let width = Width::saturating(self.format.tag_width.into());
        let plan = Plan { width, ..Plan::default() };
        self.store(bytes_of(tag.into(), &plan, self.order), width);
    }

    /// Appends the first `width` of eight bytes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn store(&mut self, eight: [u8; 8], width: Width) {
        if let Some(place) = self.out.at(self.at, eight.len()) {
            place.copy_from_slice(&eight);
            self.at += width.bytes();
        }
    }

    #[cold]
    fn misfit(&mut self, leaf: u8, value: u64, raw: u64) {
        // A leaf that currently stores nothing will be changed to store the value directly.
        let stores = self.state.encoding.interpretation(self.first + usize::from(leaf)).stores();
        let needs = if stores { bytes_for(raw, self.signed(leaf)) } else { bytes_for(value, false) };
        let expected = (!stores).then(|| value.wrapping_sub(raw));
        self.attempt.misfits.push(Misfit { leaf, value, needs, expected });
    }

    fn signed(&self, leaf: u8) -> bool {
        let interpretation = self.state.encoding.interpretation(self.first + usize::from(leaf));
        !matches!(interpretation, Interpretation::None | Interpretation::SectionOffset(_))
    }

    /// Checks a constant or a computed value, adds a stride's value to its stream section, or stores a catch-all tag.
    /// Returns true if nothing else needs to be stored for the leaf.
    fn special(&mut self, leaf: u8, value: u64) -> Result<bool> {
        if leaf == 0 && self.record.is_catch_all() {
            return self.any_tag(value).map(|()| true);
        }
        if let Some(expected) = self.record.leaves.get(usize::from(leaf)).and_then(|l| l.constant)
            && expected != value
        {
            return Err(self.fail(Some(leaf), ErrorKind::NotConstant { found: value, expected }));
        }
        if let Some(LeafKind::Scanned(_)) = self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            self.check_at_end();
            self.attempt.scanned.push((leaf, value));
            return Ok(true);
        }
        if let Some(LeafKind::Computed(program)) = self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            let expected = evaluate(program, |l| self.last(l));
            let expected = expected.ok_or_else(|| self.fail(Some(leaf), ErrorKind::Expression))?;
            return match expected == value {
                true => Ok(true),
                false => Err(self.fail(Some(leaf), ErrorKind::NotCount { found: value, expected })),
            };
        }
        let interpretation = self.state.encoding.interpretation(self.first + usize::from(leaf));
        let Interpretation::SectionStride(target, stride) = interpretation else { return Ok(false) };
        if !self.streams.put(self.format, (self.state.encoding.section, target), stride, value) {
            self.attempt.misfits.push(Misfit { leaf, value, needs: bytes_for(value, false), expected: None });
        }
        Ok(true)
    }

    /// Replaces the stored tag with the tag of a catch-all record.
    fn any_tag(&mut self, value: u64) -> Result<()> {
        let width = usize::from(self.format.tag_width);
        let tag = u32::try_from(value).ok().filter(|tag| usize::from(bytes_for((*tag).into(), false)) <= width);
        let Some(tag) = tag else {
            return Err(self.fail(Some(0), ErrorKind::DoesNotFit { value, width: self.format.tag_width }));
        };
        let listed =
            self.state.encoding.listed(tag).and_then(|listed| self.format.records.get(usize::from(listed.record)));
        if !listed.is_some_and(Record::is_catch_all) {
            return Err(self.fail(Some(0), ErrorKind::TagTaken(tag)));
        }
        if let Some(place) = self.out.at(self.start, width) {
            self.order.store(value, place);
        }
        Ok(())
    }

    /// Returns the length of a byte array computed by an expression. Returns `None` for an array that ends at a
    /// terminator, which is stored here.
    #[inline(never)]
    fn length_slow(&mut self, leaf: u8, bytes: &[u8]) -> Result<Option<u64>> {
        let length = match self.record.leaves.get(usize::from(leaf)).map(|l| &l.kind) {
            Some(LeafKind::Variable(program)) => evaluate(program, |l| self.last(l)),
            Some(LeafKind::Until(end)) => return self.until(leaf, bytes, *end).map(|()| None),
            Some(LeafKind::Rest) => {
                self.check_at_end();
                Some(bytes.len() as u64)
            }
            _ => return Err(self.fail(Some(leaf), ErrorKind::Usage("the leaf is not a byte array"))),
        };
        length.map(Some).ok_or_else(|| self.fail(Some(leaf), ErrorKind::Expression))
    }

    /// Stores bytes followed by their terminator.
    fn until(&mut self, leaf: u8, bytes: &[u8], end: u8) -> Result<()> {
        if bytes.len() > MOST_UNTIL || bytes.contains(&end) {
            return Err(self.fail(Some(leaf), ErrorKind::NoEnd(end)));
        }
        if let Some((last, place)) = self.out.at(self.at, bytes.len() + 1).and_then(<[u8]>::split_last_mut) {
            place.copy_from_slice(bytes);
            *last = end;
            self.at += bytes.len() + 1;
        }
        Ok(())
    }

    /// Checks the limit on items at the end of the record (spec 3.3).
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn finish(&mut self) -> Result<()> {
        if self.items > (self.at - self.start) as u64 + FREE_ITEMS {
            return self.slow(|row| row.finish_slow());
        }
        Ok(())
    }

    /// Marks the record, so that [`finish`](Self::finish) takes the slow path.
    fn check_at_end(&mut self) {
        if self.items & CHECK_AT_END == 0 {
            self.items |= CHECK_AT_END;
            self.attempt.scanned.clear();
        }
    }

    /// Ends a record that has too many items or whose end depends on its content.
    #[cold]
    #[inline(never)]
    fn finish_slow(&mut self) -> Result<()> {
        let items = self.items & !CHECK_AT_END;
        if items > (self.at - self.start) as u64 + FREE_ITEMS {
            return Err(self.fail(None, ErrorKind::TooManyItems(items)));
        }
        if self.attempt.misfits.is_empty() {
            self.read_back()?;
            if self.record.ends_content() {
                self.end_content()?;
            }
        }
        Ok(())
    }

    /// Reads the record again, and checks that a reader finds as many items as the record was given.
    fn read_back(&mut self) -> Result<()> {
        if self.attempt.scanned.is_empty() {
            return Ok(());
        }
        let length = self.at - self.start;
        let Some(data) = self.out.at(self.start, length) else { return Ok(()) };
        let is_element = is_stream(self.format, self.state.encoding.section);
        let position = if is_element { 0 } else { usize::from(self.format.tag_width) };
        let State { encoding, history, .. } = &mut *self.state;
        let after = history.cells.clone();
        self.attempt.undo_cells(&mut history.cells);
        let mut stopped = None;
        let decoding = Decoding {
            format: self.format,
            data,
            origin: Origin::Packed(0),
            order: self.order,
            encoding,
            history,
            streams: &mut Streams::new(self.format),
            source: &NoBytes,
            stopped: &mut stopped,
        };
        let (record, first) = (self.record, self.first);
        let mut row = ContentRow { decoding, record, position, start: 0, first, items: 0 };
        let mut found = Counts { given: &self.attempt.scanned, at: 0, wrong: None };
        let walked = row.walk(&mut found);
        let Counts { at, wrong, .. } = found;
        self.state.history.cells = after;
        match (wrong, walked, stopped) {
            (Some((leaf, found, expected)), ..) => Err(self.fail(Some(leaf), ErrorKind::NotCount { found, expected })),
            (None, Err(_), Some(error)) => {
                // A reader would look for more items after the record.
                let count = self.attempt.scanned.get(at).map(|(leaf, _)| *leaf);
                let kind = match error.kind {
                    ErrorKind::Truncated(_) | ErrorKind::Length(_) => ErrorKind::NoLastItem,
                    kind => kind,
                };
                Err(self.fail(count.or(error.place.leaf), kind))
            }
            _ => Ok(()),
        }
    }

    /// Ends the content of the section after the record, which extends to the end.
    fn end_content(&mut self) -> Result<()> {
        let section = self.state.encoding.section;
        if let Some(stream) = self.streams.streams.get_mut(section).filter(|_| is_stream(self.format, section)) {
            let follows = stream.given.last().is_some_and(|segment| segment.count > 0);
            if stream.table_count > 0 {
                let why = "an element of a shared table cannot extend to the end of its chunk";
                return Err(self.fail(None, ErrorKind::Usage(why)));
            } else if follows && self.streams.fixed {
                return Err(self.fail(None, ErrorKind::Usage(NOT_LAST)));
            } else if follows {
                stream.given.push(GivenElements::default());
            }
            // The next element begins a chunk, which resets the state.
            self.state.reset(self.format);
        }
        self.state.history.models.end_content();
        Ok(())
    }

    #[cold]
    pub(crate) fn fail(&self, leaf: Option<u8>, kind: ErrorKind) -> Error {
        let section = self.format.sections.get(self.state.encoding.section);
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

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn number(&mut self, leaf: u8, value: u64) -> Result<()> {
        if self.record.time == Some(leaf) {
            self.attempt.times.add(value);
        }
        let plan = self.state.encoding.plans.get(self.first + usize::from(leaf));
        let place = self.out.tail(self.at).and_then(|tail| tail.first_chunk_mut());
        if let (Some(plan), Some(place)) = (plan, place) {
            if plan.flags & (SPECIAL | BYTES) == 0 {
                let plain = value.wrapping_sub(plan.base);
                let raw =
                    if plan.flags == 0 { plain } else { plain.wrapping_sub(history(plan, &self.state.history.cells)) };
                if fits(raw, plan) {
                    // All eight bytes are stored; the next leaf overwrites the excess bytes.
                    *place = bytes_of(raw, plan, self.order);
                    self.at += plan.width.bytes();
                    if plan.flags != 0 {
                        self.attempt.save_cells(plan, &self.state.history.cells);
                        note(value, plan, &mut self.state.history.cells);
                    }
                    return Ok(());
                }
            } else if plan.flags & PREDICTED != 0 {
                *place = [0; 8];
                let at = self.at;
                self.at += plan.width.bytes();
                self.attempt.predict_later(self.state, self.first + usize::from(leaf), leaf, value, at);
                return Ok(());
            } else if plan.flags & STRIDED != 0 && self.streams.append(plan.base, value) {
                self.attempt.save_cells(plan, &self.state.history.cells);
                note(value, plan, &mut self.state.history.cells);
                return Ok(());
            }
        }
        self.slow(|row| row.number_slow(leaf, value))
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn bytes(&mut self, leaf: u8, bytes: &[u8]) -> Result<()> {
        let plan = self.state.encoding.plans.get(self.first + usize::from(leaf));
        let length = match plan.filter(|plan| plan.flags & !HISTORY == BYTES) {
            Some(plan) => plan.base.wrapping_add(history(plan, &self.state.history.cells)),
            None => match self.slow(|row| row.length_slow(leaf, bytes))? {
                Some(length) => length,
                None => return Ok(()),
            },
        };
        if length != bytes.len() as u64 {
            let what = ErrorKind::Usage("the length of the byte array differs from its width");
            return self.slow(|row| Err(row.fail(Some(leaf), what)));
        }
        if !bytes.is_empty()
            && let Some(place) = self.out.at(self.at, bytes.len())
        {
            place.copy_from_slice(bytes);
            self.at += bytes.len();
        }
        Ok(())
    }

    fn items(&mut self, count: usize) -> Result<()> {
        self.items = self.items.saturating_add(count as u64);
        Ok(())
    }

    fn last(&self, leaf: u8) -> u64 {
        let plan = self.state.encoding.plan(self.first + usize::from(leaf));
        plan.and_then(|p| self.state.history.cells.get(p.last as usize)).copied().unwrap_or(0)
    }
}
