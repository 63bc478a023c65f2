//! The word that selects the path of a hook: the conditions in the header of the spool, which `hatf` can change as
//! well, or a private word while hooks must take the complete path.
//!
//! The complete path is required until there is a session, and as long as a block of the arena exists, because such a
//! block must not reach the real functions. It is also required if there is no real function to jump to.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::conditions::Conditions;
use crate::layout::Header;
use crate::preload::elf::real::{self, ARENA};

/// A word without conditions.
static COMPLETE: AtomicU32 = AtomicU32::new(0);

/// The word that hooks read. It is always readable.
pub(crate) static WORD: AtomicPtr<AtomicU32> = AtomicPtr::new((&raw const COMPLETE).cast_mut());

/// Makes hooks read the conditions of a session, which other threads can already see.
pub(crate) fn follow(header: &'static Header) {
    let reentrant = if real::is_reentrant() { Conditions::REENTRANT.0 } else { 0 };
    // An earlier image of the process may have had another allocator.
    header.update(|now| now & !Conditions::REENTRANT.0 | reentrant);
    WORD.store((&raw const header.conditions).cast_mut(), Ordering::SeqCst);
    // A thread that creates a block either sees the session and calls `leave`, or its block is seen here.
    if ARENA.has_blocks() || !real::has_frequent() {
        leave();
    }
}

/// Makes hooks take the complete path.
pub(crate) fn leave() {
    WORD.store((&raw const COMPLETE).cast_mut(), Ordering::SeqCst);
}
