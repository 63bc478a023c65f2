//! Records by their values, for readers that know no types: one at a time, or in a loop.

mod kind;
mod view;

pub use view::{Item, RecordView};

use super::run::{Run, tag};
use super::{Event, Pending, RecordReader};
use crate::container::Order;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{Format, METADATA, Step};
use crate::grade::{VIEWS, bit};
use crate::row::{ContentRow, Row, Stopped};
use crate::state::State;
use kind::Kind;
use std::ops::ControlFlow;
use view::{Span, Values};

/// How the data records of all sections are decoded, and the one that was decoded last.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// By section.
    sections: Vec<SectionKinds>,
    /// Room for a record that is decoded leaf by leaf.
    apart: Values,
}

#[derive(Debug, Default)]
struct SectionKinds {
    /// The position of a record in the section by its tag, for tags under 256.
    by_tag: Option<Box<[u16; 256]>>,
    /// By position.
    kinds: Vec<Kind>,
    /// Some that were met.
    usual: [Usual; 3],
    /// How many records were of others, since one was put there.
    others: u32,
}

/// A type of record that comes often. Its tag is compared, where others are looked up: a branch can be foreseen, so that
/// the next record can be found before the tag of this one is there.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    tag: u32,
    position: usize,
}

/// Of so many records of unusual types the last one's becomes usual.
const OFTEN: u32 = 1024;

/// No position of a record: [`Kinds`] has none there.
const NONE: u16 = u16::MAX;

