//! The functions that a replay calls.

use std::ffi::{CStr, OsString, c_void};
use std::os::unix::ffi::OsStringExt as _;

/// An allocator under test. A block is represented by its address, and 0 means that there is no block.
pub(super) trait Allocator: Copy + Send + Sync {
    /// Whether blocks are memory that can be touched.
    const REAL: bool;

    fn malloc(self, size: usize) -> u64;
    fn calloc(self, size: usize) -> u64;
    fn realloc(self, block: u64, size: usize) -> u64;
    fn aligned(self, alignment: usize, size: usize) -> u64;
    fn free(self, block: u64);
    /// Returns the usable size of a block.
    fn usable(self, block: u64) -> usize;
}

/// The functions of the process, which belong to the system or to a preloaded library.
#[derive(Clone, Copy)]
pub(super) struct Process;

impl Allocator for Process {
    const REAL: bool = true;

    #[inline]
    fn malloc(self, size: usize) -> u64 {
        // SAFETY: malloc accepts any size.
        unsafe { libc::malloc(size) as u64 }
    }

    #[inline]
    fn calloc(self, size: usize) -> u64 {
        // SAFETY: calloc accepts any size.
        unsafe { libc::calloc(1, size) as u64 }
    }

    #[inline]
    fn realloc(self, block: u64, size: usize) -> u64 {
        // SAFETY: the block came from this allocator, and the replay passes it to no other code.
        unsafe { libc::realloc(block as *mut c_void, size) as u64 }
    }

    #[inline]
    fn aligned(self, alignment: usize, size: usize) -> u64 {
        let mut block = std::ptr::null_mut();
        // SAFETY: `block` outlives the call, which rejects invalid alignments.
        let failed = unsafe { libc::posix_memalign(&raw mut block, alignment, size) };
        if failed == 0 { block as u64 } else { 0 }
    }

    #[inline]
    fn free(self, block: u64) {
        // SAFETY: the block came from this allocator, and the replay no longer uses it.
        unsafe { libc::free(block as *mut c_void) }
    }

    #[inline]
    fn usable(self, block: u64) -> usize {
        // SAFETY: the block is live.
        unsafe { libc::malloc_usable_size(block as *mut c_void) }
    }
}

/// An allocator that does nothing. The time of a replay with it is the cost of the replay itself.
#[derive(Clone, Copy)]
pub(super) struct Nothing;

impl Allocator for Nothing {
    const REAL: bool = false;

    #[inline]
    fn malloc(self, size: usize) -> u64 {
        size as u64 | 1
    }

    #[inline]
    fn calloc(self, size: usize) -> u64 {
        size as u64 | 1
    }

    #[inline]
    fn realloc(self, block: u64, size: usize) -> u64 {
        (block ^ size as u64) | 1
    }

    #[inline]
    fn aligned(self, alignment: usize, size: usize) -> u64 {
        (alignment + size) as u64 | 1
    }

    #[inline]
    fn free(self, block: u64) {
        std::hint::black_box(block);
    }

    #[inline]
    fn usable(self, _: u64) -> usize {
        0
    }
}

/// Touches a block as the program might have, so that the system gives it memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Touch {
    /// No memory
    None,
    /// The first byte of each block
    First,
    /// One byte in each page of each block
    Pages,
    /// One byte in each page, up to the usable size (malloc_usable_size)
    Usable,
}

impl Touch {
    /// Touches a block of this size.
    #[inline]
    pub(super) fn touch<A: Allocator>(self, allocator: A, block: u64, size: usize) {
        const PAGE: usize = 4096;
        if !A::REAL || self == Self::None {
            return;
        }
        let size = if self == Self::Usable { allocator.usable(block) } else { size };
        let block = block as *mut u8;
        let end = if self == Self::First { size.min(1) } else { size };
        let mut at = 0;
        while at < end {
            // SAFETY: `at` is less than the size of the block.
            unsafe { block.add(at).write_volatile(1) };
            at += PAGE;
        }
    }
}

/// Returns the file that contains the process's `malloc`.
pub(super) fn file_of_malloc() -> Option<OsString> {
    let malloc: unsafe extern "C" fn(usize) -> *mut c_void = libc::malloc;
    // SAFETY: all zeros is a valid value of this struct of pointers.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `found` outlives the call, which reads the lists of the loader.
    let known = unsafe { libc::dladdr(malloc as *const c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the pointer is to the name of a file that remains loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(OsString::from_vec(name.to_bytes().to_vec()))
}
