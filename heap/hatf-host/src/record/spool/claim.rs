//! Marks a spool as tended by a thread of this process. When that thread ends in any way, the kernel records this in
//! the spool by its mechanism for robust mutexes. The program's threads can thus check the mark by reading a word
//! instead of making a system call, for which a seccomp filter might kill them.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use hatf_record::Header;

/// An entry of the list that the kernel walks when a thread ends.
#[repr(C)]
struct Entry {
    next: *mut Entry,
}

/// The head of the list in the kernel's layout.
#[repr(C)]
struct List {
    first: Entry,
    /// The offset from an entry to its word.
    offset: libc::c_long,
    pending: *mut Entry,
}

/// A list with one entry. Everything that the kernel follows is in this process's own memory, which the program cannot
/// write.
struct Robust {
    list: List,
    entry: Entry,
}

/// A mark that the calling thread tends a spool, which is removed on drop.
pub(super) struct Claim<'a> {
    keeper: &'a AtomicU32,
    /// The list registered with the kernel for the thread in the meantime.
    robust: Box<Robust>,
    /// The list that the C library had registered.
    before: *mut List,
}

impl<'a> Claim<'a> {
    /// Creates the claim. Returns `None` if the kernel does not support it.
    pub(super) fn of(header: &'a Header) -> Option<Self> {
        let keeper = &header.keeper;
        let (mut before, mut length) = (null_mut::<List>(), 0_usize);
        // SAFETY: the pointers are to variables that receive the results, for the calling thread.
        let (asked, task) = unsafe {
            let asked = libc::syscall(libc::SYS_get_robust_list, 0, &raw mut before, &raw mut length);
            (asked, libc::syscall(libc::SYS_gettid))
        };
        let task = u32::try_from(task).ok().filter(|_| asked == 0 && length == size_of::<List>())?;
        let empty = || Entry { next: null_mut() };
        let list = List { first: empty(), offset: 0, pending: null_mut() };
        let mut robust = Box::new(Robust { list, entry: empty() });
        let (entry, head) = (&raw mut robust.entry, &raw mut robust.list.first);
        robust.entry.next = head;
        robust.list.first.next = entry;
        let offset = (keeper.as_ptr() as usize).wrapping_sub(entry as usize).cast_signed();
        robust.list.offset = libc::c_long::try_from(offset).ok()?;
        // The word is stored first, because the kernel checks whether it contains this thread's ID.
        keeper.store(task, Ordering::Release);
        let claim = Self { keeper, robust, before };
        claim.register(&raw const claim.robust.list).then_some(claim)
    }

    fn register(&self, list: *const List) -> bool {
        // SAFETY: the list does not move until another list is registered, or it is the C library's own list.
        unsafe { libc::syscall(libc::SYS_set_robust_list, list, size_of::<List>()) == 0 }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.register(self.before);
        self.keeper.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatf_record::KEEPER_GONE;

    #[test]
    fn the_kernel_says_so() {
        let header = Header::default();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let claim = Claim::of(&header).unwrap();
                let keeper = header.keeper.load(Ordering::Relaxed);
                assert!(keeper != 0 && keeper & KEEPER_GONE == 0);
                drop(claim);
                assert_eq!(header.keeper.load(Ordering::Relaxed), 0);
                // The thread ends without cleanup. The list that the kernel walks exists until then.
                std::mem::forget(Claim::of(&header).unwrap());
            });
        });
        // The scope waits only until the thread's code has finished. The kernel sets the word slightly later.
        let begun = std::time::Instant::now();
        while header.keeper.load(Ordering::Relaxed) & KEEPER_GONE == 0 {
            assert!(begun.elapsed().as_secs() < 10);
            std::thread::yield_now();
        }
    }
}
