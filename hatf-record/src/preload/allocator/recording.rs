//! An allocator that has another one recorded.

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

/// An alignment that every block has.
const ALIGNED: usize = 16;

/// An allocator that passes calls to another one, and has them recorded if the program runs under `hatf record`, or is to be recorded without.
///
/// It works in programs that are statically linked, and in those whose allocator does not call `malloc`. Where `hatf record` could
/// preload its recorder that one records, and each call is recorded once. Otherwise the recorder in this crate does.
///
/// Without `hatf record` the environment variable `HATF_OUTPUT` names a folder that the program makes and records into, from its first
/// allocation on; [`Recording::record_into`] does so later. `hatf recover FOLDER` makes the trace when the program has ended.
/// A program that is not recorded pays a load and a comparison for each call.
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
    /// Makes one that passes calls to `inner`.
    #[must_use]
    pub const fn new(inner: A) -> Self {
        Self { inner }
    }

    /// Records this process from now on into a folder that is made for it, in which `%p` stands for the number of the process. Blocks that were allocated before are not known in
    /// the trace, which `hatf recover FOLDER` makes when the program has ended.
    ///
    /// `HATF_OUTPUT_SIZE` says how long the file of events may become, in bytes, or with `MiB` or `GiB` behind the number; by default 1 GiB, which
    /// is 60 million events. Later events are counted, and left out. With `HATF_SAMPLE=512KiB` one block is recorded for so many bytes.
    ///
    /// # Errors
    /// The process is recorded already, the folder is there, or it cannot be made.
    pub fn record_into(&self, folder: impl AsRef<Path>) -> io::Result<()> {
        if functions().is_some() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the process is recorded already"));
        }
        let folder = standalone::expand(folder.as_ref().as_os_str().as_bytes());
        let folder = folder.ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
        if STATE.compare_exchange(NOT_RECORDED, DECIDING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another thread begins to record the process"));
        }
        let begun = nested(|| {
            origin::remember(standalone::make(&folder).map_err(io::Error::from_raw_os_error)?);
            begin::again();
            if begin() { Ok(()) } else { Err(io::Error::other("no memory for a recording")) }
        });
        if begun.is_ok() {
            // So a reader knows that there may be blocks from before.
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

/// The functions, once the state is `RECORDED`.
static CALLED: AtomicPtr<Functions> = AtomicPtr::new(null_mut());

/// Returns the functions to call, if the process is recorded.
#[inline]
fn functions() -> Option<&'static Functions> {
    match STATE.load(Ordering::Acquire) {
        NOT_RECORDED => None,
        // SAFETY: `decide` has stored the address of functions that stay.
        RECORDED => unsafe { CALLED.load(Ordering::Relaxed).as_ref() },
        _ => decide(),
    }
}

/// Finds out who records. Calls that come meanwhile, from this thread or another, are not recorded.
#[cold]
fn decide() -> Option<&'static Functions> {
    STATE.compare_exchange(UNDECIDED, DECIDING, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    // SAFETY: null, or a function of the preloaded object of this signature.
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

/// Has this process recorded, if it is to be.
fn begin() -> bool {
    let Some(session) = begin::session() else { return false };
    fork::register();
    thread_end::create_key();
    control::take_signals(session);
    true
}

/// Returns the address of the preloaded object's `hatf_recorder_functions`; 0 where there is none. By way of the table of addresses that the
/// dynamic linker fills; in a static program the linker puts a 0 there.
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

/// As on x86-64.
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

/// Elsewhere by name.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn preloaded() -> usize {
    // SAFETY: a C string.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"hatf_recorder_functions".as_ptr()) as usize }
}

/// Calls the allocator behind, of whose own calls none is the program's.
#[inline(always)]
fn inside<T>(functions: &Functions, call: impl FnOnce() -> T) -> T {
    let before = (functions.enter)(stack_pointer());
    let result = call();
    (functions.leave)(before);
    result
}

impl<A: GlobalAlloc> Recording<A> {
    /// Allocates, and records it as a call of this kind; over-aligned blocks are those of `memalign`.
    #[inline]
    fn allocate(&self, kind: Kind, layout: Layout, extra: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
        let Some(functions) = functions() else { return allocate() };
        let block = inside(functions, allocate);
        let (kind, extra) = if layout.align() > ALIGNED { (Kind::Memalign, layout.align()) } else { (kind, extra) };
        (functions.call)(kind as u8, layout.size(), block as usize, 0, extra);
        block
    }
}

// SAFETY: each call goes to the allocator behind as it came, and so does each result.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Recording<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.allocate(Kind::Malloc, layout, 0, || unsafe { self.inner.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        self.allocate(Kind::Calloc, layout, 1, || unsafe { self.inner.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        let free = || unsafe { self.inner.dealloc(block, layout) };
        let Some(functions) = functions() else { return free() };
        (functions.call)(Kind::Free as u8, 0, block as usize, 0, 0);
        inside(functions, free);
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let realloc = || unsafe { self.inner.realloc(old, layout, size) };
        let Some(functions) = functions() else { return realloc() };
        let old = old.cast::<c_void>();
        let begun = (functions.realloc_begins)(old, size);
        let block = inside(functions, realloc);
        (functions.realloc_ends)(old, block.cast(), size, begun);
        block
    }
}
