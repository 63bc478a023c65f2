//! `exec` and `posix_spawn`. The started program should be recorded as well, so the required variables are added to the
//! environment that the caller gives it. This is the caller's own environment if the function does not take one; a
//! program such as `env -i` may have emptied it.
//!
//! Nothing is allocated, because the caller may be a child created by `vfork`, which shares its parent's memory. The
//! extended list of variables is on the stack or, if it is long, in pages that the thread keeps.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;

use super::exit;
use crate::bell::Work;
use crate::preload::elf::real;
use crate::preload::platform::kept_pages::KeptPages;
use crate::preload::session::follow;
use crate::preload::session::gone_recorder;
use crate::preload::session::origin::{self, VARIABLES};
use crate::preload::spool::session;

type List = *const *const c_char;

/// The maximum number of entries in a list on the stack. It is small because the caller may be a signal handler on a
/// stack of a few kilobytes.
const SHORT: usize = 64;

/// Returns whether a list contains a variable.
///
/// # Safety
/// `list` must be null, or a list of C strings that ends with null.
unsafe fn has(list: List, name: &CStr) -> bool {
    let length = name.to_bytes().len();
    let mut at = list;
    // SAFETY: by the caller's promise; no string is read past its end, as the name has no zero in it.
    unsafe {
        while !at.is_null() && !(*at).is_null() {
            if libc::strncmp(*at, name.as_ptr(), length) == 0 && *(*at).add(length) == b'=' as c_char {
                return true;
            }
            at = at.add(1);
        }
    }
    false
}

/// Returns whether a program that this process starts, or becomes, is recorded.
fn is_recorded(becomes: bool) -> bool {
    follow::is_on() || becomes && session::current().is_some_and(|session| !exit::is_child(session))
}

/// Calls a function that replaces the process image. The change is noted, so it is known even if the new program does
/// not load the recorder.
fn becoming(call: impl FnOnce() -> c_int) -> c_int {
    becomes(1);
    let result = call();
    becomes(0);
    result
}

/// Records that this process is becoming another program, or no longer is.
fn becomes(another: u32) {
    if let Some(session) = session::current().filter(|session| !exit::is_child(session)) {
        session.spool.header().becomes.store(another, Ordering::Relaxed);
        session.spool.header().ring(Work::Events);
    }
}

/// Calls a function with the given list, extended if necessary.
///
/// # Safety
/// `list` must be null, or a list of C strings that ends with null.
unsafe fn with_needed(list: List, becomes: bool, call: impl FnOnce(List) -> c_int) -> c_int {
    follow::ring();
    // SAFETY: by the caller's promise.
    unsafe { gone_recorder::forget(list) };
    let [spool, ..] = VARIABLES;
    // A list that contains the first variable either contains all of them or intentionally sets its own values for the
    // rest.
    // SAFETY: by the caller's promise.
    if !is_recorded(becomes) || unsafe { has(list, spool) } {
        return call(list);
    }
    let mut count = 0;
    // SAFETY: by the caller's promise.
    while unsafe { !list.is_null() && !(*list.add(count)).is_null() } {
        count += 1;
    }
    let needed = count + VARIABLES.len() + 1;
    if needed <= SHORT {
        // SAFETY: by the caller's promises.
        return unsafe { with_short(list, count, call) };
    }
    let Some(pages) = KeptPages::take(needed * size_of::<*const c_char>()) else { return call(list) };
    let longer = pages.memory().cast::<*const c_char>();
    // SAFETY: as many entries, aligned for them, which only this call uses.
    let result = unsafe {
        longer.write_bytes(0, needed);
        lengthen(longer, list, count);
        call(longer)
    };
    pages.give_back();
    result
}

/// Calls a function with an extended list on the stack. This is a separate frame so that a call with an unchanged list
/// needs no stack space for an extended one.
///
/// # Safety
/// `list` must be null or have this many entries, which together with the required ones are fewer than [`SHORT`].
#[inline(never)]
unsafe fn with_short(list: List, count: usize, call: impl FnOnce(List) -> c_int) -> c_int {
    let mut short = [null(); SHORT];
    // SAFETY: as long as that, and zeros.
    unsafe { lengthen(short.as_mut_ptr(), list, count) };
    call(short.as_ptr())
}

