//! Recording of a running process: `hatf record --pid` makes it load this object and calls these functions in one of
//! its threads.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::preload::elf::got::{self, Hook};
use crate::preload::elf::{real, redirected};
use crate::preload::hooks::{alloc, control, cxx, dlclose, exit, fork, lock, longjmp, short, threads, vfork};
use crate::preload::platform::path::Path;
use crate::preload::platform::thread_state::nested;
use crate::preload::session::{begin, origin, thread_end};
use crate::preload::spool::session;
use crate::preload::stacks::tree;
use crate::reasons::Answer;

/// Whether the process has already been recorded in this way.
static PREPARED: AtomicBool = AtomicBool::new(false);

/// Returns a hook for the function with this name.
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

/// The number of hooks for C functions.
const C: usize = 29;

/// Returns all hooks.
pub(crate) fn hooks() -> [Hook; C + cxx::HOOKS] {
    let of_c: [Hook; C] = [
        hook!(short, malloc),
        hook!(short, calloc),
        hook!(short, realloc),
        hook!(alloc, reallocarray),
        hook!(short, free),
        hook!(short, memalign),
        hook!(short, posix_memalign),
        hook!(short, aligned_alloc),
        hook!(alloc, valloc),
        hook!(alloc, pvalloc),
        hook!(alloc, free_sized),
        hook!(alloc, free_aligned_sized),
        hook!(alloc, __libc_malloc),
        hook!(alloc, __libc_calloc),
        hook!(alloc, __libc_realloc),
        hook!(alloc, __libc_memalign),
        hook!(alloc, __libc_valloc),
        hook!(alloc, __libc_pvalloc),
        hook!(alloc, __libc_free),
        hook!(threads, pthread_create),
        hook!(vfork, vfork),
        hook!(exit, _exit),
        hook!(exit, _Exit),
        hook!(longjmp, longjmp),
        hook!(longjmp, _longjmp),
        hook!(longjmp, siglongjmp),
        hook!(longjmp, __longjmp_chk),
        hook!(dlclose, dlclose),
        hook!(lock, mlockall),
    ];
    let of_cxx = cxx::hooks();
    let mut all = [Hook { name: c"", ours: 0, real: 0 }; C + cxx::HOOKS];
    for (to, from) in all.iter_mut().zip(of_c.iter().chain(&of_cxx)) {
        *to = *from;
    }
    all
}

/// Starts recording this process into the spool at this path. Recording is off initially if `on` is 0.
///
/// # Safety
/// `events` must be a C string or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hatf_recorder_attach(events: *const c_char, on: c_int) -> c_int {
    if events.is_null() {
        return Answer::Failed as c_int;
    }
    if session::current().is_some_and(|session| !session.is_abandoned()) {
        return Answer::Recorded as c_int;
    }
    // SAFETY: by the caller's promise.
    let path = Path::new().with(unsafe { CStr::from_ptr(events) }.to_bytes());
    let Some(path) = path else { return Answer::Failed as c_int };
    nested(|| {
        end();
        if !PREPARED.swap(true, Ordering::Relaxed) {
            let is_preloaded = got::is_preloaded();
            if !is_preloaded {
                real::look_before();
                real::known();
                cxx::look_up();
                if redirected::set_hooks(&mut hooks()).is_none() {
                    return Answer::NoSpool as c_int;
                }
            }
            // If the process was recorded from the start, this has already been done.
            if !is_preloaded || session::inherited().is_none() {
                fork::register();
                thread_end::create_key();
                exit::register();
            }
        }
        origin::remember(path);
        begin::again();
        let Some(session) = begin::session_after_again() else { return Answer::NoSpool as c_int };
        session.set_multithreaded();
        // Tells the reader that earlier blocks exist. `hatf` has already requested this: nothing is recorded until all
        // calls reach hooks. Otherwise, a block whose start was seen by a hook could end in a call that is not hooked
        // yet. Hooks may already be called by threads that were in a hook when an earlier recording ended, and through
        // addresses that the program has stored.
        control::hatf_recorder_stop();
        if !redirected::redirect() {
            end();
            return Answer::NoCalls as c_int;
        }
        if on != 0 {
            control::hatf_recorder_start();
        }
        Answer::Done as c_int
    })
}

/// Ends the recording, so that the process calls the original functions again.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn hatf_recorder_detach() -> c_int {
    nested(end);
    Answer::Done as c_int
}

fn end() {
    // Nothing may be recorded from now on: hooks that are still called, through addresses that the program has stored,
    // would record blocks whose ends are not recorded.
    session::end();
    redirected::restore();
    // Other threads may be in the middle of a hook; nobody reads what they still write.
    if session::retire_spool() {
        tree::retire();
    }
}
