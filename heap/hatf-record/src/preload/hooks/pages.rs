//! Page requests to the system, made by the program and by allocators that it contains, for `--pages`. Those of Python
//! are also recorded as blocks for `--python`.
//!
//! The requests of the C library's `malloc` are internal and are not observed: see `platform/program_break.rs`.

use core::ffi::{c_int, c_void};

use crate::event::Kind;
use crate::preload::choose::call::Call;
use crate::preload::elf::real;
#[cfg(target_arch = "x86_64")]
use crate::preload::events::arenas;
use crate::preload::events::pages;
use crate::preload::platform::memory;

/// Records a request if page requests are recorded.
fn record(kind: Kind, call: Call) {
    if let Some(session) = pages::records_pages() {
        pages::pages(session, kind, call);
    }
}

/// Discards cached data about memory that may be gone.
fn forget() {
    #[cfg(target_arch = "x86_64")]
    {
        crate::preload::stacks::unwind::forget_memory();
        crate::preload::stacks::python::forget_pages();
    }
}

/// Returns the real function once it is known.
fn known<F>(function: fn() -> Option<F>) -> Option<F> {
    if real::known() { function() } else { None }
}

macro_rules! map {
    ($($name:ident($offset:ty);)*) => {
        $(
            /// # Safety
            /// The requirements are those of the real function with this name.
            #[unsafe(no_mangle)]
            pub(crate) unsafe extern "C" fn $name(
                address: *mut c_void,
                length: usize,
                protection: c_int,
                flags: c_int,
                file: c_int,
                offset: $offset,
            ) -> *mut c_void {
                // SAFETY: the caller's arguments.
                let start = unsafe {
                    match known(real::$name) {
                        Some(map) => map(address, length, protection, flags, file, offset),
                        None => memory::map(address, length, protection, flags, file, offset),
                    }
                };
                // The mapping may replace other memory.
                if flags & libc::MAP_FIXED != 0 {
                    forget();
                }
                if start != libc::MAP_FAILED {
                    #[cfg(target_arch = "x86_64")]
                    arenas::mapped(start, length, protection, flags);
                    let extra = protection.cast_unsigned() as usize | (flags.cast_unsigned() as usize) << 32;
                    record(Kind::Map, Call { size: length, address: start as usize, extra, ..Call::default() });
                }
                start
            }
        )*
    };
}

map! {
    mmap(libc::off_t);
    mmap64(libc::off64_t);
}

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn munmap(address: *mut c_void, length: usize) -> c_int {
    // Record before the call: another thread may receive the pages as soon as they are free.
    #[cfg(target_arch = "x86_64")]
    arenas::unmaps(address);
    record(Kind::Unmap, Call { size: length, address: address as usize, ..Call::default() });
    // SAFETY: the caller's arguments.
    let result = unsafe {
        match known(real::munmap) {
            Some(unmap) => unmap(address, length),
            None => memory::unmap(address, length),
        }
    };
    forget();
    result
}

/// # Safety
/// The requirements are those of the real function with this name, whose last argument is optional.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_length: usize,
    length: usize,
    flags: c_int,
    address: *mut c_void,
) -> *mut c_void {
    #[cfg(target_arch = "x86_64")]
    arenas::unmaps(old);
    // SAFETY: the caller's arguments. An address that the caller did not pass is not used.
    let start = unsafe {
        match known(real::mremap) {
            Some(remap) => remap(old, old_length, length, flags, address),
            None => libc::syscall(libc::SYS_mremap, old, old_length, length, flags, address) as *mut c_void,
        }
    };
    forget();
    if start != libc::MAP_FAILED {
        let (old, extra) = (old as usize, old_length);
        record(Kind::Remap, Call { size: length, address: start as usize, old, extra, ..Call::default() });
    }
    start
}

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn madvise(address: *mut c_void, length: usize, advice: c_int) -> c_int {
    // SAFETY: the caller's arguments.
    let result = unsafe {
        match known(real::madvise) {
            Some(advise) => advise(address, length, advice),
            None => memory::advise(address, length, advice),
        }
    };
    if result == 0 {
        let extra = advice.cast_unsigned() as usize;
        record(Kind::Advise, Call { size: length, address: address as usize, extra, ..Call::default() });
    }
    result
}

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn brk(address: *mut c_void) -> c_int {
    let Some(brk) = known(real::brk) else { return no_memory(-1) };
    // SAFETY: the caller's argument.
    let result = unsafe { brk(address) };
    moved();
    result
}

/// # Safety
/// The requirements are those of the real function with this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sbrk(increment: libc::intptr_t) -> *mut c_void {
    let Some(sbrk) = known(real::sbrk) else { return no_memory(-1_isize as *mut c_void) };
    // SAFETY: the caller's argument.
    let before = unsafe { sbrk(increment) };
    moved();
    before
}

/// Records the break, which the program may have moved.
fn moved() {
    if let Some(session) = pages::records_pages() {
        pages::program_break(session);
    }
}

/// Sets `errno` to indicate a lack of memory and returns `failed`.
fn no_memory<T>(failed: T) -> T {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    failed
}
