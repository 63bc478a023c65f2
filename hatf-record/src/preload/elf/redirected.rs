//! The modules of a process that runs already: which of their calls are redirected, and when they are looked at. An object that was preloaded has no need
//! of that, as the loader finds its functions first, except for libraries loaded with `RTLD_DEEPBIND`.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::got::{self, Hook};
use crate::clock::nanoseconds;
use crate::preload::platform::memory::pages;
use crate::preload::platform::thread_state::nested;

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

/// The hooks: those of functions that end blocks alone come first, then those of functions that end one and begin another.
static HOOKS: AtomicPtr<Hook> = AtomicPtr::new(null_mut());
/// How many there are of each: that end blocks, that do both, and all others.
static COUNTS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// Returns which of these a hook is of.
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

/// Says that the object was not preloaded, and what the hooks are; `None` where there is no memory to keep them.
pub(crate) fn set_hooks(hooks: &mut [Hook]) -> Option<()> {
    hooks.sort_unstable_by_key(rank);
    let memory = pages(size_of_val(hooks))?.cast::<Hook>();
    // SAFETY: fresh memory of the size, aligned for it, which is never given back.
    unsafe { memory.copy_from_nonoverlapping(hooks.as_ptr(), hooks.len()) };
    for (wanted, place) in COUNTS.iter().enumerate() {
        place.store(hooks.iter().filter(|hook| rank(hook) == wanted).count(), Ordering::Relaxed);
    }
    HOOKS.store(memory, Ordering::Release);
    Some(())
}

/// Returns the hooks of functions that end blocks alone, of those that do both, and all others; `None` if the object was preloaded.
fn hooks() -> Option<[&'static [Hook]; 3]> {
    let memory = HOOKS.load(Ordering::Acquire);
    let [ends, both, others] = [0, 1, 2].map(|rank| COUNTS.get(rank).map_or(0, |count| count.load(Ordering::Relaxed)));
    // SAFETY: null, or this many that were written before.
    let all = (!memory.is_null()).then(|| unsafe { core::slice::from_raw_parts(memory, ends + both + others) })?;
    Some([all.get(..ends)?, all.get(ends..ends + both)?, all.get(ends + both..)?])
}

/// Redirects calls that end blocks first, then those that do both: no block of a module that is loaded while a recording goes on ends in a call that is not recorded. A
/// `realloc` that was called before its hook was in place has a block from before that of `malloc` was.
/// Does nothing for functions of which `on` is false when it is their turn: another thread may have put the addresses back meanwhile.
fn redirect_all(on: &AtomicBool) -> usize {
    hooks().map_or(0, |hooks| hooks.into_iter().map(|hooks| got::redirect(hooks, on)).sum())
}

/// Has all modules call the hooks, unless they do so anyhow; `false` if none calls a function that has one.
pub(crate) fn redirect() -> bool {
    if hooks().is_none() {
        return true;
    }
    LOADED.store(got::loaded(), Ordering::Relaxed);
    AGAIN.store(AGAIN_MOST, Ordering::Relaxed);
    // Hooks that are called already look at modules from then on. If they did before, they would redirect what is counted here.
    let is_called = redirect_all(&AtomicBool::new(true)) > 0;
    ON.store(true, Ordering::Relaxed);
    is_called
}

/// A module is being loaded, or was, whose calls have to be redirected although this object was preloaded.
static EXPECTING: AtomicBool = AtomicBool::new(false);

/// Has modules that are loaded from now on call the hooks; `false` where there is no memory for that.
pub(crate) fn expect(hooks: &mut [Hook]) -> bool {
    if HOOKS.load(Ordering::Acquire).is_null() && set_hooks(hooks).is_none() {
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
    redirect_all(&ON);
}

/// Has them call the functions again, those that begin blocks first: calls that end some are recorded until the last.
pub(crate) fn restore() {
    ON.store(false, Ordering::Relaxed);
    for hooks in hooks().into_iter().flatten().rev() {
        got::restore(hooks);
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
            redirect_all(&ON);
        }
    });
}
