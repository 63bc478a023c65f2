//! Recording the program's own calls.

use core::ffi::c_void;

use super::attach::session;
use super::session::Session;
use super::thread_state::{ThreadState, current};
use super::{control, kept, only, push, sample};
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::{About, Event, Flags, Kind};

/// The numbers of a call, by their names in [`Event`].
#[derive(Clone, Copy, Default)]
pub(crate) struct Call {
    pub(crate) size: usize,
    pub(crate) address: usize,
    pub(crate) old: usize,
    pub(crate) extra: usize,
    pub(crate) flags: Flags,
}

impl Call {
    /// Leaves out where the blocks are.
    fn without_address(self) -> Self {
        let flags = if self.address == 0 { self.flags } else { Flags::NO_ADDRESS };
        Self { address: 0, old: 0, flags, ..self }
    }
}

/// Whose block a call returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// That of the functions behind ours: `malloc_usable_size` knows it.
    Malloc,
    /// Another allocator's.
    Other,
}

/// Records a call, if it is the program's own and the process is recorded.
#[inline(always)]
pub(crate) fn call(kind: Kind, call: Call) {
    record(kind, call, Block::Other, false);
}

/// What is recorded of the beginning of a realloc.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Begun {
    /// Nothing: only programs with several threads need it.
    No,
    /// A [`Kind::ReallocBegin`].
    Recorded,
    /// Recording was off. Another thread may be given the old block, and record that, before the call returns.
    Off,
}

/// Records that a realloc is about to run in a program with several threads.
#[inline]
pub(crate) fn realloc_begins(old: *mut c_void, size: usize) -> Begun {
    let Some(session) = session().filter(|_| !old.is_null()) else { return Begun::No };
    let conditions = session.conditions();
    if conditions.has_any(SWITCH) && !is_on(session) {
        return Begun::Off;
    }
    let call = Call { size, old: old as usize, ..Call::default() };
    match conditions.has(Conditions::THREADS) {
        false => Begun::No,
        true if record(Kind::ReallocBegin, call, Block::Other, false) => Begun::Recorded,
        // Recording has stopped at this moment, or the call is nested, and so is its end.
        true => Begun::Off,
    }
}

/// Records that a realloc has returned. One whose beginning was recorded gets its end, whatever happened meanwhile; of one that began
/// while recording was off the old block is not known.
#[inline]
pub(crate) fn realloc_ends(kind: Kind, call: Call, block: Block, begun: Begun) {
    let old = if begun == Begun::Off { 0 } else { call.old };
    record(kind, Call { old, ..call }, block, begun == Begun::Recorded);
}

/// Records a call, also while recording is off if it is the end of one that has `begun`. Returns whether it did.
#[inline(always)]
fn record(kind: Kind, call: Call, block: Block, begun: bool) -> bool {
    let state = current();
    if state.is_nested() {
        return false;
    }
    let Some(session) = session() else { return false };
    let conditions = session.conditions();
    // One comparison where nothing is unusual.
    if conditions != Conditions(0) {
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if conditions.has(Conditions::INJECTED) {
            injected(session, state);
        }
        if conditions.has(Conditions::THREADS) {
            in_order();
        }
        if conditions.has_any(SWITCH) && !is_on(session) && !begun {
            return false;
        }
        #[cfg(all(feature = "preload", target_pointer_width = "64"))]
        if conditions.has(Conditions::PAGES) {
            program_break(session);
        }
        if conditions.has(Conditions::PROCESSORS) {
            processor(session, state);
        }
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if conditions.has(Conditions::ACCESSES) && kind == Kind::Free && !conditions.has_any(Conditions::PART) {
            super::accesses::tell(session, call.address);
        }
        if conditions.has_any(Conditions::PART) {
            return if conditions.has(Conditions::SIZES) {
                size(session, state, kind, call, block)
            } else {
                part(session, state, kind, call, block, begun)
            };
        }
        if conditions.has_any(ABOUT) && !ends_only(kind) {
            with_about(session, state, kind, call, block);
            return true;
        }
    }
    // SAFETY: the spool stays mapped. A thread without a chunk has no room in it, and gets its number with the first.
    let put = !kind.has_numbers()
        && unsafe { state.producer.put(session.clock, kind, call.size as u64, call.address as u64) };
    if !put {
        slowly(session, state, kind, call);
    }
    true
}