impl RecordReader<'_> {
    /// The next data record; `None` at the end, and after an error. Comments, metadata and the like are gone over.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace; nothing comes after it.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>> {
        // SAFETY: what this gives is returned; where it gives nothing, nothing of it is left.
        if let Some(view) = unsafe { self.once_more() }.plain_view() {
            return Ok(Some(view));
        }
        let offset = self.next_apart()?;
        Ok(offset.map(|offset| self.view_apart(offset)))
    }

    /// The next data record, where it comes without ado: no comment, no metadata, no event.
    #[cfg(feature = "dynamic")]
    #[inline]
    pub(crate) fn plain_record(&mut self) -> Result<Option<RecordView<'_>>> {
        // SAFETY: what this gives is returned; where it gives nothing, nothing of it is left.
        if let Some(view) = unsafe { self.once_more() }.plain_view() {
            return Ok(Some(view));
        }
        let offset = self.plain_apart()?;
        Ok(offset.map(|offset| self.view_apart(offset)))
    }

    /// Gives each data record that is left to `each`: faster than one by one.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(RecordView<'_>)) -> Result<()> {
        self.try_for_each(|record| {
            each(record);
            Ok(())
        })
    }

    /// As [`for_each`](Self::for_each), until `each` returns an error. The records after it can still be read.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record), and what `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.run_views(&mut each)?;
            // One step, of whatever kind: behind metadata records may come as fast as before.
            match self.next_event()? {
                Some(Event::Record(_)) => {
                    let offset = self.decode_announced()?;
                    each(self.view_apart(offset))?;
                }
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Gives the data records that come next to `each`, until something else comes, or an error, or nothing more:
    /// [`next_event`](Self::next_event) tells which. Metadata is applied on the way. For a loop that is as fast as
    /// [`for_each`](Self::for_each) and sees comments, too. Where
    /// `each` returns an error the records after it can still be read.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record), and what `each` returns.
    #[inline]
    pub fn try_for_run<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run_views(&mut each)
    }

    #[inline(always)]
    fn run_views<E: From<Error>>(&mut self, each: &mut impl FnMut(RecordView<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut kinds = std::mem::take(&mut self.kinds);
        let run = self.run(|section, run| kinds.run(section, run, each));
        self.kinds = kinds;
        match run {
            Some(ControlFlow::Break(error)) => Err(error),
            Some(ControlFlow::Continue(())) => Ok(self.stopped().map_or(Ok(()), Err)?),
            None => Ok(()),
        }
    }

    /// The next data record where it comes without ado, and is decoded by lists.
    #[inline(always)]
    fn plain_view(&mut self) -> Option<RecordView<'_>> {
        if !self.is_idle() {
            return None;
        }
        let current = self.current.as_mut().filter(|current| !current.is_element)?;
        let data = self.container.bytes(&current.content);
        let state = self.states.get_mut(current.section)?;
        if state.grades.has_changed(VIEWS) {
            self.kinds.refresh(&self.format, state, self.order);
        }
        let (start, width) = (current.position, usize::from(self.format.tag_width));
        let kinds = self.kinds.sections.get_mut(current.section)?;
        let (position, end) = kinds.fill(tag(data, start, width, self.order)?, data, start + width, state);
        current.position = end?;
        current.found += 1;
        self.records += 1;
        Some(RecordView::new(&kinds.kinds.get(position)?.values, data, end?, current.base + start as u64))
    }

    /// The place of the next data record, which is decoded leaf by leaf.
    #[inline(never)]
    fn next_apart(&mut self) -> Result<Option<u64>> {
        if let Some(offset) = self.plain_apart()? {
            return Ok(Some(offset));
        }
        loop {
            match self.next_event()? {
                Some(Event::Record(_)) => return self.decode_announced().map(Some),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Its place where it comes without ado.
    #[inline(never)]
    fn plain_apart(&mut self) -> Result<Option<u64>> {
        if !self.is_plain() {
            return Ok(None);
        }
        let mut apart = std::mem::take(&mut self.kinds.apart);
        let offset = self.start_run().and_then(|(mut run, mut end)| {
            let (start, width) = (run.position, usize::from(run.format.tag_width));
            let listed = run.state.listed(tag(run.data, start, width, run.order)?)?;
            let decoded = run.decode_apart(listed.position.into(), start + width, &mut apart);
            let offset = run.base + start as u64;
            end.tell(run.position, 1, decoded.is_err());
            decoded.is_ok().then_some(offset)
        });
        self.kinds.apart = apart;
        if offset.is_some() { Ok(offset) } else { self.stopped().map_or(Ok(None), Err) }
    }

    /// Decodes the record that was announced, leaf by leaf, and gives its place.
    #[inline(never)]
    fn decode_announced(&mut self) -> Result<u64> {
        let none = Error::at(0, ErrorKind::Usage("no record is waiting to be decoded"));
        let Pending { section, start, record, .. } = self.pending.ok_or(none)?;
        let offset = self.current.as_ref().map_or(0, |current| current.base) + start as u64;
        let mut apart = std::mem::take(&mut self.kinds.apart);
        let decoded = self.decode(|row| Ok(apart.read((section, record), row)?));
        self.kinds.apart = apart;
        decoded.map(|()| offset)
    }

    /// The record that was decoded last, leaf by leaf.
    fn view_apart(&self, offset: u64) -> RecordView<'_> {
        let data = self.current.as_ref().map_or(&[][..], |current| self.container.bytes(&current.content));
        let end = self.current.as_ref().map_or(0, |current| current.position);
        RecordView::new(&self.kinds.apart, data, end, offset)
    }
}

impl Kinds {
    /// Gives the records that come next to `each`. What stops it is told when the run ends.
    #[inline(always)]
    fn run<E>(
        &mut self,
        section: usize,
        run: &mut Run<'_>,
        each: &mut impl FnMut(RecordView<'_>) -> Result<(), E>,
    ) -> ControlFlow<E> {
        if run.state.grades.has_changed(VIEWS) {
            self.refresh(run.format, run.state, run.order);
        }
        let Self { sections, apart } = self;
        let Some(section) = sections.get_mut(section) else { return ControlFlow::Continue(()) };
        let (data, base, width) = (run.data, run.base, usize::from(run.format.tag_width));
        let (mut at, mut count) = (run.position, 0);
        let flow = loop {
            let Some(tag) = tag(data, at, width, run.order) else { break ControlFlow::Continue(()) };
            let (position, next) = section.fill(tag, data, at + width, run.state);
            let Some(kind) = section.kinds.get(position) else { break ControlFlow::Continue(()) };
            let offset = base + at as u64;
            let view = match next {
                Some(next) => {
                    at = next;
                    &kind.values
                }
                None => {
                    run.position = at;
                    if run.decode_apart(position, at + width, apart).is_err() {
                        break ControlFlow::Continue(());
                    }
                    at = run.position;
                    &*apart
                }
            };
            count += 1;
            if let Err(error) = each(RecordView::new(view, data, at, offset)) {
                break ControlFlow::Break(error);
            }
        };
        run.position = at;
        run.count += count;
        flow
    }

    /// Learns the plans of a section that have changed.
    #[cold]
    #[inline(never)]
    fn refresh(&mut self, format: &Format, state: &mut State, order: Order) {
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), SectionKinds::default);
        }
        let changed = state.grades.take_changed(VIEWS);
        let index = state.section;
        let (Some(kinds), Some(section)) = (self.sections.get_mut(index), format.sections.get(index)) else { return };
        let is_new = kinds.kinds.is_empty();
        if is_new {
            kinds.by_tag = Some(Box::new([NONE; 256]));
            kinds.kinds.resize_with(section.records.len(), Kind::default);
            kinds.usual = [Usual { tag: u32::MAX, position: usize::MAX }; 3];
        }
        for (position, (&record, kind)) in section.records.iter().zip(&mut kinds.kinds).enumerate() {
            let is_changed = is_new || changed & bit(position) != 0 || position >= 64 && changed == u64::MAX;
            let Some(known) = format.records.get(usize::from(record)).filter(|_| is_changed && record > METADATA)
            else {
                continue;
            };
            if let Some(slot) = kinds.by_tag.as_mut().and_then(|by_tag| by_tag.get_mut(known.tag as usize)) {
                *slot = u16::try_from(position).unwrap_or(NONE);
            }
            // Big-endian integers are decoded leaf by leaf.
            if order == Order::Little {
                kind.learn((index, record), known, state, position);
            }
        }
    }
}

