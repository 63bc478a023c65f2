//! What an allocator in the program calls to be recorded: the functions of the preloaded object where there is one, or those beside it.

use core::ffi::c_void;

use crate::event::Kind;
use crate::preload::choose::call::{Begun, Block, Call};
use crate::preload::events::record;
use crate::preload::platform::thread_state;

/// Functions by which calls are recorded. `version` comes first: all else may differ from one to another.
#[repr(C)]
pub(crate) struct Functions {
    pub(crate) version: usize,
    /// Records a call: the number of its [`Kind`], size, address, old address, and what is extra.
    pub(crate) call: extern "C" fn(u8, usize, usize, usize, usize),
    /// Records that a realloc of a block begins; returns what [`Functions::realloc_ends`] takes.
    pub(crate) realloc_begins: extern "C" fn(*mut c_void, usize) -> Begun,
    /// Records that it has returned.
    pub(crate) realloc_ends: extern "C" fn(*mut c_void, *mut c_void, usize, Begun),
    /// From this stack pointer on calls are not the program's own: returns what [`Functions::leave`] takes.
    pub(crate) enter: extern "C" fn(usize) -> usize,
    pub(crate) leave: extern "C" fn(usize),
}

/// The version of [`Functions`].
pub(crate) const VERSION: usize = 1;

pub(crate) static FUNCTIONS: Functions =
    Functions { version: VERSION, call, realloc_begins, realloc_ends, enter, leave };

extern "C" fn call(kind: u8, size: usize, address: usize, old: usize, extra: usize) {
    let numbers = Call { size, address, old, extra, ..Call::default() };
    // Constants, so that each is as fast as the hook of its function.
    match Kind::from_number(kind) {
        Some(Kind::Malloc) => record::call(Kind::Malloc, numbers),
        Some(Kind::Free) => record::call(Kind::Free, numbers),
        Some(kind @ (Kind::Calloc | Kind::Memalign)) => record::call(kind, numbers),
        _ => {}
    }
}

extern "C" fn realloc_begins(old: *mut c_void, size: usize) -> Begun {
    record::realloc_begins(old, size)
}

extern "C" fn realloc_ends(old: *mut c_void, block: *mut c_void, size: usize, begun: Begun) {
    let call = Call { size, address: block as usize, old: old as usize, ..Call::default() };
    record::realloc_ends(Kind::Realloc, call, Block::Other, begun);
}

extern "C" fn enter(stack_pointer: usize) -> usize {
    thread_state::enter(stack_pointer)
}

extern "C" fn leave(before: usize) {
    thread_state::leave(before);
}

/// Returns the functions of the preloaded object, for an allocator in the program.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_functions() -> *const Functions {
    &raw const FUNCTIONS
}
