//! Addresses of the stacks created by the kernel and the C library, for the main thread and threads from
//! `pthread_create`. All memory above the stack pointer, up to the stack's end, can be read for as long as the thread
//! runs.
//!
//! Any other stack pointer belongs to a coroutine, a signal handler, or a thread that the C library created itself.
//! Nothing is known about such a stack, except what the kernel reports about individual pages.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::local_atomic::Interruptible;

const PAGE: usize = 4096;
/// The minimum address space that the kernel reserves for the main thread's stack, regardless of its limit.
const MAIN_MOST: usize = 128 << 20;

/// The main thread's stack.
static MAIN: StackPlace = StackPlace([const { AtomicUsize::new(0) }; 2]);

/// Records the location of the main thread's stack, once.
pub(crate) fn note_main() {
    if MAIN.0[1].load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a call that reads the data that the kernel passed to the program; a place for the result.
    let (name, known) = unsafe {
        let name = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        (name, libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) == 0)
    };
    if name.is_null() || !known {
        return;
    }
    // SAFETY: the name of the program's file, which the kernel puts at the end of the stack, before a word of zeros.
    let end = name as usize + unsafe { CStr::from_ptr(name) }.to_bytes_with_nul().len() + size_of::<usize>();
    // A kernel emulation may have placed the name elsewhere.
    if end.is_multiple_of(PAGE) {
        MAIN.0[1].store(end, Ordering::Relaxed);
        MAIN.0[0].store(end.saturating_sub(main_bytes(limit.rlim_cur)), Ordering::Release);
    }
}

/// Records a new limit for the main thread's stack. The usable size never grows beyond its previous value.
pub(crate) fn limit_main(limit: libc::rlim_t) {
    let from = MAIN.0[1].load(Ordering::Relaxed).saturating_sub(main_bytes(limit));
    MAIN.0[0].fetch_max(from, Ordering::Relaxed);
}

fn main_bytes(limit: libc::rlim_t) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).min(MAIN_MOST)
}

/// The first address of a stack and the address after its last byte, or zeros until they are known.
#[derive(Default)]
pub(crate) struct StackPlace([AtomicUsize; 2]);

/// Whatever the order of the two writes, a handler in between finds no stack.
impl Interruptible for StackPlace {}

impl StackPlace {
    /// Records the size of the calling thread's stack, which `pthread_create` created. The size must not be 0, and
    /// includes inaccessible pages.
    pub(crate) fn note(&self, bytes: usize) {
        // The C library's description of the thread is at the end of its stack: at most one page of it is above this
        // address.
        let end = thread_pointer();
        self.0[0].store(end.saturating_sub(bytes) + 2 * PAGE, Ordering::Relaxed);
        self.0[1].store(end, Ordering::Relaxed);
    }

    fn around(&self, stack_pointer: usize) -> Option<KnownStack> {
        let (from, end) = (self.0[0].load(Ordering::Acquire), self.0[1].load(Ordering::Relaxed));
        (from != 0 && (from..end).contains(&stack_pointer)).then_some(KnownStack { from, end })
    }
}

/// Returns the address of the C library's description of the calling thread.
#[allow(clippy::cast_possible_truncation, reason = "the type is an address here and a pointer in other C libraries")]
fn thread_pointer() -> usize {
    // SAFETY: cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// A stack with a known location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownStack {
    /// The lowest address to which the stack may grow.
    pub(crate) from: usize,
    pub(crate) end: usize,
}

/// Returns the stack that contains a stack pointer, if its location is known: the thread's `own` stack, or the main
/// thread's stack.
pub(crate) fn around(stack_pointer: usize, own: &StackPlace) -> Option<KnownStack> {
    own.around(stack_pointer).or_else(|| MAIN.around(stack_pointer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the main thread's stack matches the kernel's own list.
    #[test]
    fn the_main_thread_s_stack() {
        note_main();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
        let (from, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [from, end] = [from, end].map(|number| usize::from_str_radix(number, 16).unwrap());
        let own = StackPlace([const { AtomicUsize::new(0) }; 2]);
        let known = around(end - 100, &own).unwrap();
        assert_eq!((known.end, known.from <= from), (end, true), "{line}");
        assert_eq!(around(known.end, &own), None);
        // This thread belongs to a test.
        let here = core::ptr::from_ref(&own) as usize;
        assert_eq!(around(here, &own), None);
        own.note(64 << 10);
        assert_eq!(around(here, &own).map(|stack| stack.end > here), Some(true));
        limit_main(100 << 10);
        assert_eq!(around(end - 100, &own).unwrap().from, end - (100 << 10));
        limit_main(1 << 30);
        assert_eq!(around(end - 100, &own).unwrap().from, end - (100 << 10));
    }
}
