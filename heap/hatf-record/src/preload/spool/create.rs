//! Creation of spool files.

use super::mapping::{self, MappedSpool};
use crate::layout::{CHUNK_BYTES, CHUNKS_MAX};
use crate::preload::platform::files;
use crate::preload::platform::path::Path;
use crate::spool::{Spool, bytes_for, offset_of};

/// The desired size of a spool: the number of chunks, limited by what this process may use, and the number of ready
/// chunks.
pub(crate) struct New {
    pub(crate) chunks: usize,
    pub(crate) ready: usize,
}

/// Creates the file of a spool.
pub(crate) fn make_file(path: &Path, New { chunks, ready }: New) -> Option<MappedSpool> {
    let file = files::create(path.as_c())?;
    let most = mapping::share_of_address_space().min(mapping::file_size_limit());
    let chunks = chunks.min(CHUNKS_MAX).min(most / CHUNK_BYTES);
    let place = |number: usize| libc::off_t::try_from(number).ok();
    let first_chunks = chunks.min(ready);
    let spool = (|| {
        // SAFETY: an open file and numbers, whose results are checked; then fresh zeros of the file.
        unsafe {
            if chunks == 0 {
                *libc::__errno_location() = libc::EFBIG;
                return None;
            }
            if libc::ftruncate(file, place(bytes_for(chunks))?) != 0 {
                return None;
            }
            let reserved = libc::posix_fallocate(file, 0, place(offset_of(chunks, first_chunks))?);
            if reserved != 0 {
                *libc::__errno_location() = reserved;
                return None;
            }
            mapping::map(file, bytes_for(chunks), |memory| Some(Spool::create(memory, chunks)))
        }
    })();
    // SAFETY: the file that was opened.
    unsafe { libc::close(file) };
    let spool = spool?;
    for chunk in 0..first_chunks {
        spool.make_ready(chunk);
    }
    Some(spool)
}
