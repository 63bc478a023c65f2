//! Stacks for work that needs several kilobytes. The program may be running on the stack of a coroutine, a small thread
//! or a signal handler, which has little room beyond the program's own calls.

use core::ffi::c_void;

use super::memory;

/// Bytes in a mapped stack. The kernel allocates only pages that are touched.
const BYTES: usize = 256 * 1024;
/// Inaccessible bytes below the stack: work that exceeds the stack crashes the process instead of changing other
/// memory.
const GUARD: usize = 4096;

/// A mapped stack.
pub(crate) struct MappedStack {
    memory: *mut c_void,
}

impl MappedStack {
    /// Maps a stack. Returns `None` if there is no memory. Preserves `errno`.
    pub(crate) fn new() -> Option<Self> {
        let memory = memory::pages(GUARD + BYTES)?;
        // SAFETY: the first of the pages mapped above; `errno` of this thread.
        unsafe {
            let errno = *libc::__errno_location();
            libc::mprotect(memory, GUARD, libc::PROT_NONE);
            *libc::__errno_location() = errno;
        }
        Some(Self { memory })
    }

    /// Runs `work` on this stack. Blocks all signals if possible, because a handler may need more room than is
    /// available.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> Option<R> {
        let mask = set_mask(u64::MAX);
        // SAFETY: mapped above, and only the stack of the work.
        let result = unsafe { run_on(self.memory.byte_add(GUARD + BYTES).cast(), work) };
        if let Some(mask) = mask {
            set_mask(mask);
        }
        result
    }
}

impl Drop for MappedStack {
    fn drop(&mut self) {
        // SAFETY: the pages mapped by `new`, on which nothing runs. `errno` of this thread.
        unsafe {
            let errno = *libc::__errno_location();
            memory::unmap(self.memory, GUARD + BYTES);
            *libc::__errno_location() = errno;
        }
    }
}

/// A piece of work and its result.
struct Job<W, R> {
    work: Option<W>,
    result: Option<R>,
}

/// Runs `work` on the stack that ends at `top` and returns its result.
///
/// # Safety
/// `top` must be a multiple of 16. Nobody else may use the bytes below it. They must be sufficient for the work, which
/// must not unwind.
pub(crate) unsafe fn run_on<W: FnOnce() -> R, R>(top: *mut u8, work: W) -> Option<R> {
    unsafe extern "C" fn call<W: FnOnce() -> R, R>(job: *mut c_void) {
        // SAFETY: the job below, whose owner waits.
        let job = unsafe { &mut *job.cast::<Job<W, R>>() };
        job.result = job.work.take().map(|work| work());
    }
    let mut job = Job { work: Some(work), result: None };
    // SAFETY: by the caller's promise. The function gets the job that it is meant for, which stays until the call is
    // over.
    unsafe { on_stack(top, call::<W, R>, (&raw mut job).cast()) };
    job.result
}

/// Calls a function on a stack that ends at `top`.
///
/// # Safety
/// Nobody else may use any byte of the stack. The function must accept `argument`, and must return.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
unsafe fn on_stack(top: *mut u8, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: the stack pointer is aligned at the call, and its previous value is in a register that the function
    // preserves.
    unsafe {
        core::arch::asm!(
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

/// Does the same as on x86-64.
///
/// # Safety
/// The requirements are the same as on x86-64.
#[cfg(target_arch = "aarch64")]
#[inline(never)]
unsafe fn on_stack(top: *mut u8, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: as on x86-64.
    unsafe {
        core::arch::asm!(
            "mov x20, sp",
            "mov sp, x1",
            "blr x2",
            "mov sp, x20",
            in("x0") argument,
            in("x1") top,
            in("x2") function,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

/// Calls the function on the caller's stack on other architectures.
///
/// # Safety
/// The requirements are the same as on x86-64.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
unsafe fn on_stack(_: *mut u8, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: by the caller's promise.
    unsafe { function(argument) }
}

/// Sets the blocked signals of the thread. Returns the previously blocked signals, or `None` on failure. Preserves
/// `errno`.
pub(crate) fn set_mask(mask: u64) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use core::ptr::null_mut;

    #[test]
    fn work_on_a_mapped_stack() {
        let here = 0_u8;
        let stack = MappedStack::new().unwrap();
        let memory = stack.memory as usize;
        let (mask, place, sum) = stack
            .run(|| {
                let bytes = core::hint::black_box([1_u8; 100_000]);
                // SAFETY: only queries the mask.
                let mask = unsafe {
                    let mut mask = 0_u64;
                    libc::syscall(libc::SYS_rt_sigprocmask, 0, null_mut::<u64>(), &raw mut mask, 8);
                    mask
                };
                (mask, bytes.as_ptr() as usize, bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>())
            })
            .unwrap();
        assert_eq!(sum, 100_000);
        assert!(mask.count_ones() > 60, "{mask:x}");
        assert_eq!(set_mask(0), Some(0));
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert!((memory..memory + GUARD + BYTES).contains(&place));
            assert!(!(memory..memory + GUARD + BYTES).contains(&(core::ptr::from_ref(&here) as usize)));
        }
    }
}
