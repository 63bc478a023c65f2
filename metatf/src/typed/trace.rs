//! Reading a trace as Rust types.

use super::map::Map;
use super::mapped::MappedRow;
use super::resolve::Opened;
use super::unmatched::Unmatched;
use crate::columns::Columns;
use crate::decode::ContentRow;
use crate::format::Format;
use crate::outlined::Outlined;
use crate::reader::{At, Event as RawEvent, Metadata, One, RecordReader, why};
use crate::record::{Protocol, Row, has_slots, is_stateless};
use metatf_container::{Error, Header, LossReport, Result, Warning};
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A trace to be read record by record. Generated modules wrap it in their own `Trace` type, as the example of the
/// [module](crate::typed#examples) shows.
pub struct Trace<'t, P: Protocol> {
    pub(crate) reader: Outlined<RecordReader<'t>>,
    /// The mapping, if the trace's format differs from the reader's.
    pub(crate) map: Option<Arc<Map>>,
    protocol: PhantomData<fn() -> P>,
}

/// An item in a trace: a data record or anything else.
#[derive(Clone, Debug, PartialEq)]
pub enum Event<R, E, B> {
    /// A data record.
    Record(R),
    /// A comment and the number of its section.
    Comment(u8, B),
    /// A metadata record, already applied, and the number of its section. Indices in it refer to the trace's own
    /// format.
    Metadata(u8, Metadata),
    /// An element of a stream section and whether it belongs to a shared table. Returned only after [`Trace::set_all`].
    Element(E, bool),
    /// A `section` record (version 0) with the number of the section that starts.
    Section(u8),
    /// The start of a group (version 1, from the second group on).
    Group(u32),
    /// A reset of the state of the section with this number inside a group.
    Reset(u8),
}

impl<'t, P: Protocol> Trace<'t, P> {
    pub(crate) fn new(reader: RecordReader<'t>, map: Option<Arc<Map>>) -> Self {
        Self { reader: Outlined::new(reader), map, protocol: PhantomData }
    }

    pub(super) fn of((reader, map): Opened<'t>) -> Self {
        Self::new(reader, map)
    }

