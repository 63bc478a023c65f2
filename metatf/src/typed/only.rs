//! The records of one type.

use super::mapped::MappedRow;
use super::trace::Trace;
use crate::reader::{At, Event};
use crate::record::{Family, Protocol};
use metatf_container::{Error, Result};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// A generated struct that stands for a record of its own.
pub trait RecordType<P: Protocol>: Family {
    /// Where it is listed: sections and records, as indices of the format.
    const PLACES: &'static [(usize, u16)];

    /// The record, if it is of this type.
    fn pick<B>(record: P::Record<B>) -> Option<Self::With<B>>;
}

/// Reads the data records of one type and goes over the others, whose leaves are decoded only where later ones depend on them.
#[derive(Debug)]
pub struct Only<'s, 't, P: Protocol, T> {
    trace: &'s mut Trace<'t, P>,
    record: PhantomData<fn() -> T>,
}

impl<'t, P: Protocol> Trace<'t, P> {
    /// The data records of one type; others are gone over.
    pub fn only<T: RecordType<P>>(&mut self) -> Only<'_, 't, P, T> {
        Only::new(self)
    }
}

impl<'s, 't, P: Protocol, T: RecordType<P>> Only<'s, 't, P, T> {
    pub(crate) fn new(trace: &'s mut Trace<'t, P>) -> Self {
        Self { trace, record: PhantomData }
    }

    /// The next record of the type; its bytes borrow from the trace.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace.
    pub fn next_record(&mut self) -> Result<Option<T::With<&[u8]>>> {
        next::<P, T, &[u8]>(self.trace)
    }

    /// Gives each record of the type that is left to `each`: the fastest way.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record).
    #[inline]
    pub fn for_each(&mut self, mut each: impl FnMut(T::With<&[u8]>)) -> Result<()> {
        self.trace.for_each(|record| {
            if let Some(record) = T::pick(record) {
                each(record);
            }
        })
    }

    /// As [`for_each`](Self::for_each), until `each` returns an error. The records after it can still be read.
    ///
    /// # Errors
    /// As [`next_record`](Self::next_record), and what `each` returns.
    #[inline]
    pub fn try_for_each<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(T::With<&[u8]>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.trace.try_for_each(|record| T::pick(record).map_or(Ok(()), &mut each))
    }

    /// An iterator over the records of the type that are left, with their bytes.
    pub fn records(&mut self) -> impl Iterator<Item = Result<T::With<Vec<u8>>>> + use<'_, 's, 't, P, T> {
        std::iter::from_fn(|| next::<P, T, Vec<u8>>(self.trace).transpose())
    }
}

/// The next record of the type: in the loop of `for_each`, which is left for it.
fn next<'s, P: Protocol, T: RecordType<P>, B: From<&'s [u8]>>(
    trace: &'s mut Trace<'_, P>,
) -> Result<Option<T::With<B>>> {
    loop {
        if trace.map.is_none() {
            // SAFETY: what this gives is returned; where it gives nothing, nothing of it is left.
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
        // One step, of whatever kind: behind metadata records may come as fast as before.
        match trace.reader.next_event()? {
            Some(Event::Record(at)) if T::PLACES.contains(&trace.target(at)) && trace.knows(at) => {
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
