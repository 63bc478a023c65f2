//! The state of each thread, in thread-local storage with the initial-exec model.
//!
//! Rust's own `thread_local!` in a shared object calls `__tls_get_addr` for the address. That function may allocate (it
//! grows a thread's table of modules after a `dlopen`) and thereby call this code again. With the initial-exec model,
//! the address is the thread pointer plus a constant that the dynamic linker stored when the program was loaded: two
//! instructions, no call. A preloaded object always has room for it in the static block.

use core::ops::Range;

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::stack::{self, KnownStack, StackPlace};
use crate::local_atomic::{Local, LocalAtomic, in_order, interruptible};
use crate::producer::Producer;

interruptible! {
    /// The state of one thread, which is zero when the thread starts.
    #[derive(Default)]
    #[repr(C)]
    pub(crate) struct ThreadState {
        /// The stack pointer of the outermost hook that is calling a real function, or 0 if there is none.
        outer: Local<usize>,
        /// The number of the thread, or 0 if it has not received one yet.
        pub(crate) id: Local<u32>,
        /// The number of rounds of key destructors that have run at the end of the thread.
        pub(crate) exit_rounds: Local<u32>,
        /// The number of bytes to allocate until the next selected block: see `choose/sample.rs`.
        pub(crate) until_sample: Local<i64>,
        /// The state of the random number generator, or 0 before its first use.
        pub(crate) random: Local<u64>,
        /// Whether `choose/by_thread.rs` selects this thread's blocks for recording, combined with a version number.
        pub(crate) is_named: Local<u32>,
        /// 1 plus the number of the CPU at the last call, or 0 if unknown.
        pub(crate) processor: Local<u32>,
        /// The chunk of the spool that receives the thread's events.
        pub(crate) producer: Producer,
        /// Stack pages known to be readable, packed by [`Readable`].
        readable: LocalAtomic,
        /// The last argument of [`readable_after`](Self::readable_after).
        changes: Local<u64>,
        /// The number of the session to which the thread belongs: see `Session::number`.
        session: Local<u32>,
        /// The number of the thread's calls, in a process that was already running when recording began.
        pub(crate) calls: Local<u32>,
        /// The nesting depth of `vfork` children running in the thread's place: see `hooks/vfork.rs`.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) vforks: Local<u32>,
        /// The location of the stack, if `pthread_create` created it.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) stack: StackPlace,
        /// The address of the pages managed by `kept_pages.rs`, or 0 if there are none.
        pub(crate) kept_pages: LocalAtomic,
        /// The number of active scans of blocks: see `accesses/scans.rs`.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) scans: Local<u32>,
        /// The address of the data in `stacks/memo.rs`, or 0 before the first walk. It is stored elsewhere because an
        /// object loaded at run time has little room for thread-local memory.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) memo: LocalAtomic,
    }
}

/// The round of key destructors in which a thread's end is recorded, which is the last round that the system
/// guarantees.
pub(crate) const LAST_ROUND: u32 = 4;

/// Bytes per page.
const PAGE: usize = 4096;

/// Bytes reserved by the assembler.
const BYTES: usize = size_of::<ThreadState>();
const _: () = assert!(align_of::<ThreadState>() <= 16);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
core::arch::global_asm!(
    ".section .tbss.hatf_thread_state,\"awT\",%nobits",
    ".balign 16",
    ".hidden hatf_thread_state",
    ".globl hatf_thread_state",
    ".type hatf_thread_state,%object",
    ".size hatf_thread_state,{bytes}",
    "hatf_thread_state:",
    ".zero {bytes}",
    ".text",
    bytes = const BYTES,
);

/// Returns the calling thread's state.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    let address: *const ThreadState;
    // SAFETY: reads the thread pointer and the offset that the linker computed for our block, and changes no memory and
    // no flag except those of the addition. Neither changes while a thread runs, so the compiler may reuse the result
    // within a function (`nomem`). The block lives as long as the thread, and the reference does not leave it.
    unsafe {
        core::arch::asm!(
            "mov {a}, qword ptr fs:[0]",
            "add {a}, qword ptr [rip + hatf_thread_state@GOTTPOFF]",
            a = out(reg) address,
            options(nostack, nomem, pure),
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
            options(nostack, nomem, pure),
        );
        &*address
    }
}

