//! Says in a spool that a thread of this process tends it. If that thread ends in whatever way the kernel says so there, by what it does for robust
//! mutexes. So the threads of the program see that by a look at a word: they may have a filter by which a system call ends them.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

use hatf_record::Header;

/// An entry of the list that the kernel goes through when a thread ends.
#[repr(C)]
struct Entry {
    next: *mut Entry,
}

/// The list's head, as the kernel wants it.
#[repr(C)]
struct List {
    first: Entry,
    /// From an entry to its word.
    offset: libc::c_long,
    pending: *mut Entry,
}

/// The list of one entry. What the kernel follows lies in this process's own memory, where the program cannot write.
struct Robust {
    list: List,
    entry: Entry,
}

/// That the calling thread tends a spool, until this is dropped.
pub(super) struct Claim<'a> {
    keeper: &'a AtomicU32,
    /// What the kernel has of the thread meanwhile.
    robust: Box<Robust>,
    /// The list that the C library has given it.
    before: *mut List,
}

impl<'a> Claim<'a> {
    /// Makes it; `None` where the kernel does not do that.
    pub(super) fn of(header: &'a Header) -> Option<Self> {
        let keeper = &header.keeper;
        let (mut before, mut length) = (null_mut::<List>(), 0_usize);
        // SAFETY: places for the answers, of the calling thread.
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
        // First the word: the kernel looks whether it is this thread's.
        keeper.store(task, Ordering::Release);
        let claim = Self { keeper, robust, before };
        claim.register(&raw const claim.robust.list).then_some(claim)
    }

    fn register(&self, list: *const List) -> bool {
        // SAFETY: a list that stays where it is until another is registered, or the one of the C library.
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
                // A thread that ends as it is: what the kernel goes through stays until then.
                std::mem::forget(Claim::of(&header).unwrap());
            });
        });
        // A scope waits for what a thread does, and the kernel comes behind that.
        let begun = std::time::Instant::now();
        while header.keeper.load(Ordering::Relaxed) & KEEPER_GONE == 0 {
            assert!(begun.elapsed().as_secs() < 10);
            std::thread::yield_now();
        }
    }
}
