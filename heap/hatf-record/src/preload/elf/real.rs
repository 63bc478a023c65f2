//! The underlying functions, which are the next ones in the program's search order.
//!
//! They are looked up with `dlsym(RTLD_NEXT)`, never by a libc-internal name: the program may use its own allocator
//! (jemalloc, tcmalloc, mimalloc) after us, and the blocks of one allocator must not reach another.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

#[cfg(feature = "preload")]
use crate::arena::Arena;
use crate::preload::platform::thread_state::nested;

/// The source of memory while the real functions are being looked up.
#[cfg(feature = "preload")]
pub(crate) static ARENA: Arena = Arena::new();

static STATE: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = 0;
const LOOKING: u32 = 1;
const KNOWN: u32 = 2;

/// Returns whether the real functions can be called. The first call looks them up; in the meantime, the result is
/// `false`, and calls are served from the arena.
#[inline]
pub(crate) fn known() -> bool {
    STATE.load(Ordering::Acquire) == KNOWN || look_up()
}

/// Looks up all functions, once per process.
///
/// The lookup acquires the loader's lock, which a forked child never obtains if another thread of its parent held it.
/// Hooks must not call this in such a child, so the constructor and the hook of `pthread_create` look everything up
/// before there is a second thread, and a child inherits the results.
#[cold]
#[inline(never)]
fn look_up() -> bool {
    if STATE.compare_exchange(UNKNOWN, LOOKING, Ordering::Acquire, Ordering::Acquire).is_err() {
        return STATE.load(Ordering::Acquire) == KNOWN;
    }
    nested(look_up_all);
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    {
        let functions = FREQUENT.map(|function| function.load(Ordering::Relaxed) as usize);
        REENTRANT.store(super::got::call_allocators(&functions), Ordering::Relaxed);
    }
    STATE.store(KNOWN, Ordering::Release);
    true
}

/// Whether the allocator calls hooked functions itself.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
static REENTRANT: AtomicBool = AtomicBool::new(false);

/// Returns whether the allocator calls hooked functions itself.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn is_reentrant() -> bool {
    REENTRANT.load(Ordering::Relaxed)
}

/// The functions to which hooks jump without recording the call.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
static FREQUENT: [&AtomicPtr<c_void>; 7] = [
    &pointers::malloc,
    &pointers::calloc,
    &pointers::realloc,
    &pointers::free,
    &pointers::memalign,
    &pointers::aligned_alloc,
    &pointers::posix_memalign,
];

/// Returns whether all functions exist to which hooks jump without recording the call.
#[cfg(all(feature = "preload", target_arch = "x86_64"))]
pub(crate) fn has_frequent() -> bool {
    FREQUENT.iter().all(|function| !function.load(Ordering::Relaxed).is_null())
}

/// Whether this object was loaded later instead of being preloaded: no module finds our functions by name, and no
/// functions follow them.
static LATER: AtomicBool = AtomicBool::new(false);

/// Makes lookups search the modules loaded before this object.
pub(crate) fn look_before() {
    LATER.store(true, Ordering::Release);
}

/// Returns the next function with this name after ours, if there is one.
pub(crate) fn next(name: &CStr) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    if LATER.load(Ordering::Acquire) {
        return super::got::look_up(name) as *mut c_void;
    }
    // If there is no such function, the loader creates an error message, for which it calls the program's own `malloc`.
    // That `malloc` may wait for a call to `mmap`, which needs the function being looked up here.
    #[cfg(target_arch = "x86_64")]
    if super::got::program_defines(c"malloc") && super::got::look_up(name) == 0 {
        return null_mut();
    }
    // SAFETY: a C string, and a handle that dlsym knows.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

macro_rules! real_functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)*) => {
        #[expect(non_upper_case_globals, reason = "the names are those of the stored functions")]
        pub(crate) mod pointers {
            use super::*;
            $(pub(crate) static $name: AtomicPtr<c_void> = AtomicPtr::new(null_mut());)*
        }

        fn look_up_all() {
            #[cfg(target_pointer_width = "64")]
            crate::preload::platform::program_break::look_up();
            let names = [$(concat!(stringify!($name), "\0")),*];
            let functions = names.map(|name| CStr::from_bytes_with_nul(name.as_bytes()).map_or(null_mut(), next));
            // Nothing is stored during the lookups, and `malloc` is stored last: a hook that finds one of the functions
            // may call it, and finds the functions to resize and free its blocks.
            for (place, function) in [$(&pointers::$name),*].into_iter().zip(functions).rev() {
                place.store(function, Ordering::Release);
            }
        }

        $(
            /// Returns the real function with this name, if there is one.
            #[inline]
            #[allow(dead_code, non_snake_case, reason = "named like the real function, which may only be jumped to")]
            pub(crate) fn $name() -> Option<unsafe extern "C" fn($($argument),*) -> $result> {
                // SAFETY: the pointer is null, which is None, or dlsym's result for the name of a C function with this
                // signature.
                unsafe { transmute(pointers::$name.load(Ordering::Relaxed)) }
            }
        )*
    };
}