/// Recording may be off.
const SWITCH: Conditions = Conditions(Conditions::OFF.0 | Conditions::CHANGE.0);
/// More than its numbers is recorded of a call that allocates.
const ABOUT: Conditions = Conditions(Conditions::STACKS.0 | Conditions::USABLE.0);

/// Does what was asked for, and returns whether recording is on.
#[cold]
fn is_on(session: &Session) -> bool {
    if session.conditions().has(Conditions::CHANGE) {
        control::change(session);
    }
    !session.conditions().has(Conditions::OFF)
}

/// What a hook has to see to where the process ran already when recording began: threads may have belonged to an earlier recording, and nobody
/// says that modules were loaded.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
#[inline(never)]
fn injected(session: &Session, state: &ThreadState) {
    if state.join(session.number) {
        super::thread_end::arm();
    }
    let calls = state.calls.get().wrapping_add(1);
    state.calls.set(calls);
    if calls.is_multiple_of(64) {
        super::modules::look();
    }
}

/// Records on which processor the thread runs, if that is another than at its call before.
#[inline(never)]
fn processor(session: &Session, state: &ThreadState) {
    // SAFETY: a number, which the kernel keeps in the thread's memory; no call of the kernel where it does.
    let Ok(cpu) = u32::try_from(unsafe { libc::sched_getcpu() }) else { return };
    let known = cpu.wrapping_add(1);
    if state.processor.replace(known) != known {
        let thread = push::thread_number(session);
        push::numbers(session, &Event { size: cpu.into(), ..Event::new(Kind::Processor, thread, session.clock.now()) });
    }
}

fn ends_only(kind: Kind) -> bool {
    matches!(kind, Kind::Free | Kind::ReallocBegin)
}

#[inline(never)]
fn slowly(session: &Session, state: &ThreadState, kind: Kind, call: Call) {
    push::numbers(session, &event(session, state, kind, call));
}

#[inline(never)]
fn with_about(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block) {
    let conditions = session.conditions();
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    let stack = if conditions.has(Conditions::STACKS) { super::stack::capture(session) } else { 0 };
    #[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
    let stack = 0;
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has(Conditions::ACCESSES) && !conditions.has(Conditions::SIZES) {
        super::accesses::allocated(call.address, stack);
    }
    let asks = conditions.has(Conditions::USABLE) && block == Block::Malloc;
    let usable = if asks { usable(call.address) } else { 0 };
    let about = About::new(stack, call.size as u64, usable as u64);
    let call = if conditions.has(Conditions::SIZES) { call.without_address() } else { call };
    push::with_about(session, &Event { about, ..event(session, state, kind, call) });
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if conditions.has(Conditions::ACCESSES) {
        super::accesses::go_on();
    }
}

/// Returns how many bytes a block of the functions behind ours really has; 0 where that is not known.
#[cfg(feature = "preload")]
fn usable(block: usize) -> usize {
    let Some(usable) = super::real::malloc_usable_size().filter(|_| block != 0) else { return 0 };
    // SAFETY: a block that these functions have just returned.
    super::thread_state::nested(|| unsafe { usable(block as *mut c_void) })
}

/// An allocator does not say.
#[cfg(not(feature = "preload"))]
fn usable(_: usize) -> usize {
    0
}

/// Returns the session, if calls for pages are recorded, and recording is on.
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) fn records_pages() -> Option<&'static Session> {
    let session = session()?;
    let conditions = session.conditions();
    let on = conditions.has(Conditions::PAGES) && (!conditions.has_any(SWITCH) || is_on(session));
    on.then_some(session)
}

/// Records that the program break has moved, if it has.
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
#[inline]
pub(crate) fn program_break(session: &Session) {
    if let Some(end) = super::program_break::moved() {
        pages(session, Kind::Break, Call { address: end, ..Call::default() });
    }
}

/// Records a call for pages, be it the program's or an allocator's, with its stack if it is the program's.
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
#[inline(never)]
pub(crate) fn pages(session: &Session, kind: Kind, call: Call) {
    let (state, conditions) = (current(), session.conditions());
    if conditions.has(Conditions::THREADS) {
        in_order();
    }
    if conditions.has(Conditions::STACKS) && !state.is_nested() && kind != Kind::Break {
        with_about(session, state, kind, call, Block::Other);
    } else {
        slowly(session, state, kind, call);
    }
}

