//! The interposed `malloc` and its family.
//!
//! Each function calls the real function one nesting level deeper, so that calls made by the real function are not
//! recorded again (such as a `malloc` made by `calloc`). It also records its own call: before the real function if it
//! frees a block, or afterwards if it allocates one. Before the real functions are known, memory comes from the arena.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::event::Kind;
use crate::preload::choose::call::{Begun, Block, Call};
use crate::preload::elf::real::{self, ARENA};
use crate::preload::events::record;
use crate::preload::platform::thread_state::{ThreadState, current, nested_in};
#[cfg(target_arch = "x86_64")]
use crate::preload::spool::{session, word};

/// Allocates from the arena. Like the real function, sets `errno` on failure.
#[cold]
fn from_arena(size: usize, align: usize) -> *mut c_void {
    let block = early(size, align);
    if block.is_null() {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
    }
    block
}

/// Allocates from the arena.
fn early(size: usize, align: usize) -> *mut c_void {
    let block = ARENA.allocate(size, align);
    // Another thread may have begun the session in the meantime.
    #[cfg(target_arch = "x86_64")]
    if session::inherited().is_some() {
        word::leave();
    }
    block
}

/// Releases a block of the arena.
#[cold]
fn release_early() {
    let is_last = ARENA.release();
    #[cfg(target_arch = "x86_64")]
    if let (true, Some(session)) = (is_last, session::current()) {
        word::follow(session.spool.header());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = is_last;
}

/// Returns whether there is no block for a real function to free. Releases a block of the arena.
#[inline]
fn is_none(block: *mut c_void) -> bool {
    if ARENA.owns(block) {
        release_early();
        return true;
    }
    block.is_null()
}

/// Returns whether there is no block for a real function to free, or no real function yet. Releases a block of the
/// arena.
#[inline]
pub(crate) fn is_not_real(block: *mut c_void) -> bool {
    is_none(block) || !real::known()
}

/// Returns whether a block to resize is not from the real functions.
#[inline]
fn is_early(old: *mut c_void) -> bool {
    // As soon as `realloc` can be called, there may be blocks for it.
    ARENA.owns(old) || real::realloc().is_none() && !real::known()
}

/// Returns a real function after looking up all of them, or `None` while they are being looked up.
#[cold]
fn look_up<F>(function: impl Fn() -> Option<F>) -> Option<F> {
    if real::known() { function() } else { None }
}

/// Calls the real function with arguments that the caller guarantees to be valid. Returns null if the system lacks the
/// function.
macro_rules! forward {
    ($state:ident, $name:ident($($argument:expr),*)) => {
        match real::$name() {
            // SAFETY: the caller's arguments, under the contract of the function with this name.
            Some(function) => nested_in($state, || unsafe { function($($argument),*) }),
            None => null_mut(),
        }
    };
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let Some(function) = real::malloc().or_else(|| look_up(real::malloc)) else { return from_arena(size, 16) };
    let state = current();
    // SAFETY: any size can be requested.
    let block = nested_in(state, || unsafe { function(size) });
    record::allocation(state, Kind::Malloc, block, size, 0);
    block
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let bytes = count.saturating_mul(size);
    let Some(function) = real::calloc().or_else(|| look_up(real::calloc)) else { return from_arena(bytes, 16) };
    let state = current();
    // SAFETY: any count and size can be requested.
    let block = nested_in(state, || unsafe { function(count, size) });
    record::allocation(state, Kind::Calloc, block, bytes, count);
    block
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn free(block: *mut c_void) {
    if is_none(block) {
        return;
    }
    let Some(function) = real::free().or_else(|| look_up(real::free)) else { return };
    let state = current();
    record::call_of(state, Kind::Free, Call { address: block as usize, ..Call::default() });
    // SAFETY: the caller's block, from the real allocator.
    nested_in(state, || unsafe { function(block) });
}

/// Does the same as `free`; old programs still use this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the same contract.
    unsafe { free(block) }
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
    // As soon as the function can be called, there may be blocks for it.
    let function = real::realloc().or_else(|| look_up(real::realloc)).filter(|_| !ARENA.owns(old));
    let Some(function) = function else {
        // SAFETY: the caller's block, which is from the arena or null.
        return unsafe { move_out_of_arena(old, size) };
    };
    let begun = record::realloc_begins(old, size);
    let state = current();
    // SAFETY: the caller's arguments.
    let block = nested_in(state, || unsafe { function(old, size) });
    after_realloc(state, Kind::Realloc, begun, old, block, size, 0);
    block
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn reallocarray(old: *mut c_void, count: usize, size: usize) -> *mut c_void {
    let Some(bytes) = count.checked_mul(size) else {
        // SAFETY: `errno` of this thread.
        unsafe { *libc::__errno_location() = libc::ENOMEM };
        record::allocation(current(), Kind::Reallocarray, null_mut(), usize::MAX, count);
        return null_mut();
    };
    if is_early(old) {
        // SAFETY: the caller's block, which is from the arena or null.
        return unsafe { move_out_of_arena(old, bytes) };
    }
    let begun = record::realloc_begins(old, bytes);
    let state = current();
    let block = match real::reallocarray() {
        // SAFETY: the caller's arguments.
        Some(reallocarray) => nested_in(state, || unsafe { reallocarray(old, count, size) }),
        None => forward!(state, realloc(old, bytes)),
    };
    after_realloc(state, Kind::Reallocarray, begun, old, block, bytes, count);
    block
}

#[inline]
fn after_realloc(
    state: &ThreadState,
    kind: Kind,
    begun: Begun,
    old: *mut c_void,
    block: *mut c_void,
    size: usize,
    extra: usize,
) {
    let call = Call { size, address: block as usize, old: old as usize, extra, ..Call::default() };
    record::realloc_ends(state, kind, call, Block::Malloc, begun);
}

/// Resizes a block in the arena by copying its contents to a new block.
///
/// # Safety
/// `old` must be null or a block in the arena. The real functions are used only after they are known.
#[cold]
unsafe fn move_out_of_arena(old: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: any size can be requested.
    let block = unsafe { malloc(size) };
    if !old.is_null() && !block.is_null() {
        // SAFETY: both blocks are valid for the smaller of the two sizes, and are not the same.
        unsafe {
            let bytes = ARENA.size_of(old).min(size);
            core::ptr::copy_nonoverlapping(old.cast::<u8>(), block.cast::<u8>(), bytes);
        }
        release_early();
    }
    block
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    if !real::known() {
        return from_arena(size, align);
    }
    let state = current();
    let block = forward!(state, memalign(align, size));
    record::allocation(state, Kind::Memalign, block, size, align);
    block
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !real::known() {
        return from_arena(size, align);
    }
    let state = current();
    let block = forward!(state, aligned_alloc(align, size));
    record::allocation(state, Kind::AlignedAlloc, block, size, align);
    block
}

#[cfg_attr(not(target_arch = "x86_64"), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !real::known() {
        if !align.is_power_of_two() || align < size_of::<*mut c_void>() {
            return libc::EINVAL;
        }
        let block = early(size, align);
        if block.is_null() {
            return libc::ENOMEM;
        }
        // SAFETY: the caller's place for the result.
        unsafe { place.write(block) };
        return 0;
    }
    let Some(posix_memalign) = real::posix_memalign() else { return libc::ENOMEM };
    let state = current();
    // SAFETY: the caller's arguments.
    let result = nested_in(state, || unsafe { posix_memalign(place, align, size) });
    // SAFETY: the real function succeeded, so it has written to the caller's place.
    let block = if result == 0 { unsafe { place.read() } } else { null_mut() };
    record::allocation(state, Kind::PosixMemalign, block, size, align);
    result
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    if !real::known() {
        return from_arena(size, 4096);
    }
    let state = current();
    let block = forward!(state, valloc(size));
    record::allocation(state, Kind::Valloc, block, size, 0);
    block
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    if !real::known() {
        return from_arena(size.checked_next_multiple_of(4096).unwrap_or(usize::MAX), 4096);
    }
    let state = current();
    let block = forward!(state, pvalloc(size));
    record::allocation(state, Kind::Pvalloc, block, size, 0);
    block
}

