//! Events with changed addresses.

use hatf_trace::Result;
use hatf_trace::event::{Accesses, Call, EventKind, Pages};

/// A mapping of addresses.
pub(super) trait Places {
    /// Returns the new address of a block or a page, which is never 0.
    fn address(&mut self, address: u64) -> Result<u64>;

    /// Returns the new address of code, given the address of a frame, a function or a module.
    fn frame(&mut self, frame: u64) -> Result<u64>;

    /// Returns the new value of a time within an event.
    fn time(&mut self, time: u64) -> u64 {
        time
    }
}

/// Changes all addresses in an event. The end of a module moves by the same distance as its start.
pub(super) fn moved<'a>(kind: EventKind<'a>, places: &mut impl Places) -> Result<EventKind<'a>> {
    Ok(match kind {
        EventKind::Call(of) => EventKind::Call(call(of, places)?),
        EventKind::ReallocEnd(of) => EventKind::ReallocEnd(call(of, places)?),
        EventKind::Failed(of) => EventKind::Failed(call(of, places)?),
        EventKind::Free { address } => EventKind::Free { address: at(address, places)? },
        EventKind::ReallocBegin { old } => EventKind::ReallocBegin { old: at(old, places)? },
        EventKind::Pages(of) => EventKind::Pages(pages(of, places)?),
        EventKind::ModuleLoad { bias, start, end, name } => {
            let to = places.frame(start)?;
            let by = to.wrapping_sub(start);
            EventKind::ModuleLoad { bias: bias.wrapping_add(by), start: to, end: end.wrapping_add(by), name }
        }
        EventKind::ModuleUnload { start } => EventKind::ModuleUnload { start: places.frame(start)? },
        EventKind::Symbol { frame, line, name } => EventKind::Symbol { frame: places.frame(frame)?, line, name },
        EventKind::Enter { function } => EventKind::Enter { function: places.frame(function)? },
        EventKind::Accesses(accesses) => {
            EventKind::Accesses(Accesses { address: at(accesses.address, places)?, ..accesses })
        }
        EventKind::LastAccess { address, last } => {
            let last = if last == 0 { 0 } else { places.time(last) };
            EventKind::LastAccess { address: at(address, places)?, last }
        }
        EventKind::Untouched { address, bytes } => EventKind::Untouched { address: at(address, places)?, bytes },
        other => other,
    })
}

fn at(address: u64, places: &mut impl Places) -> Result<u64> {
    if address == 0 { Ok(0) } else { places.address(address) }
}

fn call(call: Call, places: &mut impl Places) -> Result<Call> {
    Ok(Call { old: at(call.old, places)?, address: at(call.address, places)?, ..call })
}

fn pages(of: Pages, places: &mut impl Places) -> Result<Pages> {
    Ok(match of {
        Pages::Map { start, length, protection, flags } => {
            Pages::Map { start: at(start, places)?, length, protection, flags }
        }
        Pages::Unmap { start, length } => Pages::Unmap { start: at(start, places)?, length },
        Pages::Remap { from, from_length, start, length } => {
            Pages::Remap { from: at(from, places)?, from_length, start: at(start, places)?, length }
        }
        Pages::Break { end } => Pages::Break { end: at(end, places)? },
        Pages::Advise { start, length, advice } => Pages::Advise { start: at(start, places)?, length, advice },
    })
}
