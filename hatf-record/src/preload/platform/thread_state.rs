//! The state of each thread, in the initial-exec model of thread-local storage.
//!
//! Rust's own `thread_local!` in a shared object asks `__tls_get_addr` for the address. That function may
//! allocate (it grows a thread's table of modules after a `dlopen`), and would come back here. With
//! the initial-exec model the address is the thread pointer plus a constant that the dynamic linker
//! wrote when the program was loaded: two instructions, no call. A preloaded object always has
//! room for it in the static block.

use core::ops::Range;

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::stack::{self, KnownStack, StackPlace};
use crate::local_atomic::{Local, LocalAtomic, in_order, interruptible};
use crate::producer::Producer;

interruptible! {
    /// One per thread, all zero when the thread begins.
    #[derive(Default)]
    #[repr(C)]
    pub(crate) struct ThreadState {
        /// The stack pointer of the outermost hook that is calling a real function; 0 if none is.
        outer: Local<usize>,
        /// The number of the thread; 0 before it has one.
        pub(crate) id: Local<u32>,
        /// Rounds of key destructors seen when the thread ends.
        pub(crate) exit_rounds: Local<u32>,
        /// Bytes that it allocates up to the next block that is chosen: see `choose/sample.rs`.
        pub(crate) until_sample: Local<i64>,
        /// The state of its random numbers; 0 before the first.
        pub(crate) random: Local<u64>,
        /// True if the thread's blocks are recorded; only some threads' are if `choose/by_thread.rs` selects them.
        pub(crate) is_named: Local<u32>,
        /// One more than the number of the processor that it ran on at its last call; 0: not known.
        pub(crate) processor: Local<u32>,
        /// The chunk of the spool that receives its events.
        pub(crate) producer: Producer,
        /// Pages of the stack that are known to be readable, as [`Readable`] packs them.
        readable: LocalAtomic,
        /// The last argument of [`readable_after`](Self::readable_after).
        changes: Local<u64>,
        /// The session that it belongs to: see `Session::number`.
        session: Local<u32>,
        /// Calls, in a process that ran already when recording began.
        pub(crate) calls: Local<u32>,
        /// Children of `vfork` that run in its place, one made by the other: see `hooks/vfork.rs`.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) vforks: Local<u32>,
        /// The location of its stack, if `pthread_create` made it.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) stack: StackPlace,
        /// The address of the pages of `kept_pages.rs`; 0: there are none.
        pub(crate) kept_pages: LocalAtomic,
        /// Scans of blocks that it is in the middle of: see `accesses/scans.rs`.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) scans: Local<u32>,
        /// The address of what `stacks/memo.rs` keeps of it; 0 before its first walk. Not here, as an object that is loaded while the program runs has little room
        /// for thread-local memory.
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        pub(crate) memo: LocalAtomic,
    }
}

/// The round of key destructors in which a thread's end is recorded: the last that the system promises.
pub(crate) const LAST_ROUND: u32 = 4;

/// Bytes of a page.
const PAGE: usize = 4096;

/// Bytes that the assembler reserves.
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
    // SAFETY: reads the thread pointer and the offset that the linker computed for our block,
    // and changes no memory and no flag but those of the addition. Neither changes while a thread runs,
    // so one answer does for a whole function (`nomem`). The block lives as long as the
    // thread, and the reference does not leave it.
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

/// Returns the calling thread's state. On other machines than the two above it is the language's own:
/// correct, except for a program that allocates between a `dlopen` of a module with thread-local
/// storage and the growth of its thread's table.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn current() -> &'static ThreadState {
    thread_local! {
        static STATE: ThreadState = ThreadState::default();
    }
    // SAFETY: the block has no destructor and lives as long as the thread; the reference does not
    // leave it.
    STATE.with(|state| unsafe { &*core::ptr::from_ref(state) })
}

/// Notes that from this stack pointer on, calls are not the program's own; returns what was noted before, for [`leave`].
#[inline(always)]
pub(crate) fn enter(stack_pointer: usize) -> usize {
    let outer = &current().outer;
    let before = outer.get();
    if before == 0 || stack_pointer >= before {
        outer.set(stack_pointer);
    }
    before
}

/// Puts back what [`enter`] returned.
#[inline(always)]
pub(crate) fn leave(before: usize) {
    current().outer.set(before);
}

/// Runs `f` one level deeper, where allocations are not the program's own.
#[inline(always)]
pub(crate) fn nested<T>(f: impl FnOnce() -> T) -> T {
    // As `enter` and `leave` do, with the thread's state looked up once.
    let state = current();
    let before = state.outer.get();
    if before == 0 || stack_pointer() >= before {
        state.outer.set(stack_pointer());
    }
    let result = f();
    state.outer.set(before);
    result
}

