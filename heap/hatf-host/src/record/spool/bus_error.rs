//! Handles pages of a mapped file that cannot be read: the program truncated the file, the disk has an error, or a full
//! memory file system has no page for a hole. Touching such a page kills a process with `SIGBUS`.
//!
//! In a guarded mapping, private memory replaces the page. If the data can be read from the file, for example from a
//! hole, this memory contains the data. Otherwise, it contains zeros, and the page counts as unreadable.

use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// A guarded mapping. The address of an unused entry is 0.
#[derive(Debug)]
pub(super) struct Guard {
    address: AtomicUsize,
    bytes: AtomicUsize,
    file: AtomicI32,
    unreadable: AtomicU64,
}

/// The guarded mappings. Each recorded process has two. Mappings beyond this number are not guarded.
static GUARDS: [Guard; 256] = [const {
    Guard {
        address: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        file: AtomicI32::new(-1),
        unreadable: AtomicU64::new(0),
    }
}; 256];

/// The previous action of the signal, because a command may handle errors of other mapped inputs.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// The page size.
static PAGE: AtomicUsize = AtomicUsize::new(0);

impl Guard {
    /// Guards a mapping of a file from its beginning. Returns `None` if there are too many guarded mappings.
    pub(super) fn new(memory: usize, bytes: usize, file: RawFd) -> Option<&'static Self> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            // SAFETY: the call has no side effects.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            PAGE.store(usize::try_from(page).unwrap_or(4096), Ordering::SeqCst);
            // SAFETY: all zeros is a valid value of this struct; the handler only makes system calls.
            unsafe {
                let mut ours: libc::sigaction = std::mem::zeroed();
                ours.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
                ours.sa_flags = libc::SA_SIGINFO;
                let mut before: libc::sigaction = std::mem::zeroed();
                if libc::sigaction(libc::SIGBUS, &raw const ours, &raw mut before) == 0 {
                    let _ = BEFORE.set(before);
                }
            }
        });
        let take =
            |guard: &&Self| guard.address.compare_exchange(0, memory, Ordering::SeqCst, Ordering::SeqCst).is_ok();
        let guard = GUARDS.iter().find(take)?;
        guard.file.store(file, Ordering::SeqCst);
        guard.unreadable.store(0, Ordering::SeqCst);
        // The size is stored last, so that no address counts as inside before.
        guard.bytes.store(bytes, Ordering::SeqCst);
        Some(guard)
    }

    /// Ends the guard of a mapping that is about to be unmapped.
    pub(super) fn release(&self) {
        self.bytes.store(0, Ordering::SeqCst);
        self.address.store(0, Ordering::SeqCst);
    }

    /// Returns the number of touched bytes that could not be read.
    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable.load(Ordering::SeqCst).saturating_mul(PAGE.load(Ordering::SeqCst) as u64)
    }

    /// Replaces the page at an address with private memory if the address is in the mapping.
    fn replace(&self, touched: usize) -> bool {
        let start = self.address.load(Ordering::SeqCst);
        if touched.wrapping_sub(start) >= self.bytes.load(Ordering::SeqCst) {
            return false;
        }
        let page = PAGE.load(Ordering::SeqCst);
        let place = touched / page * page;
        let Ok(offset) = libc::off_t::try_from(place.saturating_sub(start)) else { return false };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new page of zeros is filled and moved over a page of our own mapping. The kernel moves it in one
        // step, so no thread finds the address unmapped.
        unsafe {
            let memory = libc::mmap(null_mut(), page, access, anonymous, -1, 0);
            if memory == libc::MAP_FAILED {
                return false;
            }
            let mut read = 0;
            while read < page {
                let at = offset.saturating_add(libc::off_t::try_from(read).unwrap_or(0));
                let file = self.file.load(Ordering::SeqCst);
                let more = libc::pread(file, memory.byte_add(read), page - read, at);
                match usize::try_from(more) {
                    Ok(0) => break,
                    Ok(more) => read += more,
                    Err(_) if *libc::__errno_location() == libc::EINTR => {}
                    Err(_) => break,
                }
            }
            if read < page {
                self.unreadable.fetch_add(1, Ordering::SeqCst);
            }
            let how = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            libc::mremap(memory, page, page, how, place as *mut libc::c_void) != libc::MAP_FAILED
        }
    }
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel's description of this signal is valid during the handler, and `errno` belongs to this thread.
    let (touched, errno) = unsafe { ((*info).si_addr() as usize, *libc::__errno_location()) };
    let is_replaced = touched != 0 && GUARDS.iter().any(|guard| guard.replace(touched));
    // SAFETY: `errno` belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
    if !is_replaced {
        // SAFETY: this is the previous action of the signal, or the one that kills the process. The instruction runs
        // again and triggers it.
        unsafe {
            if let Some(before) = BEFORE.get() {
                libc::sigaction(signal, before, null_mut());
            } else {
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
