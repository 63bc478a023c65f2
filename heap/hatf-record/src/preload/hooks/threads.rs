//! Threads: records their starts and names.

use crate::conditions::Conditions;
use crate::event::{Flags, Kind};
use crate::preload::choose::by_thread;
use crate::preload::elf::real::{self, ARENA, Routine};
use crate::preload::platform::thread_key;
use crate::preload::platform::thread_state::{self, nested};
use crate::preload::session::begin::session;
use crate::preload::spool::push;
use core::ffi::{CStr, c_char, c_int, c_void};

/// The argument of a new thread.
struct Start {
    routine: Routine,
    argument: *mut c_void,
    id: u32,
    creator: u32,
    /// The stack size in bytes, or 0 if unknown.
    stack_bytes: usize,
}

/// The routine to be run by a new thread. It is returned in two registers by all C calling conventions used here.
#[repr(C)]
struct Entry {
    routine: Routine,
    argument: *mut c_void,
}

/// Records the start of a new thread before the program's routine runs.
extern "C" fn on_start(start: *mut c_void) -> Entry {
    // SAFETY: the block that `pthread_create` below filled for this thread alone.
    let Start { routine, argument, id, creator, stack_bytes } = unsafe { start.cast::<Start>().read() };
    free_block(start);
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    if stack_bytes > 0 {
        thread_state::current().stack.note(stack_bytes);
    }
    #[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
    let _ = stack_bytes;
    let session = session();
    if let Some(session) = session {
        thread_state::current().join(session.number);
    }
    thread_state::current().id.set(id);
    thread_key::arm();
    if let Some(session) = session {
        push::thread_event(session, Kind::ThreadStart, creator, Flags::default());
    }
    Entry { routine, argument }
}

// The first function of a new thread, which calls `on_start` and jumps to the program's routine. It uses a jump so that
// no frame of ours is on the stack when `pthread_exit` or a cancellation unwinds it: Rust code must not take part in
// unwinding.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".text",
    ".hidden hatf_thread_start",
    ".globl hatf_thread_start",
    ".type hatf_thread_start,%function",
    ".balign 16",
    "hatf_thread_start:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {on_start}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "mov rdi, rdx",
    "jmp rax",
    ".cfi_endproc",
    ".size hatf_thread_start, . - hatf_thread_start",
    on_start = sym on_start,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".text",
    ".hidden hatf_thread_start",
    ".globl hatf_thread_start",
    ".type hatf_thread_start,%function",
    ".balign 16",
    "hatf_thread_start:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_adjust_cfa_offset 16",
    "bl {on_start}",
    "ldp x29, x30, [sp], #16",
    ".cfi_adjust_cfa_offset -16",
    "mov x9, x0",
    "mov x0, x1",
    "br x9",
    ".cfi_endproc",
    ".size hatf_thread_start, . - hatf_thread_start",
    on_start = sym on_start,
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn hatf_thread_start(start: *mut c_void) -> *mut c_void;
}

/// Starts a thread on other architectures, where a thread must return from its routine.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe extern "C" fn hatf_thread_start(start: *mut c_void) -> *mut c_void {
    let Entry { routine, argument } = on_start(start);
    // SAFETY: the program's routine, with the argument that the program supplied.
    unsafe { routine(argument) }
}

fn free_block(block: *mut c_void) {
    if let (false, Some(free)) = (ARENA.owns(block), real::free()) {
        // SAFETY: a block from the real malloc, freed once.
        nested(|| unsafe { free(block) });
    }
}

/// Returns the stack size of a thread with these attributes, or 0 if unknown.
///
/// # Safety
/// `attributes` must be null or the attributes of a thread.
unsafe fn stack_bytes(attributes: *const libc::pthread_attr_t) -> usize {
    let bytes_of = |attributes: *const libc::pthread_attr_t| {
        let mut bytes = 0;
        // SAFETY: attributes, which are only read, and a place for the result.
        if unsafe { libc::pthread_attr_getstacksize(attributes, &raw mut bytes) } == 0 { bytes } else { 0 }
    };
    if !attributes.is_null() {
        return bytes_of(attributes);
    }
    let Some(default) = real::pthread_getattr_default_np() else { return 0 };
    let mut attributes = core::mem::MaybeUninit::uninit();
    // SAFETY: room for the attributes, which are initialized, and destroyed again, if the call succeeds.
    nested(|| unsafe {
        if default(attributes.as_mut_ptr()) != 0 {
            return 0;
        }
        let bytes = bytes_of(attributes.as_ptr());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        bytes
    })
}

/// `pthread_create`, extended to number the thread. The block passed to the thread is not recorded, but allocations by
/// the real function are.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_create(
    thread: *mut libc::pthread_t,
    attributes: *const libc::pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    if !real::known() {
        return libc::EAGAIN;
    }
    let (Some(create), Some(malloc)) = (real::pthread_create(), real::malloc()) else {
        return libc::EAGAIN;
    };
    let pass_on = |routine, argument| {
        // SAFETY: the caller's arguments, or our routine with a block that it expects.
        unsafe { create(thread, attributes, routine, argument) }
    };
    let Some(session) = session() else { return pass_on(routine, argument) };
    session.set_multithreaded();
    let creator = push::thread_number(session);
    // SAFETY: any size can be requested.
    let block = nested(|| unsafe { malloc(size_of::<Start>()) });
    if block.is_null() {
        return pass_on(routine, argument);
    }
    // SAFETY: the caller's attributes.
    let stack_bytes = if session.conditions().has(Conditions::STACKS) { unsafe { stack_bytes(attributes) } } else { 0 };
    let start = Start { routine, argument, id: push::new_thread_number(session), creator, stack_bytes };
    // SAFETY: a fresh block of that size, aligned for anything.
    unsafe { block.cast::<Start>().write(start) };
    let result = pass_on(hatf_thread_start, block);
    if result != 0 {
        free_block(block);
    }
    result
}

/// `pthread_setname_np`, extended to record the name.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_setname_np(thread: libc::pthread_t, name: *const c_char) -> c_int {
    let function = if real::known() { real::pthread_setname_np() } else { None };
    let Some(set) = function else { return libc::ENOSYS };
    // SAFETY: the caller's arguments.
    let result = unsafe { set(thread, name) };
    if result != 0 {
        return result;
    }
    by_thread::names_changed();
    if let Some(session) = session() {
        #[allow(clippy::unnecessary_cast, reason = "the type is a pointer in other C libraries")]
        let other = if thread as u64 == push::this_thread() { 0 } else { thread as u64 };
        // SAFETY: it was a name, of a few bytes.
        let name = unsafe { CStr::from_ptr(name) };
        push::thread_name(session, name.to_bytes(), other);
    }
    result
}
