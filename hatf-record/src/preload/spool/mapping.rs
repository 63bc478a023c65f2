//! Mapping spools.

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::layout::{CHUNK_BYTES, Header};
use crate::preload::platform::files::open_own;
use crate::preload::platform::{large, memory};
use crate::spool::{Spool, bytes_for};

/// Maps all of the spool, or where the program may not have so much memory, a part of it.
pub(crate) fn open(path: &CStr) -> Option<Spool<'static>> {
    let (file, bytes) = open_own(path)?;
    // SAFETY: an open file, which is closed here; the memory is that of `map`.
    unsafe {
        let mut bytes = bytes.min(share_of_address_space());
        let mut spool = None;
        while spool.is_none() && bytes >= bytes_for(1) {
            spool = map(file, bytes, |memory| Spool::attach(memory, bytes / CHUNK_BYTES * CHUNK_BYTES));
            bytes /= 2;
        }
        libc::close(file);
        spool
    }
}

/// Maps the head of a spool by itself, for good.
pub(crate) fn header(path: &CStr) -> Option<&'static Header> {
    let (file, bytes) = open_own(path)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: an open file, which is closed here.
    let memory = unsafe {
        let memory = memory::map(null_mut(), size_of::<Header>(), access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        memory
    };
    // SAFETY: a fresh mapping, at the beginning of a page, which is never undone. A header is made of atomics: any bytes are a value.
    (memory != libc::MAP_FAILED && bytes >= size_of::<Header>()).then(|| unsafe { &*memory.cast::<Header>() })
}

/// The part of the address space that the spool may take: where that is limited, a sixteenth.
pub(crate) fn share_of_address_space() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if known { share_of(limit.rlim_cur) } else { usize::MAX }
}

/// The part of a limit of the address space that the spool may take.
pub(crate) fn share_of(limit: libc::rlim_t) -> usize {
    if limit == libc::RLIM_INFINITY { usize::MAX } else { usize::try_from(limit / 16).unwrap_or(usize::MAX) }
}

/// Addresses where something of ours was mapped, and where the next of its kind may be: so that a process to which `hatf` is attached again and
/// again has each once. Between the two there are private zeros.
pub(crate) struct Place {
    at: AtomicUsize,
    bytes: AtomicUsize,
    is_free: AtomicBool,
}

impl Place {
    pub(crate) const fn new() -> Self {
        Self { at: AtomicUsize::new(0), bytes: AtomicUsize::new(0), is_free: AtomicBool::new(false) }
    }

    /// Returns where this many bytes may be mapped, in place of what is there.
    pub(crate) fn take(&self, bytes: usize) -> Option<*mut c_void> {
        let fits = self.bytes.load(Ordering::Relaxed) >= bytes;
        (fits && self.is_free.swap(false, Ordering::AcqRel)).then(|| self.at.load(Ordering::Relaxed) as *mut c_void)
    }

    /// Gives back a place, where there are private zeros from now on. The largest is kept.
    pub(crate) fn put(&self, memory: *mut u8, bytes: usize) {
        replace_by_zeros(memory, bytes);
        if self.at.load(Ordering::Relaxed) != memory as usize {
            if self.is_free.load(Ordering::Relaxed) && self.bytes.load(Ordering::Relaxed) >= bytes {
                return;
            }
            self.bytes.store(bytes, Ordering::Relaxed);
            self.at.store(memory as usize, Ordering::Relaxed);
        }
        self.is_free.store(true, Ordering::Release);
    }

    /// Forgets it: a part of it is not ours any more.
    fn forget(&self) {
        self.is_free.store(false, Ordering::Relaxed);
        self.at.store(0, Ordering::Relaxed);
    }
}

/// That of spools.
static PLACE: Place = Place::new();

/// Forgets where a spool was, as a part of that is not ours any more.
pub(crate) fn forget_place() {
    PLACE.forget();
}

/// The length that a file of this process may have, less what is not made of chunks: a longer one is a signal that ends it.
pub(crate) fn file_size_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known { usize::try_from(limit.rlim_cur / 10 * 9).unwrap_or(usize::MAX) } else { usize::MAX }
}

/// Maps the beginning of the file at a multiple of the length of a chunk. The mapping is never undone where it is a spool, so that it is
/// valid for the rest of the process.
///
/// # Safety
/// `file` is open for reading and writing. `make` makes a spool of the memory that it gets, or finds one there.
pub(crate) unsafe fn map(
    file: libc::c_int,
    bytes: usize,
    make: impl FnOnce(*mut u8) -> Option<Spool<'static>>,
) -> Option<Spool<'static>> {
    let bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
    let nowhere = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    if let Some(memory) = PLACE.take(bytes) {
        // SAFETY: a place of ours, where there are zeros that nobody needs.
        let mapped = unsafe { large::map(memory, bytes, flags, file) };
        let spool = if mapped == libc::MAP_FAILED { None } else { make(memory.cast()) };
        if spool.is_none() {
            PLACE.put(memory.cast(), bytes);
        }
        return spool;
    }
    // SAFETY: addresses are reserved first, more than are needed; the spool is put in place of some of them, and the others
    // are given back.
    unsafe {
        let reserved = memory::map(null_mut(), bytes + CHUNK_BYTES, libc::PROT_NONE, nowhere, -1, 0);
        if reserved == libc::MAP_FAILED {
            return None;
        }
        let before = (reserved as usize).next_multiple_of(CHUNK_BYTES) - reserved as usize;
        memory::unlock(reserved, bytes + CHUNK_BYTES);
        let memory = reserved.byte_add(before);
        let mapped = large::map(memory, bytes, flags, file);
        if before > 0 {
            memory::unmap(reserved, before);
        }
        memory::unmap(memory.byte_add(bytes), CHUNK_BYTES - before);
        let spool = if mapped == libc::MAP_FAILED { None } else { make(memory.cast()) };
        if spool.is_none() {
            large::unmap(memory, bytes);
        }
        spool
    }
}

/// Puts private zeros in place of a spool, and of chunks behind it: who is in the middle of a hook writes there from now on.
pub(crate) fn replace(spool: &Spool<'static>, behind: &[u32]) {
    let (memory, bytes) = spool.memory();
    replace_by_zeros(memory, bytes);
    for chunk in behind {
        replace_by_zeros(spool.place(*chunk as usize), CHUNK_BYTES);
    }
}

/// Does what [`replace`] does, and has the next spool take its place.
pub(crate) fn retire(spool: &Spool<'static>, behind: &[u32]) {
    replace(spool, behind);
    let (memory, bytes) = spool.memory();
    PLACE.put(memory, bytes);
}

/// Puts private zeros in place of a mapping of ours. References into it stay valid, as all that lies there is made of atomics. Keeps `errno`, which
/// may be looked at after a fork.
pub(crate) fn replace_by_zeros(from: *mut u8, bytes: usize) {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: a mapping of ours, in place of which there is zeroed memory then; `errno` of this thread.
    unsafe {
        let errno = *libc::__errno_location();
        memory::map(from.cast(), bytes, access, flags, -1, 0);
        *libc::__errno_location() = errno;
    }
}

pub(crate) fn unmap(spool: &Spool<'static>) {
    let (memory, bytes) = spool.memory();
    // SAFETY: the mapping of `map`, which nobody uses.
    unsafe { large::unmap(memory.cast(), bytes) };
}