/// Returns the calling thread's state. On architectures other than the two above, it uses the language's own
/// thread-local storage. This is correct, except for a program that allocates between a `dlopen` of a module with
/// thread-local storage and the growth of its thread's table.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    thread_local! {
        static STATE: ThreadState = ThreadState::default();
    }
    // SAFETY: the block has no destructor and lives as long as the thread; the reference does not leave it.
    STATE.with(|state| unsafe { &*core::ptr::from_ref(state) })
}

/// Marks calls made below this stack pointer as not being the program's own. Returns the previous mark for [`leave`].
#[inline(always)]
pub(crate) fn enter(stack_pointer: usize) -> usize {
    let outer = &current().outer;
    let before = outer.get();
    if before == 0 || stack_pointer >= before {
        outer.set(stack_pointer);
    }
    before
}

/// Restores the mark that [`enter`] returned.
#[inline(always)]
pub(crate) fn leave(before: usize) {
    current().outer.set(before);
}

/// Runs `f` one nesting level deeper, where allocations are not the program's own.
#[inline(always)]
pub(crate) fn nested<T>(f: impl FnOnce() -> T) -> T {
    nested_in(current(), f)
}

/// Does the same as [`nested`] for a caller that has looked up the calling thread's state.
#[inline(always)]
pub(crate) fn nested_in<T>(state: &ThreadState, f: impl FnOnce() -> T) -> T {
    let before = state.outer.get();
    if before == 0 || stack_pointer() >= before {
        state.outer.set(stack_pointer());
    }
    let result = f();
    state.outer.set(before);
    result
}

/// Records that no hook is on the stack any more.
pub(crate) fn leave_hooks() {
    current().outer.set(0);
}

/// Returns whether the page that contains an address can be read. Returns `false` if the kernel must not be called,
/// because the program may have a system call filter. Preserves `errno`.
#[cold]
pub(crate) fn is_readable(address: usize) -> bool {
    #[cfg(feature = "preload")]
    if super::confined::is_confined() {
        return false;
    }
    let page = address & !(PAGE - 1);
    // SAFETY: `errno` of this thread, and a system call that reads a signal set from the address and then rejects the
    // invalid operation -1. If the address is not readable, the call fails with `EFAULT`.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let asked = libc::syscall(libc::SYS_rt_sigprocmask, -1, page, 0, 8);
        let is_there = asked == 0 || *errno != libc::EFAULT;
        *errno = before;
        is_there
    }
}

/// Pages known to be readable, packed in one word so that no handler sees the start of one range with the end of
/// another. The upper bits contain the number of the first page, and the lower bits contain the number of pages.
struct Readable;

impl Readable {
    /// Bits for the number of pages, enough for 2 GiB of stack. Together with a page number for 57-bit addresses, this
    /// makes 64 bits.
    const BITS: u32 = 19;
    const MOST: usize = (1 << Self::BITS) - 1;

    #[inline(always)]
    fn unpack(word: usize) -> Range<usize> {
        let from = (word >> Self::BITS) * PAGE;
        from..from + (word & Self::MOST) * PAGE
    }

    /// Packs a range, or the first pages of a range that is too long.
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    fn pack(range: Range<usize>) -> usize {
        ((range.start / PAGE) << Self::BITS) | (range.len() / PAGE).min(Self::MOST)
    }

    /// Packs a range extended by an adjacent page, or only the page if it does not adjoin the range.
    fn with_page(word: usize, page: usize) -> usize {
        let Range { start, end } = Self::unpack(word);
        let pages = word & Self::MOST;
        let (start, pages) = if pages > 0 && pages < Self::MOST && page == end {
            (start, pages + 1)
        } else if pages > 0 && pages < Self::MOST && page + PAGE == start {
            (page, pages + 1)
        } else {
            (page, 1)
        };
        ((start / PAGE) << Self::BITS) | pages
    }
}

impl ThreadState {
    /// Returns the part of the stack known to be readable. `changes` is the current number of memory changes; if it has
    /// increased, the result is empty.
    #[inline]
    pub(crate) fn readable_after(&self, changes: u64) -> Range<usize> {
        if self.changes.get() != changes {
            // The order matters: a signal handler in between would otherwise take the old range for the current one.
            self.readable.set(0);
            in_order();
            self.changes.set(changes);
        }
        self.readable()
    }

