//! `exec` and `posix_spawn` with an environment of the program's own: the program that is started is recorded as well, so it gets the
//! variables that it needs for that.
//!
//! Nothing is allocated, as the caller may be a child made by `vfork`, which shares its parent's memory: the longer list of
//! variables lies on the stack, or if it is long, in pages that the thread keeps.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::Ordering;

use super::exit;
use crate::preload::elf::real;
use crate::preload::platform::kept_pages::KeptPages;
use crate::preload::session::follow;
use crate::preload::session::gone_recorder;
use crate::preload::session::origin::{self, VARIABLES};
use crate::preload::spool::session;

type List = *const *const c_char;

/// Entries of a list on the stack: the caller may be a handler on a stack of few kilobytes.
const SHORT: usize = 64;

/// Returns whether a list has a variable.
///
/// # Safety
/// `list` is null, or a list of C strings that ends with null.
unsafe fn has(list: List, name: &CStr) -> bool {
    let length = name.to_bytes().len();
    let mut at = list;
    // SAFETY: the caller's promise; no string is looked at behind its end, as the name has no zero in it.
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

/// Calls a function by which the process becomes another program. Where that does not load the recorder, it is known that it became one.
fn becoming(call: impl FnOnce() -> c_int) -> c_int {
    becomes(1);
    let result = call();
    becomes(0);
    result
}

/// Notes that this process becomes another program, or does not.
fn becomes(another: u32) {
    if let Some(session) = session::current().filter(|session| !exit::is_child(session)) {
        session.spool.header().becomes.store(another, Ordering::Relaxed);
    }
}

/// Calls a function with the list, or a longer one.
///
/// # Safety
/// `list` is null, or a list of C strings that ends with null.
unsafe fn with_needed(list: List, becomes: bool, call: impl FnOnce(List) -> c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { gone_recorder::forget(list) };
    let [spool, ..] = VARIABLES;
    // A list that has the first has them all, or is to have its own of the others.
    // SAFETY: the caller's promise.
    if !is_recorded(becomes) || unsafe { has(list, spool) } {
        return call(list);
    }
    let mut count = 0;
    // SAFETY: the caller's promise.
    while unsafe { !list.is_null() && !(*list.add(count)).is_null() } {
        count += 1;
    }
    let needed = count + VARIABLES.len() + 1;
    if needed <= SHORT {
        // SAFETY: the caller's promises.
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

/// Calls a function with a longer list on the stack. It has a separate frame so that a call with a short list uses no stack for it.
///
/// # Safety
/// `list` is null or has this many entries, and with those that are needed fewer than [`SHORT`].
#[inline(never)]
unsafe fn with_short(list: List, count: usize, call: impl FnOnce(List) -> c_int) -> c_int {
    let mut short = [null(); SHORT];
    // SAFETY: as long as that, and zeros.
    unsafe { lengthen(short.as_mut_ptr(), list, count) };
    call(short.as_ptr())
}

/// Makes a list of another's entries and the variables that it lacks.
///
/// # Safety
/// `longer` is zeros, long enough for all of them and a null; `list` is null or has this many entries.
unsafe fn lengthen(longer: *mut *const c_char, list: List, count: usize) {
    // SAFETY: the caller's promises.
    unsafe {
        if count > 0 {
            core::ptr::copy_nonoverlapping(list, longer, count);
        }
        let mut end = longer.add(count);
        for (place, name) in VARIABLES.iter().enumerate() {
            // A library that the program preloads itself stays as it is: then the image is not recorded.
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
            /// As the function of this name.
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
    /// `execve` that keeps the recording.
    execve(*const c_char);
    /// `execvpe` that keeps the recording.
    execvpe(*const c_char);
    /// `fexecve` that keeps the recording.
    fexecve(c_int);
}

/// Does what comes before a function that does not return here, even where it fails: a process that ends by itself then has not become another program.
#[cfg(target_arch = "x86_64")]
fn before_exec() {
    gone_recorder::forget_own();
    becomes(1);
}

#[cfg(target_arch = "x86_64")]
super::jump_to_real::jump_to_real! {
    /// `execl` that starts no program with a recorder that is gone.
    execl known after |_, _| before_exec();
    /// `execlp` that does not, either.
    execlp known after |_, _| before_exec();
}

/// Calls a function that starts another process.
fn from_here<T>(call: impl FnOnce() -> T) -> T {
    call()
}

macro_rules! by_the_c_library {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty, $failed:expr, $by:expr;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the function of this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                let function = if real::known() { real::$name() } else { None };
                let Some(function) = function else {
                    // SAFETY: `errno` of this thread.
                    unsafe { *libc::__errno_location() = libc::ENOSYS };
                    return $failed;
                };
                gone_recorder::forget_own();
                // SAFETY: the caller's arguments.
                $by(|| unsafe { function($($argument),*) })
            }
        )*
    };
}

by_the_c_library! {
    /// `execv` that starts no program with a recorder that is gone.
    execv(file: *const c_char, arguments: List) -> c_int, -1, becoming;
    /// `execvp` that does not, either.
    execvp(file: *const c_char, arguments: List) -> c_int, -1, becoming;
    /// `system` that does not, either.
    system(command: *const c_char) -> c_int, -1, from_here;
    /// `popen` that does not, either.
    popen(command: *const c_char, mode: *const c_char) -> *mut libc::FILE, null_mut(), from_here;
}

macro_rules! spawn {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Safety
            /// As the function of this name.
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
    /// `posix_spawn` that keeps the recording.
    posix_spawn;
    /// `posix_spawnp` that keeps the recording.
    posix_spawnp;
}