    /// Returns the next data record, or `None` at the end and after an error. The record's bytes borrow from the trace.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    #[allow(clippy::should_implement_trait, reason = "a lending method; `records` returns an iterator")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<P::Record<&[u8]>>> {
        self.next_of()
    }

    /// Returns the next data record like [`next`](Self::next); the record owns its bytes.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    #[inline]
    pub fn next_owned(&mut self) -> Result<Option<P::Record<Vec<u8>>>> {
        self.next_of()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_of<'s, B: From<&'s [u8]>>(&'s mut self) -> Result<Option<P::Record<B>>> {
        if !self.has_one() {
            return if self.map.is_some() { self.next_mapped() } else { next_slow::<P, B>(&mut self.reader) };
        }
        // SAFETY: a record is returned immediately; without a record, no borrow from this call remains.
        let reader = unsafe { self.reader.once_more() };
        if const { is_stateless(P::FORMAT) }
            && let Some(record) = P::one::<B>(One::<true> { reader })
        {
            return Ok(Some(record));
        }
        next_other::<P, B>(&mut self.reader)
    }

    /// Returns whether the next item is a record in the reader's own format, based only on what has been decoded so
    /// far.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn has_one(&mut self) -> bool {
        self.reader.has_one() || self.map.is_none() && self.reader.find_one()
    }

    #[inline(never)]
    fn next_mapped<'s, B: From<&'s [u8]>>(&'s mut self) -> Result<Option<P::Record<B>>> {
        match self.advance(None)? {
            Some(at) => self.decode(at).map(Some),
            None => Ok(None),
        }
    }

    #[inline(never)]
    fn decode_slow(&mut self, at: At) -> Result<P::Record<&[u8]>> {
        self.decode(at)
    }

    /// Calls `each` for every remaining data record. This is the fastest way to read a trace.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(P::Record<&[u8]>)) -> Result<()> {
        self.try_for_each(|record| {
            each(record);
            Ok(())
        })
    }

    /// Calls `each` for every remaining data record, stopping if `each` returns an error. The records after the one
    /// that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next`](Self::next), and any error that `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(P::Record<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            self.run_each(&mut each)?;
            // Handle one event of any kind. After a metadata record, the fast loop may apply again.
            match self.reader.next_event()? {
                Some(RawEvent::Record(at)) if self.knows(at) => each(self.decode_slow(at)?)?,
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Calls `each` with the upcoming data records until another event, an error or the end is reached; call
    /// [`next_event`](Self::next_event) to find out which. Metadata records in between are applied. A loop over this
    /// method is as fast as [`for_each`](Self::for_each) and also sees comments. If `each` returns an error, the
    /// records after the one that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next`](Self::next), and any error that `each` returns.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn try_for_run<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(P::Record<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.run_each(&mut each)
    }

    /// The closure is passed by reference, because the compiler may not inline a closure that is passed through another
    /// closure of the same type.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn run_each<E: From<Error>>(&mut self, each: &mut impl FnMut(P::Record<&[u8]>) -> Result<(), E>) -> Result<(), E> {
        if self.map.is_some() {
            return Ok(());
        }
        let run = self.reader.run(|section, run| {
            P::run(section, run, |record| match each(record) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => ControlFlow::Break(error),
            })
        });
        match run {
            Some(ControlFlow::Break(error)) => Err(error),
            Some(ControlFlow::Continue(())) => Ok(self.reader.stopped().map_or(Ok(()), Err)?),
            None => Ok(()),
        }
    }

    /// Fills columns with the next data records; see [`RecordReader::next_columns`]. Returns false if no records
    /// remain.
    ///
    /// # Errors
    /// As for [`next`](Self::next). Records before the error are returned first.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        if self.map.is_none() {
            return match const { has_slots(P::FORMAT) } {
                true => self.reader.next_columns_known(columns, |section, filling| {
                    let _ = P::run::<&[u8], ()>(section, filling, |_| ControlFlow::Continue(()));
                }),
                false => self.reader.next_columns(columns),
            };
        }
        next_mapped_columns(&mut self.reader, self.map.as_deref(), P::FORMAT, columns)
    }

    /// Returns an iterator over the remaining data records. The records own their bytes.
    pub fn records(&mut self) -> impl Iterator<Item = Result<P::Record<Vec<u8>>>> + use<'_, 't, P> {
        std::iter::from_fn(|| self.next_owned().transpose())
    }

    /// Moves to data record `n` of the file, counting from 0, so that it is read next. See [`RecordReader::seek`].
    /// Records that the reader's DTD does not contain are counted, too.
    ///
    /// # Errors
    /// Returns an error if the trace is a stream and the record has already been passed, or if the trace is malformed
    /// before the record.
    pub fn seek(&mut self, n: u64) -> Result<()> {
        self.reader.seek(n)
    }

    /// Sets whether [`next_event`](Self::next_event) also returns the elements of stream sections.
    pub fn set_all(&mut self, all: bool) {
        self.reader.set_all(all);
    }

    /// Returns the next event of any kind, including comments and metadata.
    ///
    /// # Errors
    /// As for [`next`](Self::next).
    #[allow(clippy::type_complexity, reason = "an event contains a record, an element or bytes")]
    pub fn next_event(&mut self) -> Result<Option<Event<P::Record<&[u8]>, P::Element<&[u8]>, &[u8]>>> {
        if self.map.is_none() && self.reader.is_plain() {
            return self.next_of().map(|record| record.map(Event::Record));
        }
        loop {
            let Some(event) = self.reader.next_event()? else { return Ok(None) };
            let number = |at: At| self.reader.format().sections.get(at.section).map_or(0, |s| s.number);
            return Ok(Some(match event {
                RawEvent::Record(at) if self.knows(at) => Event::Record(self.decode(at)?),
                RawEvent::Element(at, shared) if self.knows(at) => Event::Element(self.decode_element(at)?, shared),
                RawEvent::Record(_) | RawEvent::Element(..) => continue,
                RawEvent::Comment(at) => Event::Comment(number(at), self.reader.decode(comment)?),
                RawEvent::Metadata(at, metadata) => Event::Metadata(number(at), metadata),
                RawEvent::Section(_, n) => Event::Section(n),
                RawEvent::Group(n) => Event::Group(n),
                RawEvent::Reset(section) => Event::Reset(number(At { section, record: 0, offset: 0 })),
            }));
        }
    }

    /// Returns the file's header.
    #[must_use]
    pub fn header(&self) -> &Header {
        self.reader.container().header()
    }

    /// Returns the user metadata found so far, as JSON objects. Later objects extend and override earlier objects (spec
    /// 5.2).
    #[must_use]
    pub fn user_metadata(&self) -> &[Vec<u8>] {
        self.reader.container().user_metadata()
    }

    /// Returns the differences between the trace's DTD and the reader's, or `None` if the DTDs are equivalent.
    ///
    /// ```text
    /// if let Some(unmatched) = trace.unmatched().filter(|unmatched| !unmatched.is_empty()) {
    ///     eprintln!("warning: {unmatched}");
    /// }
    /// ```
    #[must_use]
    pub fn unmatched(&self) -> Option<&Unmatched> {
        self.map.as_deref().map(|map| &map.unmatched)
    }

    /// Returns the warnings, which report irregularities that are not errors.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.reader.container().warnings()
    }

    /// Returns the losses so far if the trace is being salvaged.
    #[must_use]
    pub fn loss_report(&self) -> Option<&LossReport> {
        self.reader.container().loss_report()
    }

    /// Formats the error, replacing indices with names from the trace's format.
    #[must_use]
    pub fn explain(&self, error: &Error) -> String {
        crate::explain(self.reader.format(), error).to_string()
    }

    /// Returns the underlying reader, whose indices refer to the trace's own format.
    #[must_use]
    pub fn reader(&self) -> &RecordReader<'t> {
        &self.reader
    }

    /// Advances to the next data record that the reader knows. If `section` is given, skips the records of other
    /// sections.
    pub(crate) fn advance(&mut self, section: Option<usize>) -> Result<Option<At>> {
        advance(&mut self.reader, self.map.as_deref(), section)
    }

    fn knows(&self, at: At) -> bool {
        self.target(at).is_some()
    }

    /// Converts the section and record of a position to indices in the reader's format. Returns `None` for a record
    /// that the reader does not know.
    pub(crate) fn target(&self, at: At) -> Option<(usize, u16)> {
        target(self.map.as_deref(), at)
    }

    fn decode<'s, B: From<&'s [u8]>>(&'s mut self, at: At) -> Result<P::Record<B>> {
        let Some(map) = self.map.as_ref().and_then(|map| map.record(at.section, at.record)) else {
            return self.reader.decode(|row| Ok(P::record(at.section, at.record, row)?));
        };
        self.reader.decode(|row| P::record(map.section, map.record, &mut MappedRow::read(row, map)?))
    }

    fn decode_element<'s, B: From<&'s [u8]>>(&'s mut self, at: At) -> Result<P::Element<B>> {
        let Some(map) = self.map.as_ref().and_then(|map| map.record(at.section, at.record)) else {
            return self.reader.decode(|row| Ok(P::element(at.section, row)?));
        };
        self.reader.decode(|row| P::element(map.section, &mut MappedRow::read(row, map)?))
    }
}

