//! Reads a single section of a trace, either its records or, for a stream section, its elements by their offsets.

use super::map::Map;
use super::mapped::MappedRow;
use super::trace::Trace;
use crate::reader::{At, Event, One, RecordReader, SharedTable, lock, why};
use crate::record::{Family, Protocol, SectionFamily};
use metatf_container::{Error, ErrorKind, Result};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A reader for the data records of one section, which skips the records of other sections.
#[derive(Debug)]
pub struct Section<'s, 't, P: Protocol, S> {
    trace: &'s mut Trace<'t, P>,
    section: PhantomData<fn() -> S>,
}

impl<'t, P: Protocol> Trace<'t, P> {
    /// Returns a reader of the data records of one section, which skips all other sections.
    pub fn section<S>(&mut self) -> Section<'_, 't, P, S> {
        Section::new(self)
    }

    /// Returns a handle to the elements of a stream section, given the index of the section in the reader's format. The
    /// handle can be kept while records are read.
    pub fn elements<E>(&mut self, section: usize) -> Elements<'t, P, E> {
        Elements::new(self, section)
    }
}

impl<'s, 't, P: Protocol, S> Section<'s, 't, P, S> {
    pub(crate) fn new(trace: &'s mut Trace<'t, P>) -> Self {
        Self { trace, section: PhantomData }
    }
}

impl<P: Protocol, S: SectionFamily> Section<'_, '_, P, S> {
    /// Returns the section's next data record. Its bytes borrow from the trace.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    #[allow(clippy::should_implement_trait, reason = "a lending method; the type also implements Iterator")]
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<S::With<&[u8]>>> {
        next::<P, S, &[u8]>(self.trace)
    }
}

impl<P: Protocol, S: SectionFamily> Iterator for Section<'_, '_, P, S> {
    type Item = Result<S::With<Vec<u8>>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        next::<P, S, Vec<u8>>(self.trace).transpose()
    }
}

/// Returns the section's next record, skipping records of other sections.
#[cfg_attr(not(debug_assertions), inline(always))]
fn next<'s, P: Protocol, S: SectionFamily, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
) -> Result<Option<S::With<B>>> {
    if !trace.has_one() {
        return if trace.map.is_some() { next_mapped::<P, S, B>(trace) } else { next_slow::<S, B>(&mut trace.reader) };
    }
    // SAFETY: a record is returned immediately; without a record, no borrow from this call remains.
    let reader = unsafe { trace.reader.once_more() };
    if reader.section() == Some(S::SECTION)
        && let Some(record) = S::one::<B>(One::<true> { reader })
    {
        return Ok(Some(record));
    }
    next_other::<S, B>(&mut trace.reader)
}

/// Returns the section's next record in any tier.
#[inline(never)]
fn next_other<'s, S: SectionFamily, B: From<&'s [u8]>>(reader: &'s mut RecordReader<'_>) -> Result<Option<S::With<B>>> {
    // SAFETY: a record is returned immediately; without a record, no borrow from this call remains.
    let again = unsafe { reader.once_more() };
    if again.section() == Some(S::SECTION)
        && let Some(record) = S::one::<B>(One::<false> { reader: again })
    {
        return Ok(Some(record));
    }
    next_slow::<S, B>(reader)
}

/// Returns the next record on the slow path: leaf by leaf, after handling any event that precedes it.
#[inline(never)]
fn next_slow<'s, S: SectionFamily, B: From<&'s [u8]>>(reader: &'s mut RecordReader<'_>) -> Result<Option<S::With<B>>> {
    if let Some(error) = reader.stopped() {
        return Err(error);
    }
    if reader.section() == Some(S::SECTION) && reader.is_plain() {
        let record = reader.one_slow(|_, one| S::run(one, ControlFlow::Break));
        return record.map(Some).or_else(why);
    }
    while let Some(event) = reader.next_event()? {
        if let Event::Record(at) = event
            && at.section == S::SECTION
        {
            return reader.decode(|row| Ok(S::read::<B, _>(at.record, row)?)).map(Some);
        }
    }
    Ok(None)
}

#[inline(never)]
fn next_mapped<'s, P: Protocol, S: SectionFamily, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
) -> Result<Option<S::With<B>>> {
    match trace.advance(Some(S::SECTION))? {
        Some(at) => decode::<P, S, B>(trace, at).map(Some),
        None => Ok(None),
    }
}

fn decode<'s, P: Protocol, S: SectionFamily, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
    at: At,
) -> Result<S::With<B>> {
    let Some(map) = trace.map.as_ref().and_then(|map| map.record(at.section, at.record)) else {
        return trace.reader.decode(|row| Ok(S::read::<B, _>(at.record, row)?));
    };
    trace.reader.decode(|row| S::read::<B, _>(map.record, &mut MappedRow::read(row, map)?))
}

/// Access to the elements of a stream section by the offsets that `sectionOffset` fields contain.
///
/// The handle is independent of the trace it came from, so elements can be looked up while a record borrows from the
/// trace. It provides the elements of everything read from the trace so far, and its clones share the same data.
#[derive(Clone, Debug)]
pub struct Elements<'t, P: Protocol, E> {
    /// The element table, or `None` if the trace does not contain such elements.
    table: Option<SharedTable<'t>>,
    map: Option<Arc<Map>>,
    /// Section and record indices in the trace's format.
    place: (usize, u16),
    of: PhantomData<fn() -> (P, E)>,
}

impl<'t, P: Protocol, E> Elements<'t, P, E> {
    pub(crate) fn new(trace: &mut Trace<'t, P>, section: usize) -> Self {
        let section = trace.map.as_ref().map_or(Some(section), |map| map.section(section));
        let record = section.and_then(|s| trace.reader.format().sections.get(s)?.records.first().copied());
        let place = (section.unwrap_or_default(), record.unwrap_or_default());
        let table = section.map(|section| trace.reader.table(section));
        Self { table, map: trace.map.clone(), place, of: PhantomData }
    }
}

impl<P: Protocol, E: Family> Elements<'_, P, E> {
    /// Returns the element at a byte offset in the section's content. The chunk of the element must have been read
    /// already, which is always true for offsets in records that have been read.
    ///
    /// # Errors
    /// Returns an error if no element begins at the offset.
    pub fn get(&self, offset: u64) -> Result<E::With<Vec<u8>>> {
        let table = self.table.as_ref();
        let table = table.ok_or(Error::at(0, ErrorKind::Mismatch("the trace has no section with that name")))?;
        let mut table = lock(table);
        let Some(map) = &self.map else { return table.find(offset, |row| Ok(E::read::<Vec<u8>, _>(row)?)) };
        let record = map.record(self.place.0, self.place.1);
        let record =
            record.ok_or(Error::at(0, ErrorKind::Mismatch("the trace has no stream section with these elements")))?;
        table.find(offset, |row| E::read::<Vec<u8>, _>(&mut MappedRow::read(row, record)?))
    }
}
