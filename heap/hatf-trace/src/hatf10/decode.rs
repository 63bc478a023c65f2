//! Conversion of HATF 1.0 records to events.

use super::{Attributes, Dialect, Record, RecordKind, attributes};
use crate::event::{Call, Event, EventKind, Function, Stack, UNKNOWN_SIZE};

/// Returns whether a record only ends an image that executes another program. Such a record is not an event.
#[must_use]
pub fn is_exec(record: &Record<'_>) -> bool {
    record.kind == RecordKind::DestroyHeap && Attributes(record.attributes).items().next() == Some(b"exec")
}

/// Decodes a record.
///
/// Attributes are passed on unchanged unless encoding the event reproduces them. `buffer` is scratch memory.
pub fn decode<'a>(record: &Record<'a>, dialect: Dialect, buffer: &mut Vec<u8>) -> Event<'a> {
    let items = Attributes(record.attributes);
    let Record { time, thread, heap, attributes, .. } = *record;
    let event = |kind| Event { kind, time, thread, heap, stack: Stack::NONE, attributes: &[] };
    if let Some(kind) = with_attributes(record, items) {
        let time = match dialect {
            Dialect::Native => time,
            Dialect::MetaTf => items.number("time").unwrap_or(time),
        };
        let event = Event { time, ..event(kind) };
        buffer.clear();
        attributes::write(&event, dialect, buffer);
        if buffer == attributes {
            return event;
        }
    }
    Event { attributes, ..event(without_attributes(record)) }
}

/// Decodes a record, ignoring its attributes.
fn without_attributes(record: &Record<'_>) -> EventKind<'static> {
    match record.kind {
        RecordKind::Alloc { size, address } => EventKind::Call(Call { size, address, ..Call::new(Function::Malloc) }),
        RecordKind::Realloc { old, address, size } => {
            EventKind::Call(Call { size, old, address, ..Call::new(Function::Realloc) })
        }
        RecordKind::Free { address } => EventKind::Free { address },
        RecordKind::CreateHeap => EventKind::CreateHeap,
        RecordKind::DestroyHeap => EventKind::DestroyHeap,
        RecordKind::CreateThread => EventKind::ThreadStart { creator: 0, task: 0 },
        RecordKind::DestroyThread => EventKind::ThreadEnd,
    }
}

/// Decodes a record with attributes written by this crate.
fn with_attributes<'a>(record: &Record<'a>, items: Attributes<'a>) -> Option<EventKind<'a>> {
    let first = items.items().next().unwrap_or_default();
    let function = Function::ALL.iter().copied().find(|function| function.name().as_bytes() == first);
    let detail = items.number("count").or(items.number("align")).unwrap_or(0);
    Some(match record.kind {
        RecordKind::Alloc { size, address } => {
            let call = Call { detail, size, address, ..Call::new(function.unwrap_or(Function::Malloc)) };
            if items.has("end") { EventKind::ReallocEnd(call) } else { EventKind::Call(call) }
        }
        RecordKind::Realloc { old, address, size } => {
            let function = function.unwrap_or(Function::Realloc);
            let from_attributes = items.number("size");
            let size = if size == UNKNOWN_SIZE { from_attributes.unwrap_or(size) } else { size };
            EventKind::Call(Call { detail, size, old, address, ..Call::new(function) })
        }
        RecordKind::Free { address: old } if items.has("begin") => EventKind::ReallocBegin { old },
        RecordKind::Free { address } => match function {
            Some(function) => EventKind::Call(Call { detail, old: address, ..Call::new(function) }),
            None => EventKind::Free { address },
        },
        RecordKind::CreateHeap => {
            let process = items.number("process")?;
            let at = record.attributes.windows(5).position(|window| window == b"path=")?;
            EventKind::Image { process, path: record.attributes.get(at + 5..)? }
        }
        RecordKind::DestroyHeap => match (items.number("exit"), items.number("signal")) {
            (Some(status), _) => EventKind::Exit { status },
            (None, Some(signal)) => EventKind::Killed { signal },
            (None, None) => return None,
        },
        RecordKind::CreateThread => {
            EventKind::ThreadStart { creator: items.number("by").unwrap_or(0), task: items.number("task").unwrap_or(0) }
        }
        RecordKind::DestroyThread => EventKind::ThreadEnd,
    })
}
