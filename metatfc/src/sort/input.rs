//! Traces and sorted runs as sources of ordered records.

use super::clock::{Clock, Times};
use super::key::Keys;
use super::runs::Reading;
use crate::failure::{Failure, Result, print_message};
use crate::target::Target;
use metatf::container::Sink;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_tools::convert::ConvertError;
use metatf_tools::merge::{KeyOf, Keyed, Source, TraceSource};
use metatf_tools::roles::Place;
use std::sync::Arc;

/// The writer of the new trace.
pub(super) type Out = Writer<Box<dyn Sink + Send>>;

/// The order of the records in the new trace.
pub(super) enum Order {
    /// The order of the unchanged values of a field.
    Field(Keys),
    /// Chronological order, with times converted to a common clock.
    Times(Times, Arc<Clock>),
}

/// Returns a function that computes the key of each record in the new trace's schema. `number` contains the position of
/// a field in each record type, and the number to store there. `from` is the clock of the times, if it is not the clock
/// of the new trace.
pub(super) fn keys(
    order: Arc<Order>,
    from: Option<Arc<Clock>>,
    number: Option<(Arc<[Option<Place>]>, u64)>,
) -> KeyOf<'static> {
    Box::new(move |record, owned: &mut OwnedRecord| {
        if let Some((places, number)) = &number
            && let Some(Some(place)) = places.get(usize::from(record))
        {
            place.set_number(owned, *number);
        }
        match &*order {
            Order::Field(keys) => keys.of(record, owned),
            Order::Times(all, to) => {
                if let Some(from) = &from {
                    all.change(record, owned, |time| to.time(from.real(time)));
                }
                all.time(record, owned).map(key_of)
            }
        }
    })
}

/// Returns the key of a possibly negative time.
pub(super) fn key_of(nanoseconds: i128) -> u64 {
    let half = 1_i128 << 63;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range of 64 bits")]
    {
        nanoseconds.saturating_add(half).clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// A source of records.
pub(super) enum Input<'a> {
    Trace(Box<Moving<'a>>),
    Run(Box<Reading>),
    /// Sorted records in memory.
    Kept(std::vec::IntoIter<Keyed>),
}

/// A trace being read and converted.
pub(super) struct Moving<'a> {
    pub(super) index: usize,
    pub(super) source: TraceSource<'static>,
    pub(super) name: &'a str,
    pub(super) schema: &'a Schema,
    pub(super) target: &'a Target,
    pub(super) target_schema: &'a Schema,
    /// Whether to treat an error as the end of the trace.
    pub(super) salvage: bool,
}

impl Source<Out, Failure> for Moving<'_> {
    fn next(&mut self, to: &mut Out, keyed: &mut Keyed) -> Result<bool> {
        match Source::<Out, ConvertError>::next(&mut self.source, to, keyed) {
            Ok(is_one) => Ok(is_one),
            Err(ConvertError::Write(error)) => Err(self.target.failure(&self.target_schema.format, &error)),
            Err(ConvertError::Read(error)) => {
                let message = format!("{}: {}", self.name, metatf::explain(&self.schema.format, &error));
                if !self.salvage {
                    return Err(Failure::Failed(message));
                }
                print_message(&message);
                Ok(false)
            }
        }
    }
}

impl Source<Out, Failure> for Input<'_> {
    fn next(&mut self, to: &mut Out, keyed: &mut Keyed) -> Result<bool> {
        match self {
            Input::Trace(moving) => moving.next(to, keyed),
            Input::Run(reading) => reading.next(to, keyed),
            Input::Kept(records) => Ok(records.next().map(|next| *keyed = next).is_some()),
        }
    }
}
