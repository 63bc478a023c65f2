//! The functions that an allocator in the program calls to be recorded. They belong to the preloaded object, if there
//! is one, or else are linked into the program.

use core::ffi::c_void;

use crate::event::Kind;
use crate::preload::choose::call::{Begun, Block, Call};
use crate::preload::events::record;
use crate::preload::platform::thread_state;

/// Functions that record calls. `version` comes first because everything else may differ between versions.
#[repr(C)]
pub(crate) struct Functions {
    pub(crate) version: usize,
    /// Records a call, given the number of its [`Kind`], the size, address, old address, and extra value.
    pub(crate) call: extern "C" fn(u8, usize, usize, usize, usize),
    /// Records the start of a realloc. Returns a value for [`Functions::realloc_ends`].
    pub(crate) realloc_begins: extern "C" fn(*mut c_void, usize) -> Begun,
    /// Records the end of a realloc.
    pub(crate) realloc_ends: extern "C" fn(*mut c_void, *mut c_void, usize, Begun),
    /// Marks calls made below this stack pointer as internal. Returns a value for [`Functions::leave`].
    pub(crate) enter: extern "C" fn(usize) -> usize,
    pub(crate) leave: extern "C" fn(usize),
}

/// The version of [`Functions`].
pub(crate) const VERSION: usize = 1;

pub(crate) static FUNCTIONS: Functions =
    Functions { version: VERSION, call, realloc_begins, realloc_ends, enter, leave };

extern "C" fn call(kind: u8, size: usize, address: usize, old: usize, extra: usize) {
    let numbers = Call { size, address, old, extra, ..Call::default() };
    // Kinds are constants here, so each call is as fast as the hook of its function.
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
    record::realloc_ends(thread_state::current(), Kind::Realloc, call, Block::Other, begun);
}

extern "C" fn enter(stack_pointer: usize) -> usize {
    thread_state::enter(stack_pointer)
}

extern "C" fn leave(before: usize) {
    thread_state::leave(before);
}

/// Returns the functions of the preloaded object to an allocator in the program.
#[cfg(feature = "preload")]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_functions() -> *const Functions {
    &raw const FUNCTIONS
}
