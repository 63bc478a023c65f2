//! Records by their values, for readers that know no types: one at a time, or in a loop.

mod ahead;
mod kind;
mod lane;
mod sequence;
mod slow;
mod spans;
mod view;

pub use view::{Item, RecordView};

use super::{Event, Pending, RecordReader};
use crate::decode::Run;
use crate::error::{Error, ErrorKind, Result};
use ahead::{Ahead, SectionKinds};
use lane::row_of;
use slow::LeafByLeaf;
use spans::Span;
use std::ops::ControlFlow;
use view::{Head, What};

/// Words of a row before its values.
const HEAD: usize = 2;

/// How the data records of all sections are decoded, and those that were decoded last.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// By section.
    sections: Vec<SectionKinds>,
    /// Of the records that were decoded last.
    section: usize,
    ahead: Ahead,
    slow: LeafByLeaf,
}

/// The data record that comes next.
enum Next {
    /// Its row.
    Ahead(u64),
    /// It was decoded leaf by leaf.
    LeafByLeaf,
}

impl RecordReader<'_> {
    /// The next data record; `None` at the end, and after an error. Comments, metadata and the like are gone over.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace; nothing comes after it.
    #[inline(always)]
    pub fn next_record(&mut self) -> Result<Option<RecordView<'_>>> {
        let next = match self.kinds.ahead.step() {
            Some(entry) => Some(Next::Ahead(entry)),
            None => self.go_on()?,
        };
        Ok(next.map(|next| self.view_of(next)))
    }

    /// The next data record, where it comes without ado: no comment, no metadata, no event.
    #[cfg(feature = "dynamic")]
    #[inline]
    pub(crate) fn plain_record(&mut self) -> Result<Option<RecordView<'_>>> {
        let next = match self.kinds.ahead.step() {
            Some(entry) => Some(Next::Ahead(entry)),
            None => self.plain_next()?,
        };
        Ok(next.map(|next| self.view_of(next)))
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
                    self.decode_announced()?;
                    each(self.view_apart())?;
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
        self.settle();
        let mut kinds = std::mem::take(&mut self.kinds);
        let run = self.run(|_, run| kinds.run(run, each));
        self.kinds = kinds;
        match run {
            Some(ControlFlow::Break(error)) => Err(error),
            Some(ControlFlow::Continue(())) => Ok(self.stopped().map_or(Ok(()), Err)?),
            None => Ok(()),
        }
    }

    /// Goes back to behind the last record that was given, where others were decoded ahead.
    #[inline]
    pub(super) fn settle(&mut self) {
        if std::mem::take(&mut self.is_ahead) {
            self.settle_ahead();
        }
    }

    #[inline(never)]
    fn settle_ahead(&mut self) {
        let Some(current) = &mut self.current else { return };
        let Some(state) = self.states.get_mut(current.section) else { return };
        let (position, count) = self.kinds.settle(state);
        current.position = position;
        current.found += count as u64;
        self.records += count as u64;
    }

    /// Forgets what was decoded ahead.
    pub(super) fn forget_ahead(&mut self) {
        self.is_ahead = false;
        self.kinds.ahead.clear();
    }

    /// How many of the records that were decoded ahead were given.
    pub(super) fn given_ahead(&self) -> u64 {
        if self.is_ahead { self.kinds.ahead.next as u64 } else { 0 }
    }

    /// Where the last record that was given ends, if others were decoded ahead.
    pub(super) fn position_ahead(&self) -> Option<usize> {
        self.is_ahead.then(|| self.kinds.ahead.position())
    }

    /// The next data record, metadata and all gone over, where none is left that was decoded ahead.
    #[inline(never)]
    fn go_on(&mut self) -> Result<Option<Next>> {
        loop {
            if let Some(next) = self.plain_next()? {
                return Ok(Some(next));
            }
            if self.apply_metadata() {
                continue;
            }
            match self.next_event()? {
                Some(Event::Record(_)) => return self.decode_announced().map(|()| Some(Next::LeafByLeaf)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// The same, where it comes without ado.
    #[inline(never)]
    fn plain_next(&mut self) -> Result<Option<Next>> {
        self.settle();
        if !self.is_idle() {
            return Ok(None);
        }
        if self.look_ahead() {
            self.is_ahead = true;
            return Ok(self.kinds.ahead.step().map(Next::Ahead));
        }
        if !self.is_plain() {
            return Ok(None);
        }
        let mut slow = std::mem::take(&mut self.kinds.slow);
        let (mut is_decoded, mut section) = (false, 0);
        if let Some((mut run, mut end)) = self.start_run() {
            let decoded = slow.read_next(&mut run);
            end.tell(run.position, run.count, decoded == Some(false));
            (is_decoded, section) = (decoded == Some(true), run.state.section);
        }
        (self.kinds.slow, self.kinds.section) = (slow, section);
        if is_decoded { Ok(Some(Next::LeafByLeaf)) } else { self.stopped().map_or(Ok(None), Err) }
    }

    /// Decodes what comes next.
    fn look_ahead(&mut self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| !current.is_element) else { return false };
        let Some(state) = self.states.get_mut(current.section) else { return false };
        let data = self.container.bytes(&current.content);
        self.kinds.look_ahead(&self.format, data, current.position, state, self.order)
    }

    /// Applies metadata that comes next. False where there is none that is as it should be.
    fn apply_metadata(&mut self) -> bool {
        if !self.is_idle() {
            return false;
        }
        let Some((mut run, mut end)) = self.start_run() else { return false };
        let is_applied = run.apply_metadata().is_some();
        end.tell(run.position, 0, false);
        is_applied
    }

    /// Decodes the record that was announced, leaf by leaf.
    #[inline(never)]
    fn decode_announced(&mut self) -> Result<()> {
        let none = Error::at(0, ErrorKind::Usage("no record is waiting to be decoded"));
        let Pending { section, record, .. } = self.pending.ok_or(none)?;
        let mut slow = std::mem::take(&mut self.kinds.slow);
        let decoded = self.decode(|row| Ok(slow.read(record, row)?));
        (self.kinds.slow, self.kinds.section) = (slow, section);
        decoded
    }

    /// The record that comes next.
    #[inline(always)]
    fn view_of(&self, next: Next) -> RecordView<'_> {
        match next {
            Next::Ahead(entry) => {
                let (data, base) = self.part();
                self.kinds.view(entry, data, base)
            }
            Next::LeafByLeaf => self.view_apart(),
        }
    }

    /// The record that was decoded last, leaf by leaf.
    fn view_apart(&self) -> RecordView<'_> {
        let (data, base) = self.part();
        self.kinds.view_apart(data, base)
    }

    /// The content of the part in hand, and what stands before it.
    #[inline(always)]
    fn part(&self) -> (&[u8], u64) {
        let current = self.current.as_ref();
        current.map_or((&[], 0), |current| (self.container.bytes(&current.content), current.base))
    }
}