/// Records a call where not all blocks are recorded: if its block is chosen, and if it ends one that was. `begun`: it is a realloc whose
/// beginning was recorded. Returns whether anything was.
#[inline(never)]
fn part(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block, begun: bool) -> bool {
    let ends = if kind == Kind::Free { call.address } else { call.old };
    let ended = begun || ends != 0 && kept::forget(ends);
    match kind {
        Kind::Free if ended => {
            #[cfg(all(feature = "preload", target_arch = "x86_64"))]
            if session.conditions().has(Conditions::ACCESSES) {
                super::accesses::tell(session, ends);
            }
            slowly(session, state, kind, call);
            return true;
        }
        Kind::ReallocBegin if ended => {
            slowly(session, state, kind, call);
            return true;
        }
        Kind::Free | Kind::ReallocBegin => return false,
        _ => {}
    }
    let failed = call.address == 0 && call.size != 0;
    if failed && call.old != 0 {
        // Of a block that is not recorded, it is not recorded either that it could not be changed.
        if ended && kept::keep(call.old) {
            about(session, state, kind, call, block);
        }
        return ended;
    }
    // Each half of a realloc is recorded as what it is by itself: its two blocks need not both be chosen.
    let begins = (call.address != 0 || failed)
        && is_chosen(session, state, &call)
        && (call.address == 0 || kept::keep(call.address));
    match (ended, begins) {
        (_, true) => about(session, state, kind, Call { old: if ended { call.old } else { 0 }, ..call }, block),
        // Of one whose beginning is there the end has to be, too: the block has become nothing.
        (true, false) if begun => slowly(session, state, kind, Call { old: call.old, ..Call::default() }),
        (true, false) => slowly(session, state, Kind::Free, Call { address: call.old, ..Call::default() }),
        (false, false) => {}
    }
    ended || begins
}

/// Records a call where only what was asked for is recorded. Returns whether it did.
#[inline(never)]
fn size(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block) -> bool {
    let begins = !ends_only(kind) && (call.address != 0 || call.size != 0);
    let chosen = begins && is_chosen(session, state, &call);
    if chosen {
        about(session, state, kind, call.without_address(), block);
    }
    chosen
}

/// Records a call with what is recorded about those that allocate.
#[inline]
fn about(session: &Session, state: &ThreadState, kind: Kind, call: Call, block: Block) {
    if session.conditions().has_any(ABOUT) {
        with_about(session, state, kind, call, block);
    } else {
        slowly(session, state, kind, call);
    }
}

/// Returns whether a call that allocates is recorded, or that failed to.
#[inline]
fn is_chosen(session: &Session, state: &ThreadState, call: &Call) -> bool {
    let conditions = session.conditions();
    // What costs least comes first. Of what is left out by name each byte has had the same chance as others, too.
    (!conditions.has(Conditions::ONLY_THREADS) || only::is_thread(state))
        && (!conditions.has(Conditions::SAMPLE) || call.address != 0 && sample::chooses(session, state, call.size))
        && (!conditions.has(Conditions::ONLY_MODULES) || only::is_module(session))
}

/// Makes an event of a call, which is stamped now.
fn event(session: &Session, state: &ThreadState, kind: Kind, call: Call) -> Event {
    Event {
        size: call.size as u64,
        address: call.address as u64,
        old: call.old as u64,
        extra: call.extra as u64,
        flags: call.flags,
        ..Event::new(kind, state.id.get(), session.clock.now())
    }
}

/// Records a call of a function behind ours that returned `block`.
#[inline(always)]
pub(crate) fn allocation(kind: Kind, block: *mut c_void, size: usize, extra: usize) {
    record(kind, Call { size, address: block as usize, extra, ..Call::default() }, Block::Malloc, false);
}

/// Records a mark, or the begin or end of a phase.
pub(crate) fn mark(kind: Kind, name: &[u8]) {
    let Some(session) = session() else { return };
    if is_on(session) {
        let event = Event::new(kind, push::thread_number(session), session.clock.now());
        push::event(session, event, name);
    }
}
