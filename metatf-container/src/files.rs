//! Support for mapped input and for temporary files that buffer content. Without the `files` feature, as in a browser,
//! both are replaced by memory.

pub(crate) use place::{IS_SHARED, Map, Spool, keep, map, spool};

#[cfg(feature = "files")]
mod place {
    use std::fs::File;
    use std::io::{Read, Write as _};

    use crate::Result;

    /// A complete input.
    pub(crate) type Map = memmap2::Mmap;

    /// Pending content, which is in memory up to 8 MiB and then in an unlinked temporary file.
    pub(crate) type Spool = tempfile::SpooledTempFile;

    /// Whether another process may change the bytes of a [`Map`].
    pub(crate) const IS_SHARED: bool = true;

    pub(crate) fn spool() -> Spool {
        tempfile::spooled_tempfile(8 << 20)
    }

    /// Copies a stream, whose beginning has already been read, to an unlinked temporary file. Returns `None` if the
    /// stream is empty.
    pub(crate) fn keep(beginning: &[u8], mut rest: impl Read) -> Result<Option<Map>> {
        let mut file = tempfile::tempfile()?;
        file.write_all(beginning)?;
        std::io::copy(&mut rest, &mut file)?;
        Ok(if file.metadata()?.len() > 0 { Some(map(file)?) } else { None })
    }

    /// Maps a file. This is the only `unsafe` code in this crate.
    #[allow(unsafe_code, reason = "mapping a file requires unsafe code")]
    pub(crate) fn map(file: File) -> Result<Map> {
        // SAFETY: the mapping is valid for as long as the `Mmap` lives, and its length does not change. Rust cannot
        // guarantee that the bytes stay the same, because another process may write to or truncate the file. Truncation
        // raises SIGBUS, which kills the process. After a write, two loads of the same byte may differ, which is no
        // worse than corruption in the file: lengths and offsets are checked after they are loaded, no `str` is created
        // from the bytes without validation, and input for C libraries is copied first (`Decoder`). The documentation
        // of `Reader::open` warns callers, who can read a stream instead.
        let map = unsafe { Map::map(&file) }?;
        #[cfg(unix)]
        let _ = map.advise(memmap2::Advice::Sequential); // Only a hint, so failure is ignored.
        Ok(map)
    }
}

#[cfg(not(feature = "files"))]
mod place {
    use std::fs::File;
    use std::io::{Cursor, Read};

    use crate::Result;

    /// A complete input.
    pub(crate) type Map = Vec<u8>;

    /// Pending content.
    pub(crate) type Spool = Cursor<Vec<u8>>;

    /// Whether another process may change the bytes of a [`Map`].
    pub(crate) const IS_SHARED: bool = false;

    pub(crate) fn spool() -> Spool {
        Spool::default()
    }

    /// Reads a stream, whose beginning has already been read, into memory. Returns `None` if the stream is empty.
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
