//! The modules of a process that runs already: which of their calls are redirected, and when they are looked at. An object that was preloaded has no need
//! of that, as the loader finds its functions first, except for libraries loaded with `RTLD_DEEPBIND`.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::got::{self, Hook};
use super::mapping::pages;
use super::thread_state::nested;
use crate::clock::nanoseconds;

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

/// The hooks: those of functions that end blocks alone come first.
static HOOKS: AtomicPtr<Hook> = AtomicPtr::new(null_mut());
/// How many there are, and how many end blocks alone.
static COUNTS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Says that the object was not preloaded, and what the hooks are; `None` where there is no memory to keep them.
pub(crate) fn are_to_be_redirected(hooks: &mut [Hook]) -> Option<()> {
    let is_end = |hook: &Hook| hook.name == c"free" || hook.name.to_bytes().starts_with(b"_Zd");
    hooks.sort_unstable_by_key(|hook| !is_end(hook));
    let memory = pages(size_of_val(hooks))?.cast::<Hook>();
    // SAFETY: fresh memory of the size, aligned for it, which is never given back.
    unsafe { memory.copy_from_nonoverlapping(hooks.as_ptr(), hooks.len()) };
    let ends = hooks.iter().take_while(|hook| is_end(hook)).count();
    for (place, count) in COUNTS.iter().zip([hooks.len(), ends]) {
        place.store(count, Ordering::Relaxed);
    }
    HOOKS.store(memory, Ordering::Release);
    Some(())
}

/// Returns the hooks of functions that end blocks alone, and all others; `None` if the object was preloaded.
fn hooks() -> Option<(&'static [Hook], &'static [Hook])> {
    let memory = HOOKS.load(Ordering::Acquire);
    let [count, ends] = [&COUNTS[0], &COUNTS[1]].map(|count| count.load(Ordering::Relaxed));
    // SAFETY: null, or so many that were written before.
    (!memory.is_null()).then(|| unsafe { core::slice::from_raw_parts(memory, count) })?.split_at_checked(ends)
}

/// Redirects calls that end blocks first: no block that is recorded ends in a call that is not.
fn redirect_all() -> usize {
    hooks().map_or(0, |(ends, others)| got::redirect(ends) + got::redirect(others))
}

/// Has all modules call the hooks, unless they do so anyhow; `false` if none calls a function that has one.
pub(crate) fn redirect() -> bool {
    if hooks().is_none() {
        return true;
    }
    LOADED.store(got::loaded(), Ordering::Relaxed);
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    redirect_all() > 0
}

/// A module is being loaded, or was, whose calls have to be redirected although this object was preloaded.
static EXPECTING: AtomicBool = AtomicBool::new(false);

/// Has modules that are loaded from now on call the hooks; `false` where there is no memory for that.
pub(crate) fn expect(hooks: &mut [Hook]) -> bool {
    if HOOKS.load(Ordering::Acquire).is_null() && are_to_be_redirected(hooks).is_none() {
        return false;
    }
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    EXPECTING.store(true, Ordering::Release);
    true
}

/// Returns whether one was expected when modules were last looked at.
#[inline]
pub(crate) fn is_expecting() -> bool {
    EXPECTING.load(Ordering::Acquire)
}

/// Has modules that were loaded since call the hooks, too: now.
#[cold]
pub(crate) fn look_now() {
    EXPECTING.store(false, Ordering::Release);
    redirect_all();
}

/// Has them call the functions again: calls that end blocks are recorded until the last.
pub(crate) fn restore() {
    ON.store(false, Ordering::Relaxed);
    if let Some((ends, others)) = hooks() {
        got::restore(others);
        got::restore(ends);
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
            redirect_all();
        }
    });
}
