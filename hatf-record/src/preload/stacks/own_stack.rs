//! A stack of a thread's own, for work that takes kilobytes: the program's may be that of a coroutine, or of a signal handler, with room for
//! little more than its own calls.

use core::arch::asm;
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::mem::MaybeUninit;

use crate::preload::platform::confined::is_confined;
use crate::preload::platform::thread_state::{known_stack, stack_pointer};

/// Bytes of the stack.
const BYTES: usize = 16 * 1024;

/// The stack; zero when the thread begins.
#[repr(C, align(16))]
pub(crate) struct OwnStack {
    bytes: UnsafeCell<[MaybeUninit<u8>; BYTES]>,
    busy: Cell<bool>,
}

impl OwnStack {
    /// Runs `work` on this stack, with all signals blocked: a handler might need more room than there is. If the stack is in use already, or
    /// signals cannot be blocked, `work` runs on the caller's stack. Returns the result of `work`.
    ///
    /// In a program that may have a filter for its system calls, signals must not be blocked. There `work` runs on the caller's stack if that is known to
    /// have the room, and otherwise not at all: `None`.
    #[cold]
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.busy.get() {
            return Some(work());
        }
        if is_confined() {
            return known_stack().is_some_and(|stack| stack_pointer() - stack.from >= BYTES).then(work);
        }
        let Some(mask) = set_mask(u64::MAX) else { return Some(work()) };
        self.busy.set(true);
        let mut job = Job { work: Some(work), result: None };
        // SAFETY: `busy` says that nobody is on the stack, and it is this thread's. `call` is given the job that it is for, which stays until
        // the call is over. It does not unwind: panics abort.
        unsafe {
            let top = self.bytes.get().cast::<u8>().add(BYTES);
            on_stack(top, call_of(&job), (&raw mut job).cast());
        }
        self.busy.set(false);
        set_mask(mask);
        job.result
    }
}

/// Work, and what it returned.
struct Job<W, R> {
    work: Option<W>,
    result: Option<R>,
}

/// Returns the function that does such work.
fn call_of<W: FnOnce() -> R, R>(_: &Job<W, R>) -> unsafe extern "C" fn(*mut c_void) {
    unsafe extern "C" fn call<W: FnOnce() -> R, R>(job: *mut c_void) {
        // SAFETY: the job of `run`, whose caller waits.
        let job = unsafe { &mut *job.cast::<Job<W, R>>() };
        job.result = job.work.take().map(|work| work());
    }
    call::<W, R>
}

/// Calls a function on a stack that ends at `top`.
///
/// # Safety
/// Of the stack nobody uses a byte. The function takes `argument`, and returns.
unsafe fn on_stack(top: *mut u8, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: the stack pointer is aligned at the call, and what it was is in a register that the function keeps.
    unsafe {
        asm!(
            "mov r12, rsp",
            "mov rsp, rsi",
            "call rdx",
            "mov rsp, r12",
            in("rdi") argument,
            in("rsi") top,
            in("rdx") function,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Sets the blocked signals of the thread, and returns those before. `None`: it cannot. Keeps `errno`.
fn set_mask(mask: u64) -> Option<u64> {
    let mut before = 0_u64;
    // SAFETY: `errno` of this thread, and a system call with two sets of signals and their size.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let done = libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &raw const mask,
            &raw mut before,
            size_of::<u64>(),
        );
        *errno = kept;
        (done == 0).then_some(before)
    }
}