    /// Returns the part of the stack known to be readable.
    #[inline]
    pub(crate) fn readable(&self) -> Range<usize> {
        Readable::unpack(self.readable.get())
    }

    /// Moves the thread to `session`, discarding state from the previous one. Returns whether the session changed.
    #[inline]
    pub(crate) fn join(&self, session: u32) -> bool {
        let is_new = self.session.get() != session;
        if is_new {
            self.leave_session();
            self.session.set(session);
        }
        is_new
    }

    /// Discards the state that belongs to the session of the parent process. `unwind::changes` invalidates the stacks
    /// that the parent walked.
    pub(crate) fn leave_session(&self) {
        self.id.set(0);
        self.exit_rounds.set(0);
        self.until_sample.set(0);
        self.random.set(0);
        self.processor.set(0);
        self.producer.leave();
    }

    /// Determines whether memory at an address can be read, and remembers readable pages.
    #[cold]
    pub(crate) fn becomes_readable(&self, address: usize) -> bool {
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if self.is_on_known_stack(address) {
            return true;
        }
        let page = address & !(PAGE - 1);
        // This precedes the query: the result is discarded if a handler changes the range in the meantime.
        let known = self.readable.get();
        let is_there = is_readable(page);
        if is_there {
            self.readable.replace(known, Readable::with_page(known, page));
        }
        is_there
    }

    /// Returns whether an address is in the used part of the current stack, provided that the location of the stack is
    /// known. The used part is readable as a whole and is remembered.
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    fn is_on_known_stack(&self, address: usize) -> bool {
        let here = stack_pointer() & !(PAGE - 1);
        let Some(stack) = known_stack() else { return false };
        // The last page may be shared with the memory after the stack, which can be read as well.
        let end = stack.end.next_multiple_of(PAGE);
        if !(here..end).contains(&address) {
            return false;
        }
        self.readable.set(Readable::pack(here..end));
        true
    }

    /// Returns whether the current call was made by a real function and is therefore not the program's own.
    ///
    /// A signal handler may jump out of a real function, whose hook then never returns. Therefore, hooks are not
    /// counted. Instead, a hook is considered gone if its frame is not above ours on the stack. (A handler on a
    /// separate stack at a higher address counts as the program's own code.)
    #[inline(always)]
    pub(crate) fn is_nested(&self) -> bool {
        stack_pointer() < self.outer.get()
    }
}

/// Returns the current stack, if its location is known.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn known_stack() -> Option<KnownStack> {
    stack::around(stack_pointer(), &current().stack)
}

/// Returns the stack pointer of the function into which this is inlined.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads a register.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: reads a register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let local = 0_u8;
        pointer = core::ptr::from_ref(core::hint::black_box(&local)) as usize;
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_pages() {
        let stack = 0x7fff_ffff_0000;
        let one = Readable::with_page(0, stack);
        assert_eq!(Readable::unpack(one), stack..stack + PAGE);
        let above = Readable::with_page(one, stack + PAGE);
        assert_eq!(Readable::unpack(above), stack..stack + 2 * PAGE);
        let below = Readable::with_page(above, stack - PAGE);
        assert_eq!(Readable::unpack(below), stack - PAGE..stack + 2 * PAGE);
        // A page that does not adjoin the range, or that would exceed the maximum length, starts a new range.
        assert_eq!(Readable::unpack(Readable::with_page(below, 5 * PAGE)), 5 * PAGE..6 * PAGE);
        let longest = (1 << Readable::BITS) | Readable::MOST;
        let end = Readable::unpack(longest).end;
        assert_eq!(Readable::unpack(Readable::with_page(longest, end)), end..end + PAGE);
        assert!(Readable::unpack(0).is_empty());
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        {
            assert_eq!(Readable::unpack(Readable::pack(stack..stack + 3 * PAGE)), stack..stack + 3 * PAGE);
            assert_eq!(Readable::pack(PAGE..usize::MAX & !(PAGE - 1)), longest);
        }
    }
}
