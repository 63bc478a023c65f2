//! The layout of blocks whose accesses are counted. Each block follows a 32-byte head and begins at a multiple of 32
//! bytes. Therefore no two blocks share a 64-byte granule, regardless of what is between them, and no counter covers
//! more than one block.
//!
//! These functions are inserted between the hooks and the real allocator. Blocks allocated before the functions were
//! inserted have no head and belong to the real allocator alone.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use super::block::{Block, EPOCH, HEAD, Head};
use super::scans::wait_for_scans;
use super::shadow;
use super::tell::{now, tell};
use crate::conditions::Conditions;
use crate::preload::elf::real::pointers;
use crate::preload::spool::session;

/// Bytes that a block needs in addition to its size if the real allocator aligns to 16 bytes.
const MORE: usize = HEAD + 16;

macro_rules! behind {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The addresses of the real allocator's functions.
        #[expect(non_upper_case_globals, reason = "the names are those of the stored functions")]
        mod behind {
            use super::*;
            $(pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
        }

        /// Inserts these functions between the hooks and the real allocator.
        fn replace() {
            $(
                let real = pointers::$name.load(Ordering::Acquire);
                behind::$name.store(real, Ordering::Release);
                if !real.is_null() {
                    pointers::$name.store($name as *mut c_void, Ordering::Release);
                }
            )*
        }

        /// The real allocator's functions with their types.
        #[allow(dead_code, reason = "one function serves all aligned allocations")]
        mod call {
            use super::*;
            $(
                pub(super) fn $name() -> Option<unsafe extern "C" fn($($argument),*) -> $result> {
                    // SAFETY: null, which is `None`, or the address of a function with this name.
                    unsafe { core::mem::transmute(behind::$name.load(Ordering::Relaxed)) }
                }
            )*
        }
    };
}

behind! {
    malloc: fn(usize) -> *mut c_void;
    calloc: fn(usize, usize) -> *mut c_void;
    realloc: fn(*mut c_void, usize) -> *mut c_void;
    free: fn(*mut c_void) -> ();
    memalign: fn(usize, usize) -> *mut c_void;
    posix_memalign: fn(*mut *mut c_void, usize, usize) -> c_int;
    aligned_alloc: fn(usize, usize) -> *mut c_void;
    valloc: fn(usize) -> *mut c_void;
    pvalloc: fn(usize) -> *mut c_void;
    malloc_usable_size: fn(*mut c_void) -> usize;
}

/// Inserts the functions once.
pub(super) fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.swap(true, Ordering::AcqRel) {
        // A null pointer makes the hook use `realloc`.
        pointers::reallocarray.store(null_mut(), Ordering::Release);
        replace();
    }
}

