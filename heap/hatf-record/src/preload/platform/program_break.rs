//! The program break, which the C library's `malloc` moves by calls that are not observed. Its position is in a
//! variable of the C library.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// The address of the variable, or null if the C library lacks it.
static FOUND: AtomicPtr<AtomicUsize> = AtomicPtr::new(null_mut());
/// The same address, or null while the break is not recorded.
static PLACE: AtomicPtr<AtomicUsize> = AtomicPtr::new(null_mut());
/// The last known position of the break.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// Looks up the variable. The lookup acquires the loader's lock, so it is done only once, together with the lookup of
/// the real functions.
pub(crate) fn look_up() {
    // SAFETY: a C string. The result is null, or a word in the C library that stays.
    let place = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__curbrk".as_ptr()) };
    FOUND.store(place.cast(), Ordering::Relaxed);
}

/// Starts watching the variable.
pub(crate) fn begin() {
    LAST.store(0, Ordering::Relaxed);
    PLACE.store(FOUND.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns the position of the break if it has moved since the last call.
#[inline]
pub(crate) fn moved() -> Option<usize> {
    // SAFETY: null, or the C library's word, which is aligned.
    let place = unsafe { PLACE.load(Ordering::Relaxed).as_ref() }?;
    let end = place.load(Ordering::Relaxed);
    (end != LAST.load(Ordering::Relaxed) && LAST.swap(end, Ordering::Relaxed) != end).then_some(end)
}