/// Notes that no hook is on the stack any more.
pub(crate) fn leave_hooks() {
    current().outer.set(0);
}

/// Returns whether the page of an address can be read; `false` if it must not be asked for, as the program may have a filter for its system calls. Keeps
/// `errno`.
#[cold]
pub(crate) fn is_readable(address: usize) -> bool {
    #[cfg(feature = "preload")]
    if super::confined::is_confined() {
        return false;
    }
    let page = address & !(PAGE - 1);
    // SAFETY: `errno` of this thread, and a system call that reads a set of signals from the address, and then finds that it is not
    // said what to do with it. Where the address is not readable it says so.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let asked = libc::syscall(libc::SYS_rt_sigprocmask, -1, page, 0, 8);
        let is_there = asked == 0 || *errno != libc::EFAULT;
        *errno = before;
        is_there
    }
}

/// Pages that are known to be readable, in one word, so that no handler sees the beginning of one range with the end of another: the number of the
/// first page above the number of pages.
struct Readable;

impl Readable {
    /// Bits of the number of pages: of 2 GiB of stack, and with the number of a page in 57 bits of address there are 64.
    const BITS: u32 = 19;
    const MOST: usize = (1 << Self::BITS) - 1;

    #[inline(always)]
    fn unpack(word: usize) -> Range<usize> {
        let from = (word >> Self::BITS) * PAGE;
        from..from + (word & Self::MOST) * PAGE
    }

    /// Returns the word of a range, or of the first pages of one that is too long.
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    fn pack(range: Range<usize>) -> usize {
        ((range.start / PAGE) << Self::BITS) | (range.len() / PAGE).min(Self::MOST)
    }

    /// Returns the word of a range and a page next to it, or of the page alone.
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
    /// Returns the part of the stack that is known to be readable, after this many changes of memory: nothing if there are more than before.
    #[inline]
    pub(crate) fn readable_after(&self, changes: u64) -> Range<usize> {
        if self.changes.get() != changes {
            // In this order, or a handler in between would take what was known before for what is known now.
            self.readable.set(0);
            in_order();
            self.changes.set(changes);
        }
        self.readable()
    }

    /// Returns the part of the stack that is known to be readable.
    #[inline]
    pub(crate) fn readable(&self) -> Range<usize> {
        Readable::unpack(self.readable.get())
    }

    /// Has the thread belong to a session, of which it knows nothing yet; returns whether it did not.
    #[inline]
    pub(crate) fn join(&self, session: u32) -> bool {
        let is_new = self.session.get() != session;
        if is_new {
            self.leave_session();
            self.session.set(session);
        }
        is_new
    }

    /// Forgets what belongs to the session of the process that this one was forked from. Stacks that it walked are forgotten by
    /// `unwind::changes`.
    pub(crate) fn leave_session(&self) {
        self.id.set(0);
        self.exit_rounds.set(0);
        self.until_sample.set(0);
        self.random.set(0);
        self.processor.set(0);
        self.producer.leave();
    }

    /// Finds out whether memory at an address can be read. Pages that can stay known.
    #[cold]
    pub(crate) fn becomes_readable(&self, address: usize) -> bool {
        #[cfg(all(feature = "preload", target_arch = "x86_64"))]
        if self.is_on_known_stack(address) {
            return true;
        }
        let page = address & !(PAGE - 1);
        // Before the question: the answer does not count if a handler changes what is known meanwhile.
        let known = self.readable.get();
        let is_there = is_readable(page);
        if is_there {
            self.readable.replace(known, Readable::with_page(known, page));
        }
        is_there
    }

    /// Returns whether an address is in the used part of the stack at hand, if its place is known: all of that part can be read, and is noted.
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    fn is_on_known_stack(&self, address: usize) -> bool {
        let here = stack_pointer() & !(PAGE - 1);
        let Some(stack) = known_stack() else { return false };
        // The last page may be shared with what comes after the stack, which can be read as well.
        let end = stack.end.next_multiple_of(PAGE);
        if !(here..end).contains(&address) {
            return false;
        }
        self.readable.set(Readable::pack(here..end));
        true
    }

    /// Returns whether the call at hand comes from a real function, and is not the program's own.
    ///
    /// A signal handler may leave a real function by a jump, and its hook never returns. So it is not counted how many hooks
    /// there are: one whose frame is not above ours on the stack is gone. (A handler on a stack of its own that lies above is
    /// the program's own.)
    #[inline(always)]
    pub(crate) fn is_nested(&self) -> bool {
        stack_pointer() < self.outer.get()
    }
}

/// Returns the stack at hand, if its place is known.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn known_stack() -> Option<KnownStack> {
    stack::around(stack_pointer(), &current().stack)
}

/// Returns the stack pointer of the function that this is inlined into.
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
        // A page that does not adjoin the range starts a new one, and so does a page beyond the maximum length.
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