fn out_of_memory() -> *mut c_void {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// Creates a block after its head, at this offset in a block from the real allocator.
fn place(base: *mut c_void, offset: usize, size: usize) -> *mut c_void {
    let address = base as usize + offset;
    let head = Head {
        base: base as usize,
        size,
        epoch: EPOCH.load(Ordering::Relaxed),
        state: AtomicU32::new(0),
        scan: AtomicU32::new(0),
    };
    // SAFETY: inside of the real allocator's block, before our block.
    unsafe { ((address - HEAD) as *mut Head).write(head) };
    // Without memory for counters, the block has neither a mark nor a head, and the real allocator's block is used.
    if shadow::make(address, size) {
        shadow::clear(address, size);
        shadow::cover(address, size);
        shadow::mark(address);
        return address as *mut c_void;
    }
    base
}

/// Returns the offset of our block in a real block that is aligned to 16 bytes.
fn offset_in(base: *mut c_void) -> usize {
    (base as usize + HEAD).next_multiple_of(shadow::UNIT) - base as usize
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let (Some(malloc), Some(bytes)) = (call::malloc(), size.checked_add(MORE)) else { return out_of_memory() };
    // SAFETY: any size can be requested.
    let base = unsafe { malloc(bytes) };
    if base.is_null() { base } else { place(base, offset_in(base), size) }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let size = count.checked_mul(size);
    let bytes = size.and_then(|size| size.checked_add(MORE));
    let (Some(calloc), Some(size), Some(bytes)) = (call::calloc(), size, bytes) else { return out_of_memory() };
    // SAFETY: any size can be requested.
    let base = unsafe { calloc(1, bytes) };
    if base.is_null() { base } else { place(base, offset_in(base), size) }
}

/// Removes the head of an ending block and returns the real allocator's block, which is the block itself if it has no
/// head. Returns `None` if a scan interrupted by a signal handler may still inspect the block, so the block must stay.
fn take(block: *mut c_void) -> Option<*mut c_void> {
    let Some(known) = Block::at(block as usize) else { return Some(block) };
    let base = known.head.base;
    shadow::unmark(block as usize);
    wait_for_scans().then_some(base as *mut c_void)
}

unsafe extern "C" fn free(block: *mut c_void) {
    if let (Some(free), Some(block)) = (call::free(), take(block)) {
        // SAFETY: the caller's block, owned by the real allocator, which nobody inspects any more.
        unsafe { free(block) };
    }
}

/// Copies a block that must stay into a new block of this size, unless the size is 0.
///
/// # Safety
/// `bytes` bytes of the block must be readable, and `bytes` must not exceed `size`.
unsafe fn moved(old: *mut c_void, bytes: usize, size: usize) -> *mut c_void {
    if size == 0 {
        return null_mut();
    }
    // SAFETY: any size can be requested.
    let new = unsafe { malloc(size) };
    if new.is_null() {
        shadow::mark(old as usize);
    } else {
        // SAFETY: by the caller's promise, and a new block.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), bytes) };
    }
    new
}

unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    let Some(realloc) = call::realloc() else { return out_of_memory() };
    if old.is_null() {
        // SAFETY: any size can be requested.
        return unsafe { malloc(size) };
    }
    let Some(known) = Block::at(old as usize) else {
        // SAFETY: the caller's block, which has no head.
        return unsafe { realloc(old, size) };
    };
    let Some(bytes) = size.checked_add(MORE) else { return out_of_memory() };
    // The copied bytes count as read, and as written at the new location. It is unknown how many of them the program
    // needs.
    shadow::count(old as usize, known.head.size.min(size), false, now());
    if let Some(session) = session::current().filter(|session| session.conditions().has(Conditions::ACCESSES)) {
        tell(session, old as usize);
    }
    let (base, before) = (known.head.base, known.head.size);
    let offset = old as usize - base;
    shadow::unmark(old as usize);
    if !wait_for_scans() {
        // SAFETY: the caller's block.
        return unsafe { moved(old, before.min(size), size) };
    }
    if size == 0 {
        // As in the C library, a realloc to size 0 frees the block.
        if let Some(free) = call::free() {
            // SAFETY: the caller's block.
            unsafe { free(base as *mut c_void) };
        }
        return null_mut();
    }
    // A block whose offset is larger than usual must be moved within the real block.
    let slack = offset.saturating_sub(MORE);
    let Some(bytes) = bytes.checked_add(slack) else {
        shadow::mark(old as usize);
        return out_of_memory();
    };
    // SAFETY: the caller's block.
    let new = unsafe { realloc(base as *mut c_void, bytes) };
    if new.is_null() {
        shadow::mark(old as usize);
        return new;
    }
    let to = offset_in(new);
    if to != offset {
        // SAFETY: inside of the new block, which has the contents of the old one at the same offset.
        unsafe {
            let content = new.cast::<u8>();
            core::ptr::copy(content.add(offset), content.add(to), before.min(size));
        }
    }
    let block = place(new, to, size);
    shadow::count(block as usize, before.min(size), true, now());
    if block == new {
        // The block has no counters.
        // SAFETY: as above.
        unsafe { core::ptr::copy(new.cast::<u8>().add(to), new.cast::<u8>(), before.min(size)) };
    }
    block
}

/// The offset of the block equals its alignment.
unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let align = align.max(HEAD).checked_next_power_of_two();
    let bytes = align.and_then(|align| size.checked_add(align));
    let (Some(memalign), Some(align), Some(bytes)) = (call::memalign(), align, bytes) else { return out_of_memory() };
    // SAFETY: any alignment and size can be requested.
    let base = unsafe { memalign(align, bytes) };
    if base.is_null() { base } else { place(base, align, size) }
}

unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: any alignment and size can be requested.
    unsafe { memalign(align, size) }
}

unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: `errno` of this thread, which this function preserves; any alignment and size; the caller's place for the
    // result.
    unsafe {
        let errno = *libc::__errno_location();
        let new = memalign(align, size);
        *libc::__errno_location() = errno;
        if new.is_null() {
            return libc::ENOMEM;
        }
        block.write(new);
    }
    0
}

const PAGE: usize = 4096;

unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    // SAFETY: any size can be requested.
    unsafe { memalign(PAGE, size) }
}

unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: any size can be requested.
    size.checked_next_multiple_of(PAGE).map_or_else(out_of_memory, |size| unsafe { memalign(PAGE, size) })
}

unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(usable) = call::malloc_usable_size() else { return 0 };
    let base = Block::at(block as usize).map_or(block as usize, |known| known.head.base);
    // SAFETY: the real allocator's block, which contains the caller's block.
    let bytes = unsafe { usable(base as *mut c_void) };
    bytes.saturating_sub(block as usize - base)
}
