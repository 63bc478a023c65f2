//! An allocator that records the calls to another allocator.

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::alloc::System;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::functions::{FUNCTIONS, Functions, VERSION};
use crate::event::Kind;
use crate::preload::hooks::{control, fork};
use crate::preload::platform::thread_state::{nested, stack_pointer};
use crate::preload::session::{begin, origin, standalone, thread_end};

/// The alignment of every block.
const ALIGNED: usize = 16;

/// An allocator that forwards calls to another allocator and records them if the program runs under `hatf record` or is
/// configured to record itself.
///
/// It works in statically linked programs and in programs whose allocator does not call `malloc`. If `hatf record`
/// could preload its recorder, that recorder is used, and each call is recorded once. Otherwise, the recorder in this
/// crate is used.
///
/// Without `hatf record`, the environment variable `HATF_OUTPUT` names a directory that the program creates and records
/// into, starting with its first allocation; [`Recording::record_into`] begins a recording later. `hatf recover DIR`
/// creates the trace after the program has ended. If the program is not recorded, the overhead is one load and one
/// comparison per call.
///
/// ```
/// use std::alloc::System;
/// use hatf_record::Recording;
///
/// #[global_allocator]
/// static ALLOCATOR: Recording<System> = Recording::new(System);
/// # fn main() {}
/// ```
#[derive(Debug, Default)]
pub struct Recording<A = System> {
    inner: A,
}

impl<A> Recording<A> {
    /// Creates an allocator that forwards calls to `inner`.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }

    /// Records this process from now on into a new directory. In the name of the directory, `%p` is replaced with the
    /// process ID. The trace contains no blocks allocated before this call. Create the trace with `hatf recover DIR`
    /// after the program has ended.
    ///
    /// `HATF_OUTPUT_SIZE` limits the size of the event file, in bytes or with the suffix `MiB` or `GiB`. The default is
    /// 1 GiB, which holds 60 million events. Later events are counted but not recorded. With `HATF_SAMPLE=512KiB`, one
    /// block per 512 KiB is recorded on average.
    ///
    /// # Errors
    /// Fails if the process is already being recorded, or if the directory exists or cannot be created.
    pub fn record_into(&self, folder: impl AsRef<Path>) -> io::Result<()> {
        if functions().is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process is already being recorded"));
        }
        let folder = standalone::expand(folder.as_ref().as_os_str().as_bytes());
        let folder = folder.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        if STATE.compare_exchange(NOT_RECORDED, DECIDING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another thread is already starting to record the process",
            ));
        }
        let begun = nested(|| {
            origin::remember(standalone::make(&folder).map_err(io::Error::from_raw_os_error)?);
            begin::again();
            if begin() { Ok(()) } else { Err(io::Error::other("not enough memory for a recording")) }
        });
        if begun.is_ok() {
            // Tells the reader that blocks allocated earlier may exist.
            control::hatf_recorder_stop();
            control::hatf_recorder_start();
            CALLED.store(core::ptr::from_ref(&FUNCTIONS).cast_mut(), Ordering::Relaxed);
        }
        STATE.store(if begun.is_ok() { RECORDED } else { NOT_RECORDED }, Ordering::Release);
        begun
    }
}

static STATE: AtomicU32 = AtomicU32::new(UNDECIDED);
const UNDECIDED: u32 = 0;
const DECIDING: u32 = 1;
const RECORDED: u32 = 2;
const NOT_RECORDED: u32 = 3;

/// The functions to call, valid if the state is `RECORDED`.
static CALLED: AtomicPtr<Functions> = AtomicPtr::new(null_mut());

/// Returns the functions to call if the process is being recorded.
#[inline]
fn functions() -> Option<&'static Functions> {
    match STATE.load(Ordering::Acquire) {
        NOT_RECORDED => None,
        // SAFETY: `decide` has stored the address of functions that stay.
        RECORDED => unsafe { CALLED.load(Ordering::Relaxed).as_ref() },
        _ => decide(),
    }
}

