//! The recorder's own pages, managed by system calls, because the functions with these names are interposed and record
//! the program's calls.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

/// Makes the `mmap` system call.
///
/// # Safety
/// The requirements are those of `mmap`.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn map(
    address: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    file: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    // SAFETY: by the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_mmap, address, bytes, access, flags, file, offset) };
    result as *mut c_void
}

/// Makes the `munmap` system call and returns 0 on success.
///
/// # Safety
/// The requirements are those of `munmap`.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn unmap(address: *mut c_void, bytes: usize) -> c_int {
    // SAFETY: by the caller's promise.
    status(unsafe { libc::syscall(libc::SYS_munmap, address, bytes) })
}

/// Makes the `madvise` system call and returns 0 on success.
///
/// # Safety
/// The requirements are those of `madvise`.
#[cfg(target_pointer_width = "64")]
pub(crate) unsafe fn advise(address: *mut c_void, bytes: usize, advice: c_int) -> c_int {
    // SAFETY: by the caller's promise.
    status(unsafe { libc::syscall(libc::SYS_madvise, address, bytes, advice) })
}

/// Unlocks memory that a program has locked along with its own (`munlock`). Preserves `errno`.
///
/// # Safety
/// The memory must be a mapping of the recorder.
pub(crate) unsafe fn unlock(address: *mut c_void, bytes: usize) {
    if super::confined::is_confined() {
        return;
    }
    // SAFETY: by the caller's promise; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        libc::munlock(address, bytes);
        *libc::__errno_location() = errno;
    }
}

/// The C library's functions, which are not interposed on targets where pages are not recorded.
#[cfg(not(target_pointer_width = "64"))]
pub(crate) use libc::{madvise as advise, mmap as map, munmap as unmap};

#[cfg(target_pointer_width = "64")]
fn status(result: libc::c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}

/// Returns at least this many fresh zero bytes. Preserves `errno`.
pub(crate) fn pages(bytes: usize) -> Option<*mut c_void> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a system call with valid arguments; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        let pages = map(null_mut(), bytes, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        *libc::__errno_location() = errno;
        (pages != libc::MAP_FAILED).then_some(pages)
    }
}

/// Copies words from an address in this process that may not be mapped. Returns the number of copied words, or `None`
/// if the system call is unavailable or must not be made. Preserves `errno`.
#[cfg(all(feature = "preload", target_pointer_width = "64"))]
pub(crate) fn copy(from: usize, into: &mut [usize]) -> Option<usize> {
    const PAGE: usize = 4096;
    if super::confined::is_confined() {
        return None;
    }
    let bytes = size_of_val(into);
    // The kernel copies a piece completely or not at all, so each piece is within one page.
    let in_first = bytes.min(PAGE - from % PAGE);
    let piece = |from: usize, bytes: usize| libc::iovec { iov_base: from as *mut c_void, iov_len: bytes };
    let local = piece(into.as_mut_ptr() as usize, bytes);
    let remote = [piece(from, in_first), piece(from.wrapping_add(in_first), bytes - in_first)];
    // SAFETY: `errno` of this thread; the kernel writes to the slice alone, and checks the addresses that it reads.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        let copied = libc::syscall(
            libc::SYS_process_vm_readv,
            libc::getpid(),
            &raw const local,
            1_usize,
            remote.as_ptr(),
            remote.len(),
            // A full word, as it is passed on the stack.
            0_usize,
        );
        let is_nothing_there = copied < 0 && *errno == libc::EFAULT;
        *errno = kept;
        match usize::try_from(copied) {
            Ok(copied) => Some(copied / size_of::<usize>()),
            Err(_) => is_nothing_there.then_some(0),
        }
    }
}

/// The number of pages that one system call describes, which limits the stack space for its result.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
const PAGES: usize = 512;

/// The maximum number of bytes at the end of a block whose pages are counted, so that a huge block takes no more than
/// a few milliseconds.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
const EXAMINED: usize = 4 << 30;

