//! Which functions of a process that runs already are hooked, and when its modules are looked at.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::got::{self, Hook};
use super::thread_state::nested;
use super::{alloc, cxx, exit, jump, real, stack, threads};
use crate::clock::nanoseconds;

/// The object was not preloaded: the modules call the real functions, unless they are redirected.
static INJECTED: AtomicBool = AtomicBool::new(false);
/// Modules are redirected at this time.
static ON: AtomicBool = AtomicBool::new(false);
/// How many modules were ever loaded when they were last looked at.
static LOADED: AtomicU64 = AtomicU64::new(0);
/// When that was, in milliseconds.
static LOOKED: AtomicU32 = AtomicU32::new(0);
/// How often the modules are looked at once more, as the loader may not be done with one that is there.
static AGAIN: AtomicU32 = AtomicU32::new(0);
/// How often it is looked, in milliseconds.
const LOOK: u32 = 20;

/// Returns a hook of the function of this name.
macro_rules! hook {
    ($module:ident, $name:ident) => {
        Hook {
            name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            ours: $module::$name as *const () as usize,
            real: real::$name().map_or(0, |function| function as *const () as usize),
        }
    };
}

/// Hooks of C functions.
const C: usize = 17;

/// Calls `act` with the hooks of functions that end blocks alone, and with all others.
fn with_hooks(act: impl FnOnce(&[Hook], &[Hook]) -> usize) -> usize {
    let of_c: [Hook; C] = [
        hook!(alloc, malloc),
        hook!(alloc, calloc),
        hook!(alloc, realloc),
        hook!(alloc, reallocarray),
        hook!(alloc, free),
        hook!(alloc, memalign),
        hook!(alloc, posix_memalign),
        hook!(alloc, aligned_alloc),
        hook!(alloc, valloc),
        hook!(alloc, pvalloc),
        hook!(threads, pthread_create),
        hook!(exit, _exit),
        hook!(exit, _Exit),
        hook!(jump, longjmp),
        hook!(jump, _longjmp),
        hook!(jump, siglongjmp),
        hook!(stack, dlclose),
    ];
    let of_cxx = cxx::hooks();
    let mut all = [Hook { name: c"", ours: 0, real: 0 }; C + cxx::HOOKS];
    for (to, from) in all.iter_mut().zip(of_c.iter().chain(&of_cxx)) {
        *to = *from;
    }
    let is_end = |hook: &Hook| hook.name == c"free" || hook.name.to_bytes().starts_with(b"_Zd");
    all.sort_unstable_by_key(|hook| !is_end(hook));
    let ends = all.iter().take_while(|hook| is_end(hook)).count();
    let (ends, others) = all.split_at(ends);
    act(ends, others)
}

/// Redirects calls that end blocks first: no block that is recorded ends in a call that is not.
fn redirect_all(ends: &[Hook], others: &[Hook]) -> usize {
    got::redirect(ends) + got::redirect(others)
}

/// Has calls that end blocks be recorded until the last.
fn restore_all(ends: &[Hook], others: &[Hook]) -> usize {
    got::restore(others) + got::restore(ends)
}

/// Says that the object was not preloaded.
pub(crate) fn are_to_be_redirected() {
    INJECTED.store(true, Ordering::Relaxed);
}

/// Has all modules call the hooks, unless they do so anyhow; `false` if none calls a function that has one.
pub(crate) fn redirect() -> bool {
    if !INJECTED.load(Ordering::Relaxed) {
        return true;
    }
    LOADED.store(got::loaded(), Ordering::Relaxed);
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    with_hooks(redirect_all) > 0
}

/// Has them call the functions again.
pub(crate) fn restore() {
    ON.store(false, Ordering::Relaxed);
    if INJECTED.load(Ordering::Relaxed) {
        with_hooks(restore_all);
    }
}

/// How often modules are looked at after one was loaded.
const AGAIN_MOST: u32 = 5;

/// Has modules that were loaded since call the hooks, too. Called in hooks, as nobody else says that there are some.
#[cold]
pub(crate) fn look() {
    #[expect(clippy::cast_possible_truncation, reason = "only differences count")]
    let now = (nanoseconds() / 1_000_000) as u32;
    let before = LOOKED.load(Ordering::Relaxed);
    let is_late = now.wrapping_sub(before) >= LOOK && ON.load(Ordering::Relaxed);
    if !is_late || LOOKED.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return;
    }
    nested(|| {
        let loaded = got::loaded();
        if LOADED.swap(loaded, Ordering::Relaxed) != loaded {
            AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
        }
        let again = AGAIN.load(Ordering::Relaxed);
        if again > 0 {
            AGAIN.store(again - 1, Ordering::Relaxed);
            with_hooks(redirect_all);
        }
    });
}