impl Kinds {
    /// Gives the records that come next to `each`. What stops it is told when the run ends.
    #[inline(always)]
    fn run<E>(&mut self, run: &mut Run<'_>, each: &mut impl FnMut(RecordView<'_>) -> Result<(), E>) -> ControlFlow<E> {
        loop {
            if self.look_ahead(run.format, run.data, run.position, run.state, run.order) {
                let mut result = Ok(());
                let mut given = 0;
                for &entry in &self.ahead.entries {
                    given += 1;
                    result = each(self.view(entry, run.data, run.base));
                    if result.is_err() {
                        break;
                    }
                }
                self.ahead.next = given;
                let (position, count) = self.settle(run.state);
                run.position = position;
                run.count += count as u64;
                if let Err(error) = result {
                    return ControlFlow::Break(error);
                }
            } else {
                self.section = run.state.section;
                if self.slow.read_next(run) != Some(true) {
                    return ControlFlow::Continue(());
                }
                if let Err(error) = each(self.view_apart(run.data, run.base)) {
                    return ControlFlow::Break(error);
                }
            }
        }
    }

    /// The record in a row.
    #[inline(always)]
    fn view<'t>(&'t self, entry: u64, data: &'t [u8], base: u64) -> RecordView<'t> {
        let (first, length) = row_of(entry);
        let values = self.ahead.values.as_slice();
        let numbers = values.get(first + HEAD..first + HEAD + length).unwrap_or_default();
        let word = |at: usize| values.get(first + at).copied().unwrap_or(0);
        RecordView { numbers, kinds: self, data, base, head: Head { start: word(0), what: What(word(1)) } }
    }

    /// The record that was decoded last, leaf by leaf.
    #[inline]
    fn view_apart<'t>(&'t self, data: &'t [u8], base: u64) -> RecordView<'t> {
        RecordView { numbers: &self.slow.numbers, kinds: self, data, base, head: self.slow.head }
    }

    /// Where the bytes of a record lie, by place.
    #[inline]
    fn spans(&self, what: What) -> &[Span] {
        if what.position() == What::APART {
            return &self.slow.spans;
        }
        let kinds = self.sections.get(self.section).map_or(&[][..], |section| &section.kinds);
        kinds.get(usize::from(what.position())).map_or(&[], |kind| &kind.spans)
    }

    /// How far from a record's beginning a span lies, and how long it is; none of a number.
    #[inline]
    fn resolve(&self, span: Span, what: What, numbers: &[u64]) -> Option<(usize, usize)> {
        match span {
            Span::Number => None,
            Span::At(distance, length) => Some((distance, length)),
            Span::Counted(distance, place) => {
                Some((distance, usize::try_from(*numbers.get(usize::from(place))?).ok()?))
            }
            Span::Own(index) => match *self.ahead.spans.get(what.spans() + index)? {
                Span::At(distance, length) => Some((distance, length)),
                _ => None,
            },
        }
    }
}
