//! Events of the untouched pages of large blocks.
//!
//! Only recordings with stacks contain these events, because the fast path of other recordings should not depend on
//! the sizes of blocks. A `realloc` ends a block without an event, because the block continues as the new block.

use crate::conditions::Conditions;
use crate::event::{Kind, SpoolEvent};
use crate::preload::choose::large_blocks;
use crate::preload::platform::memory;
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Notes a block of at least [`large_blocks::LEAST`] bytes. The address is 0 if the call returned none.
#[cold]
pub(super) fn note(session: &Session, address: usize, size: usize) {
    let conditions = session.conditions();
    if address != 0 && conditions.has(Conditions::STACKS) && !conditions.has(Conditions::SIZES) {
        large_blocks::keep(address, size);
        if !conditions.has(Conditions::LARGE) {
            session.spool.header().set(Conditions::LARGE);
        }
    }
}

/// Records the untouched pages of a block that is about to end, if it is large.
#[inline]
pub(super) fn tell(session: &Session, address: usize) {
    if let Some(size) = large_blocks::forget(address) {
        tell_block(session, address, size);
    }
}

/// Records the untouched pages of all large blocks, because the program ends.
pub(crate) fn tell_all(session: &Session) {
    let conditions = session.conditions();
    if conditions.has(Conditions::LARGE) && !conditions.has(Conditions::OFF) {
        large_blocks::each(|address, size| tell_block(session, address, size));
    }
}

#[cold]
fn tell_block(session: &Session, address: usize, size: usize) {
    if let Some(bytes) = memory::untouched(address, size) {
        let event = SpoolEvent::new(Kind::Untouched, push::thread_number(session), session.clock.now());
        push::numbers(session, &SpoolEvent { address: address as u64, size: bytes as u64, ..event });
    }
}
