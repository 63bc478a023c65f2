//! Properties of events: the blocks they begin and end, and whether they are counted and have a lasting effect.

use hatf_record::{Kind, SpoolEvent};

/// Returns whether an event counts in the numbering of a thread's events, because it becomes exactly one event of the
/// trace.
pub(super) fn counts(kind: Kind) -> bool {
    !matches!(kind, Kind::ReallocBegin | Kind::Lost | Kind::ThreadEnd | Kind::ThreadName | Kind::PythonFrame)
}

/// Returns whether an event affects all later events, however late they come.
pub(crate) fn is_lasting(kind: Kind) -> bool {
    use Kind::{Image, ModuleLoad, ModuleUnload, PythonFrame, Start, Stop, ThreadEnd, ThreadName, ThreadStart};
    matches!(
        kind,
        Image | ModuleLoad | ModuleUnload | PythonFrame | ThreadStart | ThreadEnd | ThreadName | Start | Stop
    )
}

/// Returns the addresses of the blocks that an event ends and begins. `pending` is the old block of a realloc that has
/// begun.
#[inline]
pub(in crate::record::order) fn effect(event: &SpoolEvent, pending: Option<u64>) -> (Option<u64>, Option<u64>) {
    let some = |address: u64| (address != 0).then_some(address);
    match event.kind {
        Kind::Malloc
        | Kind::Calloc
        | Kind::Memalign
        | Kind::PosixMemalign
        | Kind::AlignedAlloc
        | Kind::Valloc
        | Kind::Pvalloc => (None, some(event.address)),
        Kind::Free => (some(event.address), None),
        Kind::ReallocBegin => (some(event.old), None),
        Kind::Realloc | Kind::Reallocarray if pending == Some(event.old) && event.old != 0 => {
            // The old block ended when the call began, but is still live if the call failed.
            (None, some(if event.old_is_gone() { event.address } else { event.old }))
        }
        Kind::Realloc | Kind::Reallocarray => (event.old_is_gone().then_some(event.old), some(event.address)),
        _ => (None, None),
    }
}

pub(super) fn ends(event: &SpoolEvent, address: u64) -> bool {
    effect(event, None).0 == Some(address)
}

pub(super) fn begins(event: &SpoolEvent, address: u64) -> bool {
    effect(event, None).1 == Some(address)
}
