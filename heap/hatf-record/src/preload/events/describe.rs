//! The description of a call, the second of the three steps of recording an event (see `record.rs`).

use crate::conditions::Conditions;
use crate::event::{About, Kind, SpoolEvent};
use crate::preload::choose::call::{Block, Call};
use crate::preload::platform::thread_state::ThreadState;
use crate::preload::spool::session::Session;

/// Returns the event of a call with its size, addresses and extra value, stamped with the current time.
pub(super) fn numbers(session: &Session, state: &ThreadState, kind: Kind, call: Call) -> SpoolEvent {
    SpoolEvent {
        size: call.size as u64,
        address: call.address as u64,
        old: call.old as u64,
        extra: call.extra as u64,
        flags: call.flags,
        ..SpoolEvent::new(kind, state.id.get(), session.clock.now())
    }
}

/// Returns the event of an allocating call with its stack and the usable size of its block, as far as requested. The
/// event is stamped last.
#[inline(always)]
pub(super) fn allocation(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block) -> SpoolEvent {
    let conditions = session.conditions();
    let stack = if conditions.has(Conditions::STACKS) { stack(session) } else { 0 };
    let asks = conditions.has(Conditions::USABLE) && block == Block::Malloc;
    let usable = if asks { usable(call.address) } else { 0 };
    let about = About::new(stack, call.size as u64, usable as u64);
    let call = if conditions.has(Conditions::SIZES) { call.without_address() } else { call };
    SpoolEvent { about, ..numbers(session, state, kind, call) }
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use crate::preload::stacks::capture::capture as stack;

/// Returns 0: stacks are not walked in this build.
#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn stack(_: &Session) -> u32 {
    0
}

/// Returns the usable size of a block from the underlying functions, or 0 if unknown.
#[cfg(feature = "preload")]
fn usable(block: usize) -> usize {
    let Some(usable) = crate::preload::elf::real::malloc_usable_size().filter(|_| block != 0) else { return 0 };
    // SAFETY: a block that these functions have just returned.
    crate::preload::platform::thread_state::nested(|| unsafe { usable(block as *mut core::ffi::c_void) })
}

/// Returns 0: an allocator does not provide the size.
#[cfg(not(feature = "preload"))]
fn usable(_: usize) -> usize {
    0
}