/// `free_sized` from C23, which an allocator need not provide.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_sized(block: *mut c_void, size: usize) {
    // SAFETY: the caller's block, from the real allocator.
    unsafe { frees(block, real::free_sized().map(|free| move |block| free(block, size))) };
}

/// `free_aligned_sized` from C23, which an allocator need not provide.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn free_aligned_sized(block: *mut c_void, align: usize, size: usize) {
    // SAFETY: the caller's block, from the real allocator.
    unsafe { frees(block, real::free_aligned_sized().map(|free| move |block| free(block, align, size))) };
}

/// Records a free and frees the block using `function`, or `free` if `function` is `None`.
///
/// # Safety
/// The requirements are the same as for [`free`].
#[inline]
unsafe fn frees(block: *mut c_void, function: Option<impl FnOnce(*mut c_void)>) {
    let Some(function) = function else {
        // SAFETY: by the caller's promise.
        return unsafe { free(block) };
    };
    if is_not_real(block) {
        return;
    }
    let state = current();
    record::call_of(state, Kind::Free, Call { address: block as usize, ..Call::default() });
    nested_in(state, || function(block));
}

/// The names under which the C library exports its own functions, for programs that interpose functions before them.
/// Programs call these names only if the C library has them.
macro_rules! of_the_c_library {
    ($($name:ident($($argument:ident),*) = $kind:ident, $size:expr, $extra:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($argument: usize),*) -> *mut c_void {
                if !real::known() {
                    return null_mut();
                }
                let state = current();
                let block = forward!(state, $name($($argument),*));
                record::allocation(state, Kind::$kind, block, $size, $extra);
                block
            }
        )*
    };
}

of_the_c_library! {
    __libc_malloc(size) = Malloc, size, 0;
    __libc_calloc(count, size) = Calloc, count.saturating_mul(size), count;
    __libc_memalign(align, size) = Memalign, size, align;
    __libc_valloc(size) = Valloc, size, 0;
    __libc_pvalloc(size) = Pvalloc, size, 0;
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_free(block: *mut c_void) {
    // SAFETY: the caller's block, from the C library.
    unsafe { frees(block, real::__libc_free().map(|free| move |block| free(block))) };
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void {
    if is_early(old) {
        // SAFETY: the caller's block, which is from the arena or null.
        return unsafe { move_out_of_arena(old, size) };
    }
    let begun = record::realloc_begins(old, size);
    let state = current();
    let block = forward!(state, __libc_realloc(old, size));
    after_realloc(state, Kind::Realloc, begun, old, block, size, 0);
    block
}

/// Interposed without being recorded, because the result must come from the allocator that owns the block, and an arena
/// block belongs to no allocator.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    if block.is_null() || !real::known() {
        return 0;
    }
    if ARENA.owns(block) {
        // SAFETY: a block in the arena.
        return unsafe { ARENA.size_of(block) };
    }
    match real::malloc_usable_size() {
        // SAFETY: the caller's block, from the real allocator.
        Some(usable) => unsafe { usable(block) },
        None => 0,
    }
}