/// Copies a list and adds the variables that it lacks.
///
/// # Safety
/// `longer` must be zeros, long enough for all entries and a null; `list` must be null or have this many entries.
unsafe fn lengthen(longer: *mut *const c_char, list: List, count: usize) {
    // SAFETY: by the caller's promises.
    unsafe {
        if count > 0 {
            core::ptr::copy_nonoverlapping(list, longer, count);
        }
        let mut end = longer.add(count);
        for (place, name) in VARIABLES.iter().enumerate() {
            // A library preloaded by the program itself is left unchanged; in that case the image is not recorded.
            let ours = origin::variable(place).filter(|_| !has(list, name));
            if let Some(ours) = ours {
                end.write(ours.as_ptr());
                end = end.add(1);
            }
        }
    }
}

macro_rules! exec {
    ($($(#[$doc:meta])* $name:ident($file:ty);)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(file: $file, arguments: List, list: List) -> c_int {
                let function = if real::known() { real::$name() } else { None };
                let Some(exec) = function else {
                    // SAFETY: `errno` of this thread.
                    unsafe { *libc::__errno_location() = libc::ENOSYS };
                    return -1;
                };
                // SAFETY: the caller's arguments.
                unsafe { with_needed(list, true, |list| becoming(|| exec(file, arguments, list))) }
            }
        )*
    };
}

exec! {
    /// `execve`, extended to continue the recording.
    execve(*const c_char);
    /// `execvpe`, extended to continue the recording.
    execvpe(*const c_char);
    /// `fexecve`, extended to continue the recording.
    fexecve(c_int);
}

unsafe extern "C" {
    static environ: List;
}

/// `execv`, extended to continue the recording.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execv(file: *const c_char, arguments: List) -> c_int {
    // SAFETY: the caller's arguments, and the list that the C library would use.
    unsafe { execve(file, arguments, environ) }
}

/// `execvp`, extended to continue the recording.
///
/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn execvp(file: *const c_char, arguments: List) -> c_int {
    // SAFETY: the caller's arguments, and the list that the C library would use.
    unsafe { execvpe(file, arguments, environ) }
}

/// Prepares for a call that does not return here even if it fails. If the process then exits by itself, it has not
/// become another program.
#[cfg(target_arch = "x86_64")]
fn before_exec() {
    follow::ring();
    gone_recorder::forget_own();
    becomes(1);
}

#[cfg(target_arch = "x86_64")]
super::jump_to_real::jump_to_real! {
    /// `execl`, extended so that a program is never started with a recorder that is gone.
    execl known after |_, _| before_exec();
    /// `execlp`, extended in the same way.
    execlp known after |_, _| before_exec();
}

macro_rules! by_the_c_library {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $failed:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let function = if real::known() { real::$name() } else { None };
                let Some(function) = function else {
                    // SAFETY: `errno` of this thread.
                    unsafe { *libc::__errno_location() = libc::ENOSYS };
                    return $failed;
                };
                follow::ring();
                gone_recorder::forget_own();
                // SAFETY: the caller's arguments.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

by_the_c_library! {
    /// `system`, extended so that a program is never started with a recorder that is gone.
    system(command: *const c_char) -> c_int, -1;
    /// `popen`, extended in the same way.
    popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE, null_mut();
}

macro_rules! spawn {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                process: *mut libc::pid_t,
                file: *const c_char,
                actions: *const c_void,
                attributes: *const c_void,
                arguments: List,
                list: List,
            ) -> c_int {
                let function = if real::known() { real::$name() } else { None };
                let Some(spawn) = function else { return libc::ENOSYS };
                // SAFETY: the caller's arguments.
                unsafe {
                    with_needed(list, false, |list| spawn(process, file, actions, attributes, arguments, list))
                }
            }
        )*
    };
}

spawn! {
    /// `posix_spawn`, extended to continue the recording.
    posix_spawn;
    /// `posix_spawnp`, extended to continue the recording.
    posix_spawnp;
}