/// A function that `pthread_create` runs.
pub(crate) type Routine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

real_functions! {
    malloc: fn(usize) -> *mut c_void;
    calloc: fn(usize, usize) -> *mut c_void;
    realloc: fn(*mut c_void, usize) -> *mut c_void;
    reallocarray: fn(*mut c_void, usize, usize) -> *mut c_void;
    free: fn(*mut c_void) -> ();
    memalign: fn(usize, usize) -> *mut c_void;
    posix_memalign: fn(*mut *mut c_void, usize, usize) -> c_int;
    aligned_alloc: fn(usize, usize) -> *mut c_void;
    valloc: fn(usize) -> *mut c_void;
    pvalloc: fn(usize) -> *mut c_void;
    free_sized: fn(*mut c_void, usize) -> ();
    free_aligned_sized: fn(*mut c_void, usize, usize) -> ();
    __libc_malloc: fn(usize) -> *mut c_void;
    __libc_calloc: fn(usize, usize) -> *mut c_void;
    __libc_realloc: fn(*mut c_void, usize) -> *mut c_void;
    __libc_memalign: fn(usize, usize) -> *mut c_void;
    __libc_valloc: fn(usize) -> *mut c_void;
    __libc_pvalloc: fn(usize) -> *mut c_void;
    __libc_free: fn(*mut c_void) -> ();
    malloc_usable_size: fn(*mut c_void) -> usize;
    pthread_create: fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        Routine,
        *mut c_void
    ) -> c_int;
    pthread_getattr_default_np: fn(*mut libc::pthread_attr_t) -> c_int;
    pthread_setname_np: fn(libc::pthread_t, *const c_char) -> c_int;
    mmap: fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
    mmap64: fn(*mut c_void, usize, c_int, c_int, c_int, libc::off64_t) -> *mut c_void;
    munmap: fn(*mut c_void, usize) -> c_int;
    mremap: fn(*mut c_void, usize, usize, c_int, *mut c_void) -> *mut c_void;
    madvise: fn(*mut c_void, usize, c_int) -> c_int;
    brk: fn(*mut c_void) -> c_int;
    sbrk: fn(libc::intptr_t) -> *mut c_void;
    fork: fn() -> libc::pid_t;
    _Fork: fn() -> libc::pid_t;
    vfork: fn() -> libc::pid_t;
    _exit: fn(c_int) -> !;
    _Exit: fn(c_int) -> !;
    longjmp: fn(*mut c_void, c_int) -> !;
    _longjmp: fn(*mut c_void, c_int) -> !;
    siglongjmp: fn(*mut c_void, c_int) -> !;
    __longjmp_chk: fn(*mut c_void, c_int) -> !;
    setrlimit: fn(c_uint, *const libc::rlimit) -> c_int;
    setrlimit64: fn(c_uint, *const libc::rlimit) -> c_int;
    prlimit: fn(libc::pid_t, c_uint, *const libc::rlimit, *mut libc::rlimit) -> c_int;
    prlimit64: fn(libc::pid_t, c_uint, *const libc::rlimit, *mut libc::rlimit) -> c_int;
    mlockall: fn(c_int) -> c_int;
    prctl: fn(c_int, c_ulong, c_ulong, c_ulong, c_ulong) -> c_int;
    execve: fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    execvpe: fn(*const c_char, *const *const c_char, *const *const c_char) -> c_int;
    system: fn(*const c_char) -> c_int;
    popen: fn(*const c_char, *const c_char) -> *mut libc::FILE;
    posix_spawn: fn(
        *mut libc::pid_t,
        *const c_char,
        *const c_void,
        *const c_void,
        *const *const c_char,
        *const *const c_char
    ) -> c_int;
    posix_spawnp: fn(
        *mut libc::pid_t,
        *const c_char,
        *const c_void,
        *const c_void,
        *const *const c_char,
        *const *const c_char
    ) -> c_int;
    dlclose: fn(*mut c_void) -> c_int;
    fexecve: fn(c_int, *const *const c_char, *const *const c_char) -> c_int;
    execl: fn() -> c_int;
    execlp: fn() -> c_int;
    dlopen: fn(*const c_char, c_int) -> *mut c_void;
    dlsym: fn(*mut c_void, *const c_char) -> *mut c_void;
    __cxa_allocate_exception: fn(usize) -> *mut c_void;
    _dl_find_object: fn(*mut c_void, *mut c_void) -> c_int;
}
