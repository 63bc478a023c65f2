//! Traces of foreign DTDs, interpreted by the names of their records and fields (docs/convert.md).

mod names;

use metatf::container::Reader;
use metatf::dynamic::{Schema, Trace};
use metatf::reader::RecordView;

use crate::event::{Call, Event, EventKind, EventSink, EventSource, Item, Stack, UNKNOWN_SIZE, UserMetadata};
use crate::{Error, Result, user_metadata};
pub(crate) use names::Roles;
use names::{Does, Role};

/// A reader of a trace, based on the dynamic reader. Records whose names indicate an allocation or a free become
/// events; all other records are skipped.
pub(crate) struct NamedReader<'t> {
    trace: Trace<'t>,
    roles: Roles,
}

impl<'t> NamedReader<'t> {
    /// Creates a reader for an opened container with an embedded DTD.
    ///
    /// # Errors
    /// The container embeds no DTD, no record has a known name, or a record with a known name lacks a field.
    pub(crate) fn of(container: Reader<'t>) -> Result<Self> {
        let schema = Schema::embedded(&container).map_err(|error| {
            Error::Trace(format!("not a heap trace: its DTD is neither heap.dtd nor HATF10.dtd; {error}").into())
        })?;
        let roles = Roles::of(&schema)?;
        let trace = Trace::new(schema, container).map_err(|error| Error::Trace(error.to_string().into()))?;
        Ok(Self { trace, roles })
    }

    /// Describes how records are interpreted, and which ones are skipped.
    #[must_use]
    pub(crate) fn reading(&self) -> String {
        self.roles.to_string()
    }
}

/// Converts a runtime error.
fn failed(trace: &Trace<'_>, error: &metatf::Error) -> Error {
    Error::in_trace(&trace.schema().format, error)
}

/// Returns the event that a record describes.
pub(crate) fn event(role: &Role, record: &RecordView<'_>) -> Event<'static> {
    let number = |place: usize| record.numbers().get(place).copied().unwrap_or_default();
    let other = |place: Option<usize>, without: u64| place.map_or(without, number);
    let (address, old) = (number(role.address), other(role.old, 0));
    let size = other(role.size, UNKNOWN_SIZE);
    let call = Call { size, address, old, ..Call::new(role.function) };
    let kind = match role.does {
        Does::Free => EventKind::Free { address },
        Does::Allocate if address == 0 => EventKind::Failed(call),
        Does::Reallocate if address == 0 && size != 0 => EventKind::Failed(call),
        Does::Allocate | Does::Reallocate => EventKind::Call(call),
    };
    let time = role.time.map_or(0, |(place, unit)| number(place).saturating_mul(unit));
    let (thread, heap) = (other(role.thread, 1), other(role.heap, 0));
    Event { kind, time, thread, heap, stack: Stack::NONE, attributes: &[] }
}

impl EventSource for NamedReader<'_> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        loop {
            match self.trace.next_record() {
                Ok(Some(record)) => {
                    if let Some(role) = self.roles.role(record.record()) {
                        return Ok(Some(Item::Event(event(role, &record))));
                    }
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(failed(&self.trace, &error)),
            }
        }
    }

    fn pour<T: EventSink + ?Sized>(&mut self, sink: &mut T) -> Result<()> {
        let roles = &self.roles;
        let poured = self.trace.try_for_each(|record| match roles.role(record.record()) {
            Some(role) => sink.event(&event(role, &record)).map_err(Stop::Sink),
            None => Ok(()),
        });
        poured.map_err(|stop| match stop {
            Stop::Sink(error) => error,
            Stop::Trace(error) => failed(&self.trace, &error),
        })
    }

    fn user_metadata(&self) -> UserMetadata {
        user_metadata::read(self.trace.reader().container().user_metadata())
    }
}

/// The reason why reading stops early.
enum Stop {
    Sink(Error),
    Trace(metatf::Error),
}

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self::Trace(error)
    }
}
