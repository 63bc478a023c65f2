//! Memory that Python maps for its objects and frames, which is recorded as blocks.
//!
//! The interpreter requests such memory, mostly arenas of 1 MiB, with `mmap`. A block begins with the call, recorded as
//! a `memalign` to the start of a page, and ends with `munmap` or `mremap`, recorded as a `free`. If Python allocates
//! its objects with `malloc`, it maps little.

use core::ffi::{c_int, c_void};
use core::ops::ControlFlow;

use super::finish;
use crate::clock::in_order;
use crate::conditions::Conditions;
use crate::event::Kind;
use crate::preload::choose::call::{Block, Call};
use crate::preload::choose::choice::{self, Detail};
use crate::preload::choose::recorded_blocks;
use crate::preload::elf::found::Found;
use crate::preload::platform::thread_state::current;
use crate::preload::session::begin::session;
use crate::preload::spool::session::Session;
use crate::preload::stacks::frame::{Frame, Visitor};
use crate::preload::stacks::unwind::{self, Here};
use crate::preload::stacks::{met_modules, python};

/// The alignment of a mapping.
const PAGE: usize = 4096;
/// The protection and flags of memory for objects.
const PROTECTION: c_int = libc::PROT_READ | libc::PROT_WRITE;
const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;

/// Returns the session and its conditions if Python's memory is recorded and the call is not nested.
#[inline]
fn records_python() -> Option<(&'static Session, Conditions)> {
    let session = session()?;
    let conditions = session.conditions();
    (conditions.has(Conditions::PYTHON) && !current().is_nested()).then_some((session, conditions))
}

/// Records that `mmap` has returned memory, if the interpreter requested it for objects.
pub(crate) fn mapped(start: *mut c_void, length: usize, protection: c_int, flags: c_int) {
    let Some((session, conditions)) = records_python() else { return };
    let is_for_objects = protection == PROTECTION && flags == FLAGS;
    if !is_for_objects || !choice::is_on(session, conditions) || !is_interpreter(session) {
        return;
    }
    // If only some calls are recorded, the choice notes the block.
    if conditions.has_any(Conditions::PART) || recorded_blocks::keep(start as usize) {
        let call = Call { size: length, address: start as usize, extra: PAGE, ..Call::default() };
        record(session, conditions, Kind::Memalign, call);
    }
}

/// Records that memory is about to be unmapped or moved, if its request was recorded.
pub(crate) fn unmaps(start: *mut c_void) {
    let Some((session, conditions)) = records_python() else { return };
    let is_part = conditions.has_any(Conditions::PART);
    if (is_part || recorded_blocks::forget(start as usize)) && choice::is_on(session, conditions) {
        record(session, conditions, Kind::Free, Call { address: start as usize, ..Call::default() });
    }
}

/// Records a call. Unlike a call to an allocator, it takes no locks of the dynamic loader.
fn record(session: &Session, conditions: Conditions, mut kind: Kind, mut call: Call) {
    let state = current();
    if conditions.has(Conditions::THREADS) {
        in_order();
    }
    let detail = if !conditions.has_any(Conditions::PART) {
        Some(choice::detail(conditions, kind))
    } else if choice::may_be_chosen(conditions, kind) {
        choice::choose(session, state, &mut kind, &mut call, false)
    } else {
        None
    };
    match detail {
        Some(Detail::Described) => finish::allocation(session, state, kind, call, Block::Other),
        Some(Detail::Numbers) => finish::numbers(session, state, kind, call),
        None => {}
    }
}

/// Returns whether the interpreter made the program's call.
#[inline(never)]
fn is_interpreter(session: &Session) -> bool {
    let mut walk = Caller { session, instruction: 0 };
    unwind::walk(Here::new(), &mut walk);
    python::is_interpreter(walk.instruction)
}

/// A walk to the innermost frame.
struct Caller<'s> {
    session: &'s Session,
    instruction: usize,
}

impl Visitor for Caller<'_> {
    fn module(&mut self, found: &Found) {
        met_modules::note(self.session, found);
    }

    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        self.instruction = frame.instruction;
        ControlFlow::Break(())
    }
}
