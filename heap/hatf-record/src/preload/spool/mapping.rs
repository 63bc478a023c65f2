//! Mapping of spools.

use core::ffi::CStr;
use core::ops::Deref;
use core::ptr::null_mut;

use crate::layout::{CHUNK_BYTES, Header};
use crate::preload::platform::files::open_own;
use crate::preload::platform::memory;
use crate::preload::platform::own_range::{OwnRange, Place, replace_by_zeros};
use crate::spool::{Spool, bytes_for};

/// Maps the spool, or a part of it if the program may not have that much memory.
pub(crate) fn open(path: &CStr) -> Option<MappedSpool> {
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

/// Maps the header of a spool separately and permanently.
pub(crate) fn header(path: &CStr) -> Option<&'static Header> {
    let (file, bytes) = open_own(path)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: an open file, which is closed here.
    let memory = unsafe {
        let memory = memory::map(null_mut(), size_of::<Header>(), access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        memory
    };
    // SAFETY: a fresh mapping, at the beginning of a page, which is never undone. A header consists of atomics: any
    // bytes are a valid value.
    (memory != libc::MAP_FAILED && bytes >= size_of::<Header>()).then(|| unsafe { &*memory.cast::<Header>() })
}

/// Returns the number of address space bytes that the spool may occupy, which is a sixteenth of the limit, if there is
/// a limit.
pub(crate) fn share_of_address_space() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if known { share_of(limit.rlim_cur) } else { usize::MAX }
}

/// Returns the part of an address space limit that the spool may occupy.
pub(crate) fn share_of(limit: libc::rlim_t) -> usize {
    if limit == libc::RLIM_INFINITY { usize::MAX } else { usize::try_from(limit / 16).unwrap_or(usize::MAX) }
}

/// The address range for spools.
static PLACE: Place = Place::new();

/// A mapped spool and its address range.
pub(crate) struct MappedSpool {
    spool: Spool<'static>,
    range: OwnRange,
}

impl MappedSpool {
    /// Keeps the spool mapped for the rest of the process.
    pub(crate) fn keep(self) -> Spool<'static> {
        PLACE.keep(self.range);
        self.spool
    }

    /// Unmaps the spool, which nobody uses any more.
    pub(crate) fn unmap(self) {
        self.range.unmap();
    }
}

impl Deref for MappedSpool {
    type Target = Spool<'static>;

    fn deref(&self) -> &Spool<'static> {
        &self.spool
    }
}

/// Gives up the part of the kept spool's range that follows a smaller spool, because its chunks were unmapped.
pub(crate) fn forget_rest(smaller: &Spool<'static>) {
    PLACE.forget_rest(smaller.memory().1);
}

/// Returns the maximum size of a file of this process, less a reserve for the parts that are not chunks. Exceeding the
/// limit raises a signal that kills the process.
pub(crate) fn file_size_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known { usize::try_from(limit.rlim_cur / 10 * 9).unwrap_or(usize::MAX) } else { usize::MAX }
}

/// Maps the beginning of the file at a multiple of the chunk length.
///
/// # Safety
/// `make` must create a spool in the memory that it receives, or find one there.
pub(crate) unsafe fn map(
    file: libc::c_int,
    bytes: usize,
    make: impl FnOnce(*mut u8) -> Option<Spool<'static>>,
) -> Option<MappedSpool> {
    let bytes = bytes / CHUNK_BYTES * CHUNK_BYTES;
    let range = PLACE.take(bytes).or_else(|| OwnRange::reserve(bytes, CHUNK_BYTES))?;
    let spool = if range.map_file(bytes, file) { make(range.memory()) } else { None };
    match spool {
        Some(spool) => Some(MappedSpool { spool, range }),
        None => {
            PLACE.put_back(range);
            None
        }
    }
}

/// Replaces a spool, and the chunks after it, with private, zero-filled memory, into which threads in the middle of a
/// hook write from now on.
pub(crate) fn replace(spool: &Spool<'static>, behind: &[u32]) {
    let (memory, bytes) = spool.memory();
    // SAFETY: the mapped part of the spool, and the chunks after it that stayed mapped.
    unsafe {
        replace_by_zeros(memory, bytes);
        for chunk in behind {
            replace_by_zeros(spool.place(*chunk as usize), CHUNK_BYTES);
        }
    }
}

/// Does the same as [`replace`], and lets the next spool take its address range.
pub(crate) fn retire(spool: &Spool<'static>, behind: &[u32]) {
    replace(spool, behind);
    PLACE.retire();
}
