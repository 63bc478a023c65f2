//! What only files give: input that is mapped, and content that waits in temporary files. Without the feature `files`, as in a
//! browser, both are in memory.

pub(crate) use place::{IS_SHARED, Map, Spool, keep, map, spool};

#[cfg(feature = "files")]
mod place {
    use std::fs::File;
    use std::io::{Read, Write as _};

    use crate::Result;

    /// A whole input.
    pub(crate) type Map = memmap2::Mmap;

    /// Content that waits: in memory up to 8 MiB, beyond in an unlinked temporary file.
    pub(crate) type Spool = tempfile::SpooledTempFile;

    /// Whether another process may change the bytes of a [`Map`].
    pub(crate) const IS_SHARED: bool = true;

    pub(crate) fn spool() -> Spool {
        tempfile::spooled_tempfile(8 << 20)
    }

    /// Keeps a stream, of which the beginning was read already, in an unlinked temporary file. `None` if it is empty.
    pub(crate) fn keep(beginning: &[u8], mut rest: impl Read) -> Result<Option<Map>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(beginning)?;
        std::io::copy(&mut rest, &mut file)?;
        Ok(if file.metadata()?.len() > 0 { Some(map(file)?) } else { None })
    }

    /// Maps a file: the only `unsafe` of this crate.
    #[allow(unsafe_code, reason = "a mapping cannot be made without")]
    pub(crate) fn map(file: File) -> Result<Map> {
        // SAFETY: the mapping is valid for as long as the `Mmap` lives, and its length does not change. What Rust cannot hold
        // is that the bytes do not: another process may write to the file or cut it. Cutting raises SIGBUS, which ends the
        // process. Writing shows other bytes from one load to the next, which is as bad as damage in the file and no worse:
        // a length or offset from them is checked after it was loaded, no `str` is made of them unchecked, and what a library
        // in C parses is copied first (`Decoder`). `Reader::open` tells its callers, who can read a stream instead.
        let map = unsafe { Map::map(&file) }?;
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Sequential); // Only a hint: what it returns changes nothing.
        Ok(map)
    }
}

#[cfg(not(feature = "files"))]
mod place {
    use std::fs::File;
    use std::io::{Cursor, Read};

    use crate::Result;

    /// A whole input.
    pub(crate) type Map = Vec<u8>;

    /// Content that waits.
    pub(crate) type Spool = Cursor<Vec<u8>>;

    /// Whether another process may change the bytes of a [`Map`].
    pub(crate) const IS_SHARED: bool = false;

    pub(crate) fn spool() -> Spool {
        Spool::default()
    }

    /// Keeps a stream, of which the beginning was read already. `None` if it is empty.
    pub(crate) fn keep(beginning: &[u8], mut rest: impl Read) -> Result<Option<Map>> {
        let mut bytes = beginning.to_vec();
        rest.read_to_end(&mut bytes)?;
        Ok(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// Reads a file.
    pub(crate) fn map(file: File) -> Result<Map> {
        Ok(keep(&[], file)?.unwrap_or_default())
    }
}
