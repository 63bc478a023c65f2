//! A separate stack in each thread, on which the recorder does work that needs several kilobytes. The program may be
//! running on the small stack of a coroutine or a signal handler, with little room to spare.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

use crate::local_atomic::{Interruptible, Local, in_order, interruptible};
use crate::preload::platform::confined::is_confined;
use crate::preload::platform::own_stack::{MappedStack, run_on, set_mask};
use crate::preload::platform::thread_state::{known_stack, stack_pointer};

/// Bytes in the stack.
const BYTES: usize = 16 * 1024;

/// The bytes of the stack, which only the work running on it uses.
#[repr(C, align(16))]
struct Bytes(UnsafeCell<[MaybeUninit<u8>; BYTES]>);

impl Interruptible for Bytes {}

interruptible! {
    /// The stack, which is zero when the thread starts.
    #[repr(C)]
    pub(crate) struct OwnStack {
        bytes: Bytes,
        busy: Local<bool>,
    }
}

/// Runs `work` on the caller's stack if there is no other stack. This is a separate function so that a test of the
/// machine code finds it.
#[cold]
#[inline(never)]
pub(crate) fn on_callers_stack<R>(work: impl FnOnce() -> R) -> R {
    work()
}

/// Runs `work` on the caller's stack if that stack is known to have room. Otherwise returns `None` without running it.
fn on_large_stack<R>(work: impl FnOnce() -> R) -> Option<R> {
    let has_room = known_stack().is_some_and(|stack| stack_pointer() - stack.from >= BYTES);
    has_room.then(|| on_callers_stack(work))
}

/// Runs `work` using [`OwnStack::run`], or on a stack mapped for this purpose if the thread has no own stack, because
/// its end may have been recorded.
pub(crate) fn apart<R>(own: Option<&OwnStack>, work: impl FnOnce() -> R) -> Option<R> {
    match own {
        Some(own) => own.run(work),
        // Blocking signals could violate the program's system call filter.
        None if is_confined() => on_large_stack(work),
        None => match MappedStack::new() {
            Some(stack) => stack.run(work),
            None => Some(on_callers_stack(work)),
        },
    }
}

impl OwnStack {
    /// Runs `work` on this stack with all signals blocked, because a handler might need more room than is available. If
    /// the stack is already in use, or signals cannot be blocked, runs `work` on the caller's stack. Returns the result
    /// of `work`.
    ///
    /// In a program that may have a system call filter, signals must not be blocked. There, `work` runs on the caller's
    /// stack if that stack is known to have room; otherwise returns `None` without running it.
    #[cold]
    pub(crate) fn run<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if self.busy.get() {
            return Some(on_callers_stack(work));
        }
        if is_confined() {
            return on_large_stack(work);
        }
        let Some(mask) = set_mask(u64::MAX) else { return Some(on_callers_stack(work)) };
        self.busy.set(true);
        in_order();
        // SAFETY: `busy` ensures that nobody is on the stack, and it is this thread's. It is sufficient for the work,
        // which does not unwind: panics abort.
        let result = unsafe { run_on(self.bytes.0.get().cast::<u8>().add(BYTES), work) };
        in_order();
        self.busy.set(false);
        set_mask(mask);
        result
    }
}
