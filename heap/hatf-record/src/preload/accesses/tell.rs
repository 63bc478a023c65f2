//! Records the access counts of blocks.

use core::sync::atomic::Ordering;

use super::block::Block;
use super::interface::INTERFACE;
use super::{scans, shadow};
use crate::clock::nanoseconds;
use crate::event::{Kind, SpoolEvent, accesses_word};
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Updates the time after a call was recorded.
pub(crate) fn note_time() {
    INTERFACE.now.store(nanoseconds(), Ordering::Relaxed);
}

/// Returns the time that accesses currently store.
pub(super) fn now() -> u64 {
    INTERFACE.now.load(Ordering::Relaxed)
}

/// Records the counts of a block that is about to end. At this time, no other thread can have received its address for
/// a new block.
#[inline(never)]
pub(crate) fn tell(session: &Session, address: usize) {
    if let Some(block) = Block::at(address) {
        tell_block(session, &block);
    }
}

/// Records the counts of all live blocks.
pub(crate) fn tell_all(session: &Session) {
    if shadow::is_on() {
        scans::while_blocks_stay(|| shadow::each_marked(&mut |address| tell(session, address)));
    }
}

fn tell_block(session: &Session, block: &Block) {
    let counts = shadow::fold(block.address, block.size());
    let granules = shadow::granules(block.address, block.size()) as u64;
    let event = SpoolEvent {
        address: block.address as u64,
        size: counts.loads,
        old: counts.stores,
        extra: accesses_word(counts.touched, granules, block.is_reached()),
        ..SpoolEvent::new(Kind::Accesses, push::thread_number(session), session.clock.now())
    };
    push::numbers(session, &event);
    let last = SpoolEvent::new(Kind::LastAccess, event.thread, session.clock.now());
    push::numbers(session, &SpoolEvent { address: event.address, extra: counts.last, ..last });
    note_time();
}