/// Converts the section and record of a position to indices in the reader's format. Returns `None` for a record that the
/// reader does not know.
fn target(map: Option<&Map>, at: At) -> Option<(usize, u16)> {
    let Some(map) = map else { return Some((at.section, at.record)) };
    map.record(at.section, at.record).map(|record| (record.section, record.record))
}

/// See [`Trace::advance`].
fn advance(reader: &mut RecordReader<'_>, map: Option<&Map>, section: Option<usize>) -> Result<Option<At>> {
    while let Some(event) = reader.next_event()? {
        if let RawEvent::Record(at) = event
            && let Some((target, _)) = target(map, at)
            && section.is_none_or(|wanted| wanted == target)
        {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Fills columns with the next data records, mapped from the trace's format. Returns false if no records remain.
fn next_mapped_columns(
    reader: &mut RecordReader<'_>,
    map: Option<&Map>,
    format: &'static Format,
    columns: &mut Columns,
) -> Result<bool> {
    columns.begin(format, reader.records_read());
    match fill_mapped(reader, map, format, columns) {
        Err(error) if !columns.is_empty() => reader.hold(error),
        filled => filled?,
    }
    Ok(!columns.is_empty())
}

fn fill_mapped(reader: &mut RecordReader<'_>, map: Option<&Map>, format: &Format, columns: &mut Columns) -> Result<()> {
    while columns.room() > 0
        && let Some(at) = advance(reader, map, None)?
    {
        let Some(map) = map.and_then(|map| map.record(at.section, at.record)) else { continue };
        let listed = format.sections.get(map.section).map(|s| &s.records);
        let position = listed.and_then(|l| l.iter().position(|&r| r == map.record)).unwrap_or(usize::MAX);
        reader.decode(|row| columns.push(format, map.section, position, &mut MappedRow::read(row, map)?))?;
    }
    Ok(())
}

/// Returns the next record in any tier.
#[inline(never)]
fn next_other<'s, P: Protocol, B: From<&'s [u8]>>(reader: &'s mut RecordReader<'_>) -> Result<Option<P::Record<B>>> {
    // SAFETY: a record is returned immediately; without a record, no borrow from this call remains.
    match P::one::<B>(One::<false> { reader: unsafe { reader.once_more() } }) {
        Some(record) => Ok(Some(record)),
        None => next_slow::<P, B>(reader),
    }
}

/// Returns the next record on the slow path: leaf by leaf, after handling any event that precedes it.
#[inline(never)]
fn next_slow<'s, P: Protocol, B: From<&'s [u8]>>(reader: &'s mut RecordReader<'_>) -> Result<Option<P::Record<B>>> {
    if let Some(error) = reader.stopped() {
        return Err(error);
    }
    if reader.is_plain() {
        let record = reader.one_slow(|section, one| P::run::<B, _>(section, one, ControlFlow::Break));
        return record.map(Some).or_else(why);
    }
    while let Some(event) = reader.next_event()? {
        if let RawEvent::Record(at) = event {
            return reader.decode(|row| Ok(P::record(at.section, at.record, row)?)).map(Some);
        }
    }
    Ok(None)
}

/// Reads `comment : vfield` (spec 3.6).
fn comment<'a>(row: &mut ContentRow<'_, 'a>) -> Result<&'a [u8]> {
    row.number(1)?;
    Ok(row.bytes(2)?)
}

impl<P: Protocol> fmt::Debug for Trace<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace").field("dtd", &P::SOURCE).field("records_read", &self.reader.records_read()).finish()
    }
}

/// An iterator over the data records of a trace. The records own their bytes. After an error, the iterator ends.
#[derive(Debug)]
pub struct Records<'t, P: Protocol>(Trace<'t, P>);

impl<P: Protocol> Iterator for Records<'_, P> {
    type Item = Result<P::Record<Vec<u8>>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next_owned().transpose()
    }
}

impl<'t, P: Protocol> IntoIterator for Trace<'t, P> {
    type Item = Result<P::Record<Vec<u8>>>;
    type IntoIter = Records<'t, P>;

    fn into_iter(self) -> Self::IntoIter {
        Records(self)
    }
}