impl SectionKinds {
    /// Decodes the record with this tag, which ends at a place. Gives its position, and where the next one begins, if it could be
    /// decoded by lists.
    #[inline(always)]
    fn fill(&mut self, tag: u32, data: &[u8], at: usize, state: &mut State) -> (usize, Option<usize>) {
        let [a, b, c] = self.usual;
        // Not one place for all: it would be found by a calculation with the tag.
        if tag == a.tag {
            (a.position, self.fill_kind(a.position, data, at, state))
        } else if tag == b.tag {
            (b.position, self.fill_kind(b.position, data, at, state))
        } else if tag == c.tag {
            (c.position, self.fill_kind(c.position, data, at, state))
        } else {
            self.fill_other(tag, data, at, state)
        }
    }

    #[inline(always)]
    fn fill_kind(&mut self, position: usize, data: &[u8], at: usize, state: &mut State) -> Option<usize> {
        match self.kinds.get_mut(position) {
            Some(kind) => kind.fill(data, at, state),
            None => None,
        }
    }

    #[inline(never)]
    fn fill_other(&mut self, tag: u32, data: &[u8], at: usize, state: &mut State) -> (usize, Option<usize>) {
        let position = self.position(tag, state);
        let Some(kind) = self.kinds.get_mut(position) else { return (position, None) };
        let free = self.usual.iter().position(|usual| usual.position == usize::MAX);
        self.others = self.others.wrapping_add(1);
        let turn = (self.others / OFTEN) as usize % self.usual.len();
        let slot = free.or(self.others.is_multiple_of(OFTEN).then_some(turn));
        if let Some(slot) = slot.and_then(|slot| self.usual.get_mut(slot)) {
            *slot = Usual { tag, position };
        }
        (position, kind.fill(data, at, state))
    }

    /// The position of the data record with this tag; one where there is none.
    #[inline(always)]
    fn position(&self, tag: u32, state: &State) -> usize {
        match self.by_tag.as_ref().and_then(|by_tag| by_tag.get(tag as usize)) {
            Some(&position) => position.into(),
            None => state.listed(tag).filter(|listed| listed.record > METADATA).map_or(NONE, |l| l.position).into(),
        }
    }
}

impl<'r> Run<'r> {
    /// Decodes the next record, whose tag ends at a place, leaf by leaf.
    #[inline(never)]
    fn decode_apart(&mut self, position: usize, at: usize, values: &mut Values) -> Result<(), Stopped> {
        let section = self.state.section;
        let listed = self.format.sections.get(section).and_then(|s| s.records.get(position));
        let record = listed.copied().ok_or(Stopped(()))?;
        let first = self.state.plans_of(position);
        let mut row = self.row(record, first, at).ok_or(Stopped(()))?;
        let read = values.read((section, record), &mut row).and_then(|()| row.finish());
        let at = row.position;
        self.position = at;
        read
    }
}

impl Values {
    /// Takes the values of a record whose tag was read.
    fn read(&mut self, place: (usize, u16), row: &mut ContentRow<'_, '_>) -> Result<(), Stopped> {
        self.begin(place, row.record.tag);
        self.steps(row, row.record.steps.get(1..).unwrap_or_default(), 1)
    }

    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn steps(&mut self, row: &mut ContentRow<'_, '_>, steps: &[Step], offset: usize) -> Result<(), Stopped> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => self.push_number(row.number(leaf)?),
                Step::Bytes(leaf) => {
                    let len = row.bytes(leaf)?.len();
                    self.push_bytes(Span::new(row.position - len, len));
                }
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    for _ in 0..row.items(row.last(count))? {
                        self.steps(row, body, offset + at)?;
                    }
                    at = end;
                }
            }
        }
        Ok(())
    }
}
