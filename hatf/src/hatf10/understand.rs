//! From the records of HATF 1.0 to events.

use super::{Attributes, Dialect, Record, What as Word, words};
use crate::event::{Call, Event, Function, UNKNOWN_SIZE, What};

/// Whether a record is the end of an image that another follows, which says nothing of its own.
#[must_use]
pub fn is_exec(record: &Record<'_>) -> bool {
    record.what == Word::DestroyHeap && Attributes(record.attributes).words().next() == Some(b"exec")
}

/// The event that a record says.
///
/// Attributes that this crate did not write, or that say more than is understood, are passed on as they are. `buffer` is
/// memory to work in.
pub fn understand<'a>(record: &Record<'a>, dialect: Dialect, buffer: &mut Vec<u8>) -> Event<'a> {
    let words = Attributes(record.attributes);
    let Record { time, thread, heap, attributes, .. } = *record;
    let event = |what| Event { what, time, thread, heap, stack: &[], attributes: &[] };
    if let Some(what) = in_our_words(record, words) {
        let time = match dialect {
            Dialect::Native => time,
            Dialect::MetaTf => words.number("time").unwrap_or(time),
        };
        let event = Event { time, ..event(what) };
        buffer.clear();
        words::write(&event, dialect, buffer);
        // Only what would be said in the same words is understood.
        if buffer == attributes {
            return event;
        }
    }
    Event { attributes, ..event(plain(record)) }
}

/// What a record says without its attributes.
fn plain(record: &Record<'_>) -> What<'static> {
    match record.what {
        Word::Alloc { size, address } => What::Call(Call { size, address, ..Call::new(Function::Malloc) }),
        Word::Realloc { old, address, size } => What::Call(Call { size, old, address, ..Call::new(Function::Realloc) }),
        Word::Free { address } => What::Free { address },
        Word::CreateHeap => What::CreateHeap,
        Word::DestroyHeap => What::DestroyHeap,
        Word::CreateThread => What::ThreadStart { creator: 0 },
        Word::DestroyThread => What::ThreadEnd,
    }
}

/// What a record says with the attributes that this crate writes.
fn in_our_words<'a>(record: &Record<'a>, words: Attributes<'a>) -> Option<What<'a>> {
    let first = words.words().next().unwrap_or_default();
    let function = Function::ALL.iter().copied().find(|function| function.name().as_bytes() == first);
    let detail = words.number("count").or(words.number("align")).unwrap_or(0);
    Some(match record.what {
        Word::Alloc { size, address } => {
            let call = Call { detail, size, address, ..Call::new(function.unwrap_or(Function::Malloc)) };
            if words.has("end") { What::ReallocEnd(call) } else { What::Call(call) }
        }
        Word::Realloc { old, address, size } => {
            let function = function.unwrap_or(Function::Realloc);
            let said = words.number("size");
            let size = if size == UNKNOWN_SIZE { said.unwrap_or(size) } else { size };
            What::Call(Call { detail, size, old, address, ..Call::new(function) })
        }
        Word::Free { address: old } if words.has("begin") => What::ReallocBegin { old },
        Word::Free { address } => match function {
            Some(function) => What::Call(Call { detail, old: address, ..Call::new(function) }),
            None => What::Free { address },
        },
        Word::CreateHeap => {
            let process = words.number("process")?;
            let at = record.attributes.windows(5).position(|window| window == b"path=")?;
            What::Image { process, path: record.attributes.get(at + 5..)? }
        }
        Word::DestroyHeap => match (words.number("exit"), words.number("signal")) {
            (Some(status), _) => What::Exit { status },
            (None, Some(signal)) => What::Killed { signal },
            (None, None) => return None,
        },
        Word::CreateThread => What::ThreadStart { creator: words.number("by").unwrap_or(0) },
        Word::DestroyThread => What::ThreadEnd,
    })
}
