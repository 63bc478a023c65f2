//! Threads: their numbers, their beginnings and ends.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::attach::session;
use super::real::{self, Routine};
use super::thread_state::{below, mine};
use super::{arena, log};
use crate::event::{Flags, Kind};

/// Whether this process ever had a second thread. While it has not, no other thread can be given a
/// block in the middle of a realloc.
static SEVERAL: AtomicBool = AtomicBool::new(false);

/// Whether this process ever had a second thread.
#[inline]
pub(crate) fn are_several() -> bool {
    SEVERAL.load(Ordering::Relaxed)
}

/// Notes that there is a second thread.
pub(crate) fn there_are_several() {
    SEVERAL.store(true, Ordering::Relaxed);
}

/// The key whose destructor tells that a thread ends, plus 1; 0 before there is one.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Makes the key.
pub(crate) fn watch_for_ends() {
    let mut key = 0;
    // SAFETY: a place for the key, and a destructor that touches nothing of ours that could be gone.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0 {
        KEY.store(key.wrapping_add(1), Ordering::Release);
    }
}

/// Asks for [`ends`] at the end of the calling thread; `false` if that cannot be had.
fn watch_this_one() -> bool {
    match KEY.load(Ordering::Acquire).checked_sub(1) {
        None => false,
        // SAFETY: a key that was made. The value is only ever compared with null.
        Some(key) => below(|| unsafe { libc::pthread_setspecific(key, (&raw const KEY).cast()) == 0 }),
    }
}

/// Other keys' destructors free memory, in an order that nobody knows: so this one asks to be called
/// again as long as the system promises to (4 rounds), and logs the end in the last.
unsafe extern "C" fn ends(_: *mut c_void) {
    const ROUNDS: u32 = 4;
    let round = mine().rounds.get() + 1;
    mine().rounds.set(round);
    if round < ROUNDS && watch_this_one() {
        return;
    }
    log_end();
}

fn log_end() {
    if let Some(session) = session() {
        log::thread_event(session, Kind::ThreadEnd, 0, Flags::default());
    }
}

/// What the new thread has to know.
struct Start {
    routine: Routine,
    argument: *mut c_void,
    id: u32,
    creator: u32,
}

/// What a new thread is to run: in two registers, by every C calling convention here.
#[repr(C)]
struct Program {
    routine: Routine,
    argument: *mut c_void,
}

/// The new thread's own work for us, before the program's.
extern "C" fn begins(start: *mut c_void) -> Program {
    // SAFETY: the block that `pthread_create` below filled for this thread alone.
    let Start { routine, argument, id, creator } = unsafe { start.cast::<Start>().read() };
    release(start);
    mine().id.set(id);
    watch_this_one();
    if let Some(session) = session() {
        log::thread_event(session, Kind::ThreadStart, creator, Flags::default());
    }
    Program { routine, argument }
}

// The first function of a new thread: lets `begins` do its work, and jumps to the program's routine.
// A jump, so that no frame of ours is on the stack when `pthread_exit` or a cancellation unwinds
// it, which Rust code must not be part of.
#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(
    ".text",
    ".hidden hatf_begin",
    ".globl hatf_begin",
    ".type hatf_begin,%function",
    ".balign 16",
    "hatf_begin:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begins}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "mov rdi, rdx",
    "jmp rax",
    ".cfi_endproc",
    ".size hatf_begin, . - hatf_begin",
    begins = sym begins,
);

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(
    ".text",
    ".hidden hatf_begin",
    ".globl hatf_begin",
    ".type hatf_begin,%function",
    ".balign 16",
    "hatf_begin:",
    ".cfi_startproc",
    "stp x29, x30, [sp, #-16]!",
    ".cfi_adjust_cfa_offset 16",
    "bl {begins}",
    "ldp x29, x30, [sp], #16",
    ".cfi_adjust_cfa_offset -16",
    "mov x9, x0",
    "mov x0, x1",
    "br x9",
    ".cfi_endproc",
    ".size hatf_begin, . - hatf_begin",
    begins = sym begins,
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn hatf_begin(start: *mut c_void) -> *mut c_void;
}

/// The same on other machines, where a thread must return from its routine.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe extern "C" fn hatf_begin(start: *mut c_void) -> *mut c_void {
    let Program { routine, argument } = begins(start);
    // SAFETY: the program's routine, with the argument it gave for it.
    unsafe { routine(argument) }
}

fn release(block: *mut c_void) {
    if let (false, Some(free)) = (arena::owns(block), real::free()) {
        // SAFETY: a block of the real malloc, freed once.
        below(|| unsafe { free(block) });
    }
}

/// `pthread_create` that numbers the thread. The block it passes to it is not recorded; what the real
/// function allocates is.
///
/// # Safety
/// As the function of this name.
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
    there_are_several();
    let creator = log::thread(session);
    // SAFETY: any size may be asked for.
    let block = below(|| unsafe { malloc(size_of::<Start>()) });
    if block.is_null() {
        return pass_on(routine, argument);
    }
    let start = Start { routine, argument, id: log::next_id(session), creator };
    // SAFETY: a fresh block of that size, aligned for anything.
    unsafe { block.cast::<Start>().write(start) };
    let result = pass_on(hatf_begin, block);
    if result != 0 {
        release(block);
    }
    result
}
