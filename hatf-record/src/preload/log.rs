//! Recording the program's own calls.

use core::ffi::c_void;

use super::attach::session;
use super::push;
use super::thread_state::is_outermost;
use crate::event::{Event, Kind};

/// The numbers of a call, by their names in [`Event`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
}

/// Records a call, if it is the program's own and the process is recorded.
#[inline]
pub(crate) fn call(kind: Kind, call: Call) {
    if !is_outermost() {
        return;
    }
    if let Some(session) = session() {
        let mut event = Event::new(kind, push::thread_number(session), push::now(session));
        event.size = call.size as u64;
        event.address = call.address as u64;
        event.old = call.old as u64;
        event.extra = call.extra as u64;
        push::event(session, &event);
    }
}

/// Records a call that returned `block`.
#[inline]
pub(crate) fn allocation(kind: Kind, block: *mut c_void, size: usize, extra: usize) {
    call(kind, Call { size, address: block as usize, old: 0, extra });
}

/// Records a mark, or the begin or end of a phase.
pub(crate) fn mark(kind: Kind, name: &[u8]) {
    if let Some(session) = session() {
        push::event_with_text(session, Event::new(kind, push::thread_number(session), push::now(session)), name);
    }
}
