//! The state of each thread, in the initial-exec model of thread-local storage.
//!
//! Rust's own `thread_local!` in a shared object asks `__tls_get_addr` for the address. That function may
//! allocate (it grows a thread's table of modules after a `dlopen`), and would come back here. With
//! the initial-exec model the address is the thread pointer plus a constant that the dynamic linker
//! wrote when the program was loaded: two instructions, no call. A preloaded object always has
//! room for it in the static block.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};

/// One per thread, all zero when the thread begins.
#[repr(C)]
pub(crate) struct ThreadState {
    /// Hooks on the stack that called a real function: only calls at depth 0 are the program's own.
    pub(crate) depth: Cell<u32>,
    /// The number of the thread; 0 before it has one.
    pub(crate) id: Cell<u32>,
    /// Rounds of key destructors seen when the thread ends.
    pub(crate) exit_rounds: Cell<u32>,
    _pad: u32,
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
core::arch::global_asm!(
    ".section .tbss.hatf_thread_state,\"awT\",%nobits",
    ".balign 16",
    ".hidden hatf_thread_state",
    ".globl hatf_thread_state",
    ".type hatf_thread_state,%object",
    ".size hatf_thread_state,16",
    "hatf_thread_state:",
    ".zero 16",
    ".text",
);

/// Returns the calling thread's state.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    let address: *const ThreadState;
    // SAFETY: reads the thread pointer and the offset that the linker computed for our 16 bytes,
    // and changes no memory and no flag but those of the addition. The block lives as long as the
    // thread, and the reference does not leave it.
    unsafe {
        core::arch::asm!(
            "mov {a}, qword ptr fs:[0]",
            "add {a}, qword ptr [rip + hatf_thread_state@GOTTPOFF]",
            a = out(reg) address,
            options(nostack, readonly, pure),
        );
        &*address
    }
}

/// Returns the calling thread's state.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    let address: *const ThreadState;
    // SAFETY: as on x86-64.
    unsafe {
        core::arch::asm!(
            "adrp {o}, :gottprel:hatf_thread_state",
            "ldr {o}, [{o}, :gottprel_lo12:hatf_thread_state]",
            "mrs {a}, tpidr_el0",
            "add {a}, {a}, {o}",
            a = out(reg) address,
            o = out(reg) _,
            options(nostack, readonly, pure),
        );
        &*address
    }
}

/// Returns the calling thread's state. On other machines than the two above it is the language's own:
/// correct, except for a program that allocates between a `dlopen` of a module with thread-local
/// storage and the growth of its thread's table.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    thread_local! {
        static STATE: ThreadState = const {
            ThreadState { depth: Cell::new(0), id: Cell::new(0), exit_rounds: Cell::new(0), _pad: 0 }
        };
    }
    // SAFETY: the block has no destructor and lives as long as the thread; the reference does not
    // leave it.
    STATE.with(|state| unsafe { &*core::ptr::from_ref(state) })
}

/// Runs `f` one level deeper, where allocations are not the program's own.
#[inline]
pub(crate) fn nested<T>(f: impl FnOnce() -> T) -> T {
    let state = current();
    state.depth.set(state.depth.get() + 1);
    let result = f();
    state.depth.set(state.depth.get() - 1);
    result
}

/// Returns whether the call at hand is the program's own.
#[inline]
pub(crate) fn is_outermost() -> bool {
    current().depth.get() == 0
}

/// Whether this process ever had a second thread. While it has not, no other thread can be given a block in the middle of
/// a realloc.
static MULTITHREADED: AtomicBool = AtomicBool::new(false);

/// Returns whether this process ever had a second thread.
#[inline]
pub(crate) fn is_multithreaded() -> bool {
    MULTITHREADED.load(Ordering::Relaxed)
}

/// Notes that there is a second thread.
pub(crate) fn set_multithreaded() {
    MULTITHREADED.store(true, Ordering::Relaxed);
}
