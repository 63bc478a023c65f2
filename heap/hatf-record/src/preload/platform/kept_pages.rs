//! Pages for operations that may never return: a child of `vfork` that becomes another program cannot unmap the pages
//! it mapped into its parent's memory. Therefore, a thread keeps its pages for the next such operation. A thread keeps
//! at most one set of pages.

use core::ffi::c_void;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicU32, Ordering};

use super::memory;
use super::thread_state::{self, ThreadState};

/// Bytes per page.
const PAGE: usize = 4096;

/// The head at the start of the pages.
#[repr(align(16))]
struct Head {
    /// The size of all pages in bytes.
    bytes: usize,
    /// The process that uses the pages, or 0 if the pages are unused.
    user: AtomicU32,
}

/// Pages in use.
pub(crate) struct KeptPages(*mut Head);

impl KeptPages {
    /// Returns pages with room for this many bytes, or `None` if there is no memory.
    pub(crate) fn take(bytes: usize) -> Option<Self> {
        let kept = &thread_state::current().kept_pages;
        // SAFETY: cannot fail.
        let process = unsafe { libc::getpid().cast_unsigned() };
        let address = kept.get();
        let found = with_exposed_provenance_mut::<Head>(address);
        // SAFETY: null, or pages of this thread, which begin with a head.
        if let Some(head) = unsafe { found.as_ref() } {
            if head.user.load(Ordering::Relaxed) == process {
                // The caller is a signal handler that interrupted the user of the pages.
                return Self::map(bytes, process);
            }
            // A different user was a child of `vfork`, which is gone because this thread runs again.
            if head.bytes - size_of::<Head>() >= bytes {
                head.user.store(process, Ordering::Relaxed);
                return Some(Self(found));
            }
        }
        let pages = Self::map(bytes, process)?;
        if kept.replace(address, pages.0.expose_provenance()) && !found.is_null() {
            Self(found).unmap();
        }
        Some(pages)
    }

    fn map(bytes: usize, process: u32) -> Option<Self> {
        let bytes = bytes.checked_add(size_of::<Head>())?.checked_next_multiple_of(PAGE)?;
        let head = memory::pages(bytes)?.cast::<Head>();
        // SAFETY: fresh pages, aligned for the head.
        unsafe { head.write(Head { bytes, user: AtomicU32::new(process) }) };
        Some(Self(head))
    }

    /// Returns the memory, which is aligned for any type.
    pub(crate) fn memory(&self) -> *mut c_void {
        // SAFETY: inside of the pages.
        unsafe { self.0.add(1).cast() }
    }

    /// Returns the pages to the thread, unless the thread already keeps other pages. Preserves `errno`.
    pub(crate) fn give_back(self) {
        if thread_state::current().kept_pages.get() == self.0.expose_provenance() {
            // SAFETY: the head of pages that stay mapped.
            unsafe { (*self.0).user.store(0, Ordering::Relaxed) };
        } else {
            self.unmap();
        }
    }

    fn unmap(self) {
        // SAFETY: the pages from `map`, which nobody uses any more; `errno` of this thread.
        unsafe {
            let errno = *libc::__errno_location();
            memory::unmap(self.0.cast(), (*self.0).bytes);
            *libc::__errno_location() = errno;
        }
    }
}

/// Unmaps the pages of a thread that ends.
pub(crate) fn end(state: &ThreadState) {
    let address = state.kept_pages.get();
    if address != 0 && state.kept_pages.replace(address, 0) {
        KeptPages(with_exposed_provenance_mut(address)).unmap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_a_thread_keeps() {
        let first = KeptPages::take(100).unwrap();
        let place = first.memory();
        // A signal handler receives different pages, which are unmapped afterwards.
        let second = KeptPages::take(100).unwrap();
        assert_ne!(second.memory(), place);
        second.give_back();
        first.give_back();
        let same = KeptPages::take(PAGE - size_of::<Head>()).unwrap();
        assert_eq!(same.memory(), place);
        // Simulate a child of `vfork` that became another program.
        // SAFETY: the head of these pages.
        unsafe { (*same.0).user.store(1, Ordering::Relaxed) };
        let again = KeptPages::take(100).unwrap();
        assert_eq!(again.memory(), place);
        again.give_back();
        let larger = KeptPages::take(10 * PAGE).unwrap();
        // SAFETY: as much as was requested.
        unsafe { larger.memory().cast::<u8>().write_bytes(1, 10 * PAGE) };
        larger.give_back();
        end(thread_state::current());
        assert_eq!(thread_state::current().kept_pages.get(), 0);
    }
}
