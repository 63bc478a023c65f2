//! Redirection of calls in the modules of a running process, and the times at which modules are checked. A preloaded
//! object does not need this, because the loader finds its functions first, except for libraries loaded with
//! `RTLD_DEEPBIND`.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::got::{self, Hook};
use crate::clock::nanoseconds;
use crate::preload::platform::memory::pages;
use crate::preload::platform::thread_state::nested;

/// Whether modules are currently being redirected.
static ON: AtomicBool = AtomicBool::new(false);
/// The number of modules ever loaded, as of the last check.
static LOADED: AtomicU64 = AtomicU64::new(0);
/// The time of the last check in milliseconds.
static LOOKED: AtomicU32 = AtomicU32::new(0);
/// The number of remaining checks, because the loader may not have finished with a new module.
static AGAIN: AtomicU32 = AtomicU32::new(0);
/// The interval between checks in milliseconds.
const LOOK: u32 = 20;

/// The hooks, in this order: hooks of functions that only end blocks, of functions that end a block and begin another,
/// and of all other functions.
static HOOKS: AtomicPtr<Hook> = AtomicPtr::new(null_mut());
/// The number of hooks of each kind: hooks of functions that only end blocks, of functions that end a block and begin
/// another, and of all other functions.
static COUNTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Returns the kind of a hook.
fn rank(hook: &Hook) -> usize {
    let name = hook.name.to_bytes();
    let name = name.strip_prefix(b"__libc_").unwrap_or(name);
    match name {
        b"free" | b"cfree" | b"free_sized" | b"free_aligned_sized" => 0,
        b"realloc" | b"reallocarray" => 1,
        _ if name.starts_with(b"_Zd") => 0,
        _ => 2,
    }
}

/// Stores the hooks. Stored hooks also indicate that the object was not preloaded. Returns `None` if there is no memory
/// to store them.
pub(crate) fn set_hooks(hooks: &mut [Hook]) -> Option<()> {
    hooks.sort_unstable_by_key(rank);
    let memory = pages(size_of_val(hooks))?.cast::<Hook>();
    // SAFETY: fresh memory of this size, aligned for it, which is never unmapped.
    unsafe { memory.copy_from_nonoverlapping(hooks.as_ptr(), hooks.len()) };
    for (wanted, place) in COUNTS.iter().enumerate() {
        place.store(hooks.iter().filter(|hook| rank(hook) == wanted).count(), Ordering::Relaxed);
    }
    HOOKS.store(memory, Ordering::Release);
    Some(())
}

/// Returns the hooks of functions that only end blocks, of functions that end a block and begin another, and of all
/// other functions. Returns `None` if the object was preloaded.
fn hooks() -> Option<[&'static [Hook]; 3]> {
    let memory = HOOKS.load(Ordering::Acquire);
    let [ends, both, others] = [0, 1, 2].map(|rank| COUNTS.get(rank).map_or(0, |count| count.load(Ordering::Relaxed)));
    // SAFETY: null, or this many hooks that were written before.
    let all = (!memory.is_null()).then(|| unsafe { core::slice::from_raw_parts(memory, ends + both + others) })?;
    Some([all.get(..ends)?, all.get(ends..ends + both)?, all.get(ends + both..)?])
}

/// Redirects calls that only end blocks first, followed by calls that end a block and begin another. No block of a
/// module loaded during a recording therefore ends in a call that is not recorded. A `realloc` called before its hook
/// was installed returns a block from before the hook of `malloc` was installed. Skips functions whose turn comes after
/// `on` has become false, because another thread may have restored the addresses in the meantime.
fn redirect_all(on: &AtomicBool) -> usize {
    hooks().map_or(0, |hooks| hooks.into_iter().map(|hooks| got::redirect(hooks, on)).sum())
}

/// Makes all modules call the hooks, unless they already do. Returns `false` if no module calls a hooked function.
pub(crate) fn redirect() -> bool {
    if hooks().is_none() {
        return true;
    }
    LOADED.store(got::loaded(), Ordering::Relaxed);
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    // Hooks that are already called check modules from then on. If they did so before, they would redirect calls that
    // are counted here.
    let is_called = redirect_all(&AtomicBool::new(true)) > 0;
    ON.store(true, Ordering::Relaxed);
    is_called
}

/// Whether a module is being or was loaded whose calls must be redirected although this object was preloaded.
static EXPECTING: AtomicBool = AtomicBool::new(false);

/// Makes modules loaded from now on call the hooks. Returns `false` if there is no memory for the hooks.
pub(crate) fn expect(hooks: &mut [Hook]) -> bool {
    if HOOKS.load(Ordering::Acquire).is_null() && set_hooks(hooks).is_none() {
        return false;
    }
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
    EXPECTING.store(true, Ordering::Release);
    true
}

/// Returns whether a module whose calls must be redirected was expected at the last check.
#[inline]
pub(crate) fn is_expecting() -> bool {
    EXPECTING.load(Ordering::Acquire)
}

/// Makes modules loaded in the meantime call the hooks, immediately.
#[cold]
pub(crate) fn look_now() {
    EXPECTING.store(false, Ordering::Release);
    redirect_all(&ON);
}

/// Makes modules call the original functions again, starting with functions that begin blocks, so that calls that end
/// blocks are recorded until the last moment.
pub(crate) fn restore() {
    ON.store(false, Ordering::Relaxed);
    for hooks in hooks().into_iter().flatten().rev() {
        got::restore(hooks);
    }
}

/// The number of checks after a module was loaded.
const AGAIN_MOST: u32 = 5;

/// Makes modules loaded in the meantime call the hooks. Called in hooks, because the loader does not announce new
/// modules.
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
            redirect_all(&ON);
        }
    });
}
