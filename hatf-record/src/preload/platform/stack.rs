//! Addresses of the stacks that the kernel and the C library created, for the main thread and threads of `pthread_create`. All that is above the
//! stack pointer there can be read, up to the stack's end, for as long as the thread runs.
//!
//! A stack pointer elsewhere is that of a coroutine, of a signal handler, or of a thread that the C library created itself. Of such a stack nothing is
//! known but what the kernel says of each page.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::local_atomic::Interruptible;

const PAGE: usize = 4096;
/// Addresses below the end of the main thread's stack that the kernel leaves free for it, at least, whatever its limit is.
const MAIN_MOST: usize = 128 << 20;

/// The main thread's stack.
static MAIN: StackPlace = StackPlace([const { AtomicUsize::new(0) }; 2]);

/// Notes where the main thread's stack lies, once.
pub(crate) fn note_main() {
    if MAIN.0[1].load(Ordering::Relaxed) != 0 {
        return;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a call that reads what the kernel gave the program; a place for the answer.
    let (name, known) = unsafe {
        let name = libc::getauxval(libc::AT_EXECFN) as *const libc::c_char;
        (name, libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) == 0)
    };
    if name.is_null() || !known {
        return;
    }
    // SAFETY: the name of the program's file, which the kernel puts at the end of the stack, before a word of zeros.
    let end = name as usize + unsafe { CStr::from_ptr(name) }.to_bytes_with_nul().len() + size_of::<usize>();
    // Something that only looks like a kernel may have put it elsewhere.
    if end.is_multiple_of(PAGE) {
        MAIN.0[1].store(end, Ordering::Relaxed);
        MAIN.0[0].store(end.saturating_sub(main_bytes(limit.rlim_cur)), Ordering::Release);
    }
}

/// Notes that the main thread's stack may take this many bytes from now on. It is not counted on more than there could be before.
pub(crate) fn limit_main(limit: libc::rlim_t) {
    let from = MAIN.0[1].load(Ordering::Relaxed).saturating_sub(main_bytes(limit));
    MAIN.0[0].fetch_max(from, Ordering::Relaxed);
}

fn main_bytes(limit: libc::rlim_t) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX).min(MAIN_MOST)
}

/// The first address of a stack, and the one after its last; zeros before they are known.
#[derive(Default)]
pub(crate) struct StackPlace([AtomicUsize; 2]);

/// In whichever order the two are written, a handler in between finds no stack.
impl Interruptible for StackPlace {}

impl StackPlace {
    /// Notes the size of the calling thread's stack, which `pthread_create` made: a number that is not 0 and includes pages that may not be touched.
    pub(crate) fn note(&self, bytes: usize) {
        // The C library's description of the thread lies at the end of its stack: a page of it, at most, above this address.
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
#[allow(clippy::cast_possible_truncation, reason = "an address; a pointer in other C libraries")]
fn thread_pointer() -> usize {
    // SAFETY: cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// A stack with a known place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownStack {
    /// The lowest address to which it may grow.
    pub(crate) from: usize,
    pub(crate) end: usize,
}

/// Returns the stack that a stack pointer is in, if its place is known: the thread's `own`, or the main thread's.
pub(crate) fn around(stack_pointer: usize, own: &StackPlace) -> Option<KnownStack> {
    own.around(stack_pointer).or_else(|| MAIN.around(stack_pointer))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own list says where the main thread's stack ends.
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
        // This is a test's thread.
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
