//! Iteration over the records of a single type.

use super::mapped::MappedRow;
use super::trace::Trace;
use crate::reader::{At, Event};
use crate::record::{Family, Protocol};
use metatf_container::{Error, Result};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// A generated struct that represents a declared record.
pub trait RecordType<P: Protocol>: Family {
    /// The sections that list the record, and the number of the record in each section, as indices in the format.
    const PLACES: &'static [(usize, u16)];

    /// Returns the record if it is of this type.
    fn pick<B>(record: P::Record<B>) -> Option<Self::With<B>>;
}

/// A reader for the data records of one type, which skips all other records. Leaves of skipped records are decoded only
/// if later records depend on them.
#[derive(Debug)]
pub struct Only<'s, 't, P: Protocol, T> {
    trace: &'s mut Trace<'t, P>,
    record: PhantomData<fn() -> T>,
}

impl<'t, P: Protocol> Trace<'t, P> {
    /// Returns a reader of the data records of one type, which skips all other records.
    pub fn only<T: RecordType<P>>(&mut self) -> Only<'_, 't, P, T> {
        Only::new(self)
    }
}

impl<'s, 't, P: Protocol, T: RecordType<P>> Only<'s, 't, P, T> {
    pub(crate) fn new(trace: &'s mut Trace<'t, P>) -> Self {
        Self { trace, record: PhantomData }
    }

    /// Returns the next record of the type. Its bytes borrow from the trace.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    pub fn next_record(&mut self) -> Result<Option<T::With<&[u8]>>> {
        next::<P, T, &[u8]>(self.trace)
    }

    /// Calls `each` for every remaining record of the type. This is the fastest way to read these records.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(T::With<&[u8]>)) -> Result<()> {
        self.trace.for_each(|record| {
            if let Some(record) = T::pick(record) {
                each(record);
            }
        })
    }

    /// Calls `each` for every remaining record of the type, stopping if `each` returns an error. The records after the
    /// one that caused the error can still be read.
    ///
    /// # Errors
    /// As for [`next_record`](Self::next_record), and any error that `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(T::With<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.trace.try_for_each(|record| T::pick(record).map_or(Ok(()), &mut each))
    }

    /// Returns an iterator over the remaining records of the type. The records own their bytes.
    pub fn records(&mut self) -> impl Iterator<Item = Result<T::With<Vec<u8>>>> + use<'_, 's, 't, P, T> {
        std::iter::from_fn(|| next::<P, T, Vec<u8>>(self.trace).transpose())
    }
}

/// Returns the next record of the type. Runs the same loop as `for_each`, but ends it at the first match.
fn next<'s, P: Protocol, T: RecordType<P>, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
) -> Result<Option<T::With<B>>> {
    loop {
        if trace.map.is_none() {
            // SAFETY: the result is returned immediately; if there is no result, no borrow from this call remains.
            let reader = unsafe { trace.reader.once_more() };
            let found = reader.run(|section, run| {
                P::run::<B, _>(section, run, |record| match T::pick(record) {
                    Some(record) => ControlFlow::Break(record),
                    None => ControlFlow::Continue(()),
                })
            });
            match found {
                Some(ControlFlow::Break(record)) => return Ok(Some(record)),
                Some(ControlFlow::Continue(())) if let Some(error) = trace.reader.stopped() => return Err(error),
                _ => {}
            }
        }
        // Handle one event of any kind. After a metadata record, the fast loop may apply again.
        match trace.reader.next_event()? {
            Some(Event::Record(at)) if trace.target(at).is_some_and(|target| T::PLACES.contains(&target)) => {
                return decode::<P, T, B>(trace, at).map(Some);
            }
            Some(_) => {}
            None => return Ok(None),
        }
    }
}

fn decode<'s, P: Protocol, T: RecordType<P>, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
    at: At,
) -> Result<T::With<B>> {
    let Some(map) = trace.map.as_ref().and_then(|map| map.record(at.section, at.record)) else {
        return trace.reader.decode(|row| Ok(T::read::<B, _>(row)?));
    };
    trace.reader.decode(|row| T::read::<B, _>(&mut MappedRow::read(row, map)?))
}