/// Returns the number of bytes of a block in whole pages that are not in memory, because nobody has touched them.
/// Returns `None` if the system call is unavailable or must not be made. Preserves `errno`.
///
/// Pages in the page cache or the swap are not in memory either.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn untouched(block: usize, size: usize) -> Option<usize> {
    const PAGE: usize = 4096;
    if super::confined::is_confined() {
        return None;
    }
    let end = block.checked_add(size)? & !(PAGE - 1);
    let mut start = block.checked_next_multiple_of(PAGE)?.max(end.saturating_sub(EXAMINED));
    let mut states = [0_u8; PAGES];
    let mut absent = 0;
    // SAFETY: `errno` of this thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { *errno };
    let mut is_known = true;
    while is_known && start < end {
        let pages = PAGES.min((end - start) / PAGE);
        // SAFETY: the kernel checks the addresses, reads no memory there, and writes one byte per page.
        is_known = unsafe { libc::syscall(libc::SYS_mincore, start, pages * PAGE, states.as_mut_ptr()) } == 0;
        absent += states.iter().take(pages).filter(|state| **state & 1 == 0).count();
        start += pages * PAGE;
    }
    // SAFETY: as above.
    unsafe { *errno = kept };
    is_known.then_some(absent * PAGE)
}

#[cfg(all(test, feature = "preload", target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Fresh pages, of which some are touched or unmapped, and addresses that are not the program's.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn pages_that_nobody_touched() {
        const PAGE: usize = 4096;
        const COUNT: usize = 2 * PAGES + 3;
        let errno = || std::io::Error::last_os_error().raw_os_error();
        let memory = pages(COUNT * PAGE).unwrap();
        // Huge pages would be in memory as a whole.
        // SAFETY: the pages that were just created.
        assert_eq!(unsafe { advise(memory, COUNT * PAGE, libc::MADV_NOHUGEPAGE) }, 0);
        let start = memory as usize;
        let touch = |page: usize| {
            // SAFETY: one of these pages.
            unsafe { memory.cast::<u8>().add(page * PAGE).write_volatile(7) }
        };
        assert_eq!(untouched(start, COUNT * PAGE), Some(COUNT * PAGE));
        [0, PAGES - 1, PAGES, COUNT - 1].into_iter().for_each(touch);
        assert_eq!(untouched(start, COUNT * PAGE), Some((COUNT - 4) * PAGE));
        // Only whole pages count.
        assert_eq!(untouched(start + 1, 4 * PAGE), Some(3 * PAGE));
        assert_eq!(untouched(start + PAGE, 3 * PAGE - 1), Some(2 * PAGE));
        assert_eq!(untouched(start + PAGE + 16, PAGE), Some(0));
        assert_eq!([untouched(start, 0), untouched(start + 5, 7)], [Some(0); 2]);

        // SAFETY: one of these pages, and `errno` of this thread.
        unsafe {
            unmap(memory.byte_add(5 * PAGE), PAGE);
            *libc::__errno_location() = libc::EPERM;
        }
        let hostile = [(start, COUNT * PAGE), (1 << 62, 1 << 20), (PAGE, 1 << 46), (usize::MAX - 4 * PAGE, 3 * PAGE)];
        for (block, size) in hostile.into_iter().chain([(usize::MAX, 1), (1 << 20, usize::MAX), (16, usize::MAX / 2)]) {
            assert_eq!(untouched(block, size), None, "{block:x} {size:x}");
            assert_eq!(errno(), Some(libc::EPERM));
        }
        // SAFETY: these pages.
        unsafe { unmap(memory, COUNT * PAGE) };
    }

    /// The pages of a block of 100 GiB are examined in bounded time.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_huge_block() {
        const BYTES: usize = 100 << 30;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: fresh addresses.
        let memory = unsafe { map(null_mut(), BYTES, libc::PROT_READ, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let began = std::time::Instant::now();
        assert_eq!(untouched(memory as usize, BYTES), Some(EXAMINED));
        assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
        // SAFETY: these addresses.
        unsafe { unmap(memory, BYTES) };
    }

    /// A mapped page, followed by an unmapped one.
    #[test]
    fn memory_that_is_not_there() {
        const PAGE: usize = 4096;
        let memory = pages(2 * PAGE).unwrap();
        // SAFETY: the pages that were just created, of which the second is unmapped.
        unsafe {
            memory.cast::<u8>().write_bytes(7, PAGE);
            unmap(memory.byte_add(PAGE), PAGE);
        }
        let (start, seven) = (memory as usize, usize::from_ne_bytes([7; 8]));
        let mut words = [0; 32];
        for (from, there) in [(start, 32), (start + PAGE - 256, 32), (start + PAGE - 24, 3), (start + PAGE, 0), (8, 0)]
        {
            words.fill(1);
            assert_eq!(copy(from, &mut words), Some(there), "{from:x}");
            assert!(words.iter().enumerate().all(|(place, word)| *word == if place < there { seven } else { 1 }));
        }
        // SAFETY: the remaining page.
        unsafe { unmap(memory, PAGE) };
    }
}
