//! How blocks lie whose accesses are counted: at multiples of 32 bytes, behind a head of 32. So no two blocks have a byte in the same 64, whatever lies
//! between them, and no counter is of both.
//!
//! These functions come between the hooks and the real allocator. Blocks of before they did have no head, and are the real allocator's alone.

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

/// What a block takes more than it was asked for, where the real allocator aligns to 16.
const MORE: usize = HEAD + 16;

macro_rules! behind {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions behind these.
        #[expect(non_upper_case_globals, reason = "named after the functions they hold")]
        mod behind {
            use super::*;
            $(pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
        }

        /// Comes between the hooks and the real allocator.
        fn replace() {
            $(
                let real = pointers::$name.load(Ordering::Acquire);
                behind::$name.store(real, Ordering::Release);
                if !real.is_null() {
                    pointers::$name.store($name as *mut c_void, Ordering::Release);
                }
            )*
        }

        /// The functions behind these, as such.
        #[allow(dead_code, reason = "all that aligns is made of one")]
        mod call {
            use super::*;
            $(
                pub(super) fn $name() -> Option<unsafe extern "C" fn($($argument),*) -> $result> {
                    // SAFETY: null, which is `None`, or the address of a function of this name.
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

/// Begins, once.
pub(super) fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    if !BEGUN.swap(true, Ordering::AcqRel) {
        // What is null there is made of `realloc`.
        pointers::reallocarray.store(null_mut(), Ordering::Release);
        replace();
    }
}

fn out_of_memory() -> *mut c_void {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    null_mut()
}

/// Puts a block behind its head into what the real allocator gave, this many bytes from its beginning.
fn place(base: *mut c_void, offset: usize, size: usize) -> *mut c_void {
    let address = base as usize + offset;
    let head = Head {
        base: base as usize,
        size,
        epoch: EPOCH.load(Ordering::Relaxed),
        state: AtomicU32::new(0),
        scan: AtomicU32::new(0),
    };
    // SAFETY: inside of the real allocator's block, in front of ours.
    unsafe { ((address - HEAD) as *mut Head).write(head) };
    // Where there is no memory for counters the block has no mark, and no head then: it is the real allocator's.
    if shadow::make(address, size) {
        shadow::clear(address, size);
        shadow::cover(address, size);
        shadow::mark(address);
        return address as *mut c_void;
    }
    base
}

/// Returns how far behind its beginning a block that is aligned to 16 bytes has ours.
fn offset_in(base: *mut c_void) -> usize {
    (base as usize + HEAD).next_multiple_of(shadow::UNIT) - base as usize
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let (Some(malloc), Some(bytes)) = (call::malloc(), size.checked_add(MORE)) else { return out_of_memory() };
    // SAFETY: any size may be asked for.
    let base = unsafe { malloc(bytes) };
    if base.is_null() { base } else { place(base, offset_in(base), size) }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let size = count.checked_mul(size);
    let bytes = size.and_then(|size| size.checked_add(MORE));
    let (Some(calloc), Some(size), Some(bytes)) = (call::calloc(), size, bytes) else { return out_of_memory() };
    // SAFETY: any size may be asked for.
    let base = unsafe { calloc(1, bytes) };
    if base.is_null() { base } else { place(base, offset_in(base), size) }
}

/// Takes the head of a block away, which ends; returns the real allocator's block. What has no head is that itself. `None`: a scan that a signal
/// handler interrupted may look at it, so it stays.
fn take(block: *mut c_void) -> Option<*mut c_void> {
    let Some(known) = Block::at(block as usize) else { return Some(block) };
    let base = known.head.base;
    shadow::unmark(block as usize);
    wait_for_scans().then_some(base as *mut c_void)
}

unsafe extern "C" fn free(block: *mut c_void) {
    if let (Some(free), Some(block)) = (call::free(), take(block)) {
        // SAFETY: the caller's block, of the real allocator, that nobody looks at.
        unsafe { free(block) };
    }
}

/// Copies a block that stays into a new one of a size, if that is not 0.
///
/// # Safety
/// `bytes` bytes of the block can be read, and `size` at most.
unsafe fn moved(old: *mut c_void, bytes: usize, size: usize) -> *mut c_void {
    if size == 0 {
        return null_mut();
    }
    // SAFETY: any size may be asked for.
    let new = unsafe { malloc(size) };
    if new.is_null() {
        shadow::mark(old as usize);
    } else {
        // SAFETY: the caller's promise, and a new block.
        unsafe { new.cast::<u8>().copy_from_nonoverlapping(old.cast(), bytes) };
    }
    new
}

unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    let Some(realloc) = call::realloc() else { return out_of_memory() };
    if old.is_null() {
        // SAFETY: any size may be asked for.
        return unsafe { malloc(size) };
    }
    let Some(known) = Block::at(old as usize) else {
        // SAFETY: the caller's block, which has no head.
        return unsafe { realloc(old, size) };
    };
    let Some(bytes) = size.checked_add(MORE) else { return out_of_memory() };
    // What it copies is read, and written elsewhere; how much of it the program needs is not known.
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
        // As the C library does.
        if let Some(free) = call::free() {
            // SAFETY: the caller's block.
            unsafe { free(base as *mut c_void) };
        }
        return null_mut();
    }
    // One that is further behind its beginning than others has to be moved within.
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
        // SAFETY: inside of the new block, which has the content of the old one at its place.
        unsafe {
            let content = new.cast::<u8>();
            core::ptr::copy(content.add(offset), content.add(to), before.min(size));
        }
    }
    let block = place(new, to, size);
    shadow::count(block as usize, before.min(size), true, now());
    if block == new {
        // Without counters.
        // SAFETY: as above.
        unsafe { core::ptr::copy(new.cast::<u8>().add(to), new.cast::<u8>(), before.min(size)) };
    }
    block
}

/// As far behind its beginning as it is aligned.
unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let align = align.max(HEAD).checked_next_power_of_two();
    let bytes = align.and_then(|align| size.checked_add(align));
    let (Some(memalign), Some(align), Some(bytes)) = (call::memalign(), align, bytes) else { return out_of_memory() };
    // SAFETY: any alignment and size may be asked for.
    let base = unsafe { memalign(align, bytes) };
    if base.is_null() { base } else { place(base, align, size) }
}

unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    // SAFETY: any alignment and size may be asked for.
    unsafe { memalign(align, size) }
}

unsafe extern "C" fn posix_memalign(block: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
        return libc::EINVAL;
    }
    // SAFETY: `errno` of this thread, which this function keeps; any alignment and size; the caller's place.
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
    // SAFETY: any size may be asked for.
    unsafe { memalign(PAGE, size) }
}

unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    // SAFETY: any size may be asked for.
    size.checked_next_multiple_of(PAGE).map_or_else(out_of_memory, |size| unsafe { memalign(PAGE, size) })
}

unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(usable) = call::malloc_usable_size() else { return 0 };
    let base = Block::at(block as usize).map_or(block as usize, |known| known.head.base);
    // SAFETY: the real allocator's block, in which the caller's lies.
    let bytes = unsafe { usable(base as *mut c_void) };
    bytes.saturating_sub(block as usize - base)
}
