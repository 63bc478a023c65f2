//! Mapping spools.

use core::ffi::CStr;
use core::ops::Deref;
use core::ptr::null_mut;

use crate::layout::{CHUNK_BYTES, Header};
use crate::preload::platform::files::open_own;
use crate::preload::platform::memory;
use crate::preload::platform::own_range::{OwnRange, Place, replace_by_zeros};
use crate::spool::{Spool, bytes_for};

/// Maps all of the spool, or where the program may not have so much memory, a part of it.
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

/// That of spools.
static PLACE: Place = Place::new();

/// A spool and the addresses that it is mapped at.
pub(crate) struct MappedSpool {
    spool: Spool<'static>,
    range: OwnRange,
}

impl MappedSpool {
    /// Has the spool stay mapped for the rest of the process.
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

/// Notes that chunks of the kept spool were returned, all of them after a smaller one.
pub(crate) fn forget_rest(smaller: &Spool<'static>) {
    PLACE.forget_rest(smaller.memory().1);
}

/// The length that a file of this process may have, less what is not made of chunks: a longer one is a signal that ends it.
pub(crate) fn file_size_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known { usize::try_from(limit.rlim_cur / 10 * 9).unwrap_or(usize::MAX) } else { usize::MAX }
}

/// Maps the beginning of the file at a multiple of the length of a chunk.
///
/// # Safety
/// `make` makes a spool of the memory that it gets, or finds one there.
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

/// Puts private zeros in place of a spool, and of chunks behind it: who is in the middle of a hook writes there from now on.
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

/// Does what [`replace`] does, and has the next spool take its place.
pub(crate) fn retire(spool: &Spool<'static>, behind: &[u32]) {
    replace(spool, behind);
    PLACE.retire();
}
