//! Loads and stores of blocks, in programs that `hatf cc` built.
//!
//! Such a program has the functions of `src/cc/access.c of `hatf`` in it, which count. When it is loaded it asks for the table of counters, and
//! from then on blocks lie so that no two share a counter. What was counted of a block is recorded before it ends, and at the end of the program.
//!
//! `shadow` has the counters, `blocks` lays blocks out, `reach` finds those that a call passes to code that is not instrumented.

mod blocks;
mod reach;
mod shadow;

use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::session::{self, Session};
use super::thread_state::nested;
use super::{push, stack};
use crate::clock::nanoseconds;
use crate::conditions::Conditions;
use crate::event::{Event, Kind, accesses_word};
use blocks::Block;

/// What the program calls: `struct hatf_accesses` of `src/cc/access.c of `hatf``.
#[repr(C)]
pub(crate) struct Interface {
    regions: AtomicPtr<shadow::Entry>,
    reach: unsafe extern "C" fn(*const usize, usize, i32),
    module: extern "C" fn(usize, usize, usize, usize),
    enter: extern "C" fn(usize),
    leave: extern "C" fn(),
    /// The time of the last call that was recorded, which accesses note: nanoseconds of `CLOCK_MONOTONIC`.
    now: AtomicU64,
}

static INTERFACE: Interface = Interface {
    regions: AtomicPtr::new(core::ptr::null_mut()),
    reach: reach::reach,
    module,
    enter,
    leave,
    now: AtomicU64::new(0),
};

/// Modules that are instrumented: where code begins and ends, and variables.
pub(super) static MODULES: [[AtomicUsize; 4]; 64] = [const { [const { AtomicUsize::new(0) }; 4] }; 64];
static MODULES_KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Returns the functions and the table that a program counts by; null where the process is not recorded with stacks, or there is no memory.
///
/// Its number goes up with what they are: a program of an older `hatf cc` finds none, and counts nothing.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_accesses_2() -> *const Interface {
    let Some(session) = session::current().filter(|session| session.conditions().has(Conditions::STACKS)) else {
        return core::ptr::null();
    };
    nested(|| {
        let Some(regions) = shadow::begin() else { return core::ptr::null() };
        blocks::begin();
        session.spool.header().set(Conditions::ACCESSES);
        INTERFACE.regions.store(regions, Ordering::Release);
        &raw const INTERFACE
    })
}

/// Returns whether this process counts accesses.
pub(crate) fn is_on() -> bool {
    shadow::is_on()
}

extern "C" fn module(start: usize, end: usize, variables: usize, variables_end: usize) {
    let next = MODULES_KNOWN.fetch_add(1, Ordering::Relaxed);
    // Code of a module that is not kept counts as not instrumented.
    if let Some(place) = MODULES.get(next) {
        for (word, value) in place.iter().zip([start, end, variables, variables_end]) {
            word.store(value, Ordering::Release);
        }
    }
}

/// Notes that a call was just recorded.
pub(crate) fn go_on() {
    INTERFACE.now.store(nanoseconds(), Ordering::Relaxed);
}

/// Returns the time that accesses note now.
fn now() -> u64 {
    INTERFACE.now.load(Ordering::Relaxed)
}

extern "C" fn enter(function: usize) {
    function_event(Kind::Enter, function);
}

extern "C" fn leave() {
    function_event(Kind::Leave, 0);
}

/// Records that a function begins or ends.
fn function_event(kind: Kind, function: usize) {
    let Some(session) = session::current().filter(|session| !session.conditions().has(Conditions::OFF)) else { return };
    let thread = push::thread_number(session);
    push::numbers(session, &Event { address: function as u64, ..Event::new(kind, thread, session.clock.now()) });
}

/// Notes a block that the program's own code allocated, whose stack has this number. Blocks of code that is not instrumented, whose accesses
/// cannot be seen, are left as they are.
#[inline(never)]
pub(crate) fn allocated(address: usize, stack: u32) {
    let Some(frame) = stack::innermost(stack) else { return };
    let is_ours = |[start, end, ..]: &[AtomicUsize; 4]| {
        (start.load(Ordering::Relaxed)..end.load(Ordering::Acquire)).contains(&frame)
    };
    if MODULES.iter().any(is_ours)
        && let Some(block) = Block::at(address)
    {
        block.is_known();
    }
}

/// Records what was counted of a block, which is about to end. Other threads do not have its address yet.
#[inline(never)]
pub(crate) fn tell(session: &Session, address: usize) {
    if let Some(block) = Block::at(address) {
        tell_block(session, &block);
    }
}

/// Records what was counted of all blocks that are live.
pub(crate) fn tell_all(session: &Session) {
    if is_on() {
        reach::while_blocks_stay(|| shadow::each_marked(&mut |address| tell(session, address)));
    }
}

fn tell_block(session: &Session, block: &Block) {
    let counts = shadow::fold(block.address, block.size());
    let granules = shadow::granules(block.address, block.size()) as u64;
    let event = Event {
        address: block.address as u64,
        size: counts.loads,
        old: counts.stores,
        extra: accesses_word(counts.touched, granules, block.is_reached()),
        ..Event::new(Kind::Accesses, push::thread_number(session), session.clock.now())
    };
    push::numbers(session, &event);
    let last = Event::new(Kind::LastAccess, event.thread, session.clock.now());
    push::numbers(session, &Event { address: event.address, extra: counts.last, ..last });
    go_on();
}