/// Determines the recorder to use. Calls made in the meantime, by this thread or another one, are not recorded.
#[cold]
fn decide() -> Option<&'static Functions> {
    STATE.compare_exchange(UNDECIDED, DECIDING, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    // SAFETY: null, or a function of the preloaded object with this signature.
    let preloaded = unsafe { core::mem::transmute::<usize, Option<extern "C" fn() -> *const Functions>>(preloaded()) };
    let functions = match preloaded {
        // SAFETY: null, or functions that stay; those of another version have a version, too.
        Some(preloaded) => unsafe { preloaded().as_ref() }.filter(|functions| functions.version == VERSION),
        None => nested(begin).then_some(&FUNCTIONS),
    };
    if let Some(functions) = functions {
        CALLED.store(core::ptr::from_ref(functions).cast_mut(), Ordering::Relaxed);
    }
    STATE.store(if functions.is_some() { RECORDED } else { NOT_RECORDED }, Ordering::Release);
    functions
}

/// Starts recording this process, if requested.
fn begin() -> bool {
    let Some(session) = begin::session() else { return false };
    fork::register();
    thread_end::create_key();
    control::take_signals(session);
    true
}

/// Returns the address of the preloaded object's `hatf_recorder_functions`, or 0 if there is none. Reads the global
/// offset table, which the dynamic linker fills; in a static program, the linker puts a 0 there.
#[cfg(target_arch = "x86_64")]
fn preloaded() -> usize {
    let address: usize;
    // SAFETY: reads a word of that table.
    unsafe {
        core::arch::asm!(
            ".weak hatf_recorder_functions",
            "mov {}, qword ptr [rip + hatf_recorder_functions@GOTPCREL]",
            out(reg) address,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    address
}

/// Does the same as on x86-64.
#[cfg(target_arch = "aarch64")]
fn preloaded() -> usize {
    let address: usize;
    // SAFETY: reads a word of that table.
    unsafe {
        core::arch::asm!(
            ".weak hatf_recorder_functions",
            "adrp {a}, :got:hatf_recorder_functions",
            "ldr {a}, [{a}, :got_lo12:hatf_recorder_functions]",
            a = out(reg) address,
            options(nostack, pure, readonly, preserves_flags),
        );
    }
    address
}

/// Looks up the function by name on other architectures.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn preloaded() -> usize {
    // SAFETY: a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"hatf_recorder_functions".as_ptr()) as usize }
}

/// Calls the underlying allocator and marks its own calls as internal.
#[inline(always)]
fn inside<T>(functions: &Functions, call: impl FnOnce() -> T) -> T {
    let before = (functions.enter)(stack_pointer());
    let result = call();
    (functions.leave)(before);
    result
}

impl<A: GlobalAlloc> Recording<A> {
    /// Allocates a block and records it as a call of this kind; over-aligned blocks are recorded as `memalign`.
    #[inline]
    fn allocate(&self, kind: Kind, layout: Layout, extra: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let Some(functions) = functions() else { return allocate() };
        let block = inside(functions, allocate);
        let (kind, extra) = if layout.align() > ALIGNED { (Kind::Memalign, layout.align()) } else { (kind, extra) };
        (functions.call)(kind as u8, layout.size(), block as usize, 0, extra);
        block
    }
}

// SAFETY: each call and each result is forwarded unchanged.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recording<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's promise.
        self.allocate(Kind::Malloc, layout, 0, || unsafe { self.inner.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by the caller's promise.
        self.allocate(Kind::Calloc, layout, 1, || unsafe { self.inner.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: by the caller's promise.
        let free = || unsafe { self.inner.dealloc(block, layout) };
        let Some(functions) = functions() else { return free() };
        (functions.call)(Kind::Free as u8, 0, block as usize, 0, 0);
        inside(functions, free);
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by the caller's promise.
        let realloc = || unsafe { self.inner.realloc(old, layout, size) };
        let Some(functions) = functions() else { return realloc() };
        let old = old.cast::<c_void>();
        let begun = (functions.realloc_begins)(old, size);
        let block = inside(functions, realloc);
        (functions.realloc_ends)(old, block.cast(), size, begun);
        block
    }
}
