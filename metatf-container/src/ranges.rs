//! Byte ranges of a file or an object, read in pieces from arbitrary offsets.

use std::io::{self, Read};
use std::sync::Arc;

use crate::error::SystemError;
use crate::{Error, ErrorKind, Result};

/// A file or object whose bytes can be read from any offset, such as an object in an object store, as an input for
/// [`Reader::from_ranges`](crate::Reader::from_ranges).
///
/// A reader reads the header and each chunk that it needs, and for random access, the index at the end of the file. It
/// reads 4 KiB or more at a time and keeps one chunk in memory. The bytes are as untrusted as those of a file: a wrong
/// length or short reads cause an error or a warning, but no panic.
///
/// # Examples
///
/// An object store would request `bytes=offset-..` over HTTP here. Reading the last group of a trace fetches only the
/// beginning of the file, the index and this group:
///
/// ```
/// use metatf_container::{ByteRanges, ChunkSpec, ChunkWriter, Codec, Reader, WriteOptions};
/// use std::io;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// struct Object {
///     bytes: Vec<u8>,
///     fetched: AtomicUsize,
/// }
///
/// impl ByteRanges for &Object {
///     fn length(&self) -> io::Result<u64> {
///         Ok(self.bytes.len() as u64)
///     }
///
///     fn read_at(&self, offset: u64, mut buffer: &mut [u8]) -> io::Result<usize> {
///         let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
///         let read = io::Write::write(&mut buffer, rest)?;
///         self.fetched.fetch_add(read, Ordering::Relaxed);
///         Ok(read)
///     }
/// }
///
/// let options = WriteOptions { codec: Codec::Stored, ..WriteOptions::default() };
/// let mut writer = ChunkWriter::new(Vec::new(), &options, b"section log 1 { }")?;
/// for group in 0..100 {
///     let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, group, ..ChunkSpec::default() };
///     writer.data(spec, &[7; 10_000])?;
/// }
/// let object = Object { bytes: writer.finish(100)?, fetched: AtomicUsize::new(0) };
///
/// let mut reader = Reader::from_ranges(&object)?;
/// let last = reader.chunks()?.len() - 1;
/// reader.seek_chunk(last)?;
/// assert_eq!(reader.next_part()?.and_then(|part| part.records), Some(1));
/// assert!(object.fetched.load(Ordering::Relaxed) < object.bytes.len() / 40);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ByteRanges: Send + Sync {
    /// Returns the number of bytes. A reader calls this function before every read, so it should not send a request each
    /// time.
    ///
    /// # Errors
    /// Returns an error if the length cannot be determined.
    fn length(&self) -> io::Result<u64>;

    /// Reads bytes from an offset into the buffer, and returns their number. The number may be less than the length of
    /// the buffer, but 0 means that the file or object ends at the offset.
    ///
    /// # Errors
    /// Returns an error if the bytes cannot be read. After [`io::ErrorKind::Interrupted`], the reader tries again.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

#[cfg(unix)]
impl ByteRanges for std::fs::File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

/// Minimum number of bytes read at a time: enough for a chunk header and a small payload after it.
const PIECE: usize = 4 << 10;
/// Number of bytes up to which a piece is allocated before any byte of it has been read, because the length may be
/// wrong. A longer piece at most doubles with each read.
const UNREAD: usize = 1 << 20;

/// Byte ranges and their length when they were opened.
pub(crate) struct Ranges<'a> {
    bytes: Box<dyn ByteRanges + 'a>,
    length: u64,
}

impl std::fmt::Debug for Ranges<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ranges").field("length", &self.length).finish_non_exhaustive()
    }
}

impl<'a> Ranges<'a> {
    pub(crate) fn new(bytes: impl ByteRanges + 'a) -> Result<Self> {
        let length = bytes.length()?;
        Ok(Self { bytes: Box::new(bytes), length })
    }

    /// Returns the current length, or an error if it is less than the original length.
    fn length(&self) -> Result<u64> {
        let now = self.bytes.length()?;
        if now < self.length { Err(Error::at(0, ErrorKind::Io(SystemError::TRUNCATED))) } else { Ok(now) }
    }

    /// Reads at least one byte, unless the buffer is empty or the bytes end at the offset.
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.bytes.read_at(at, buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => return Ok(read?.min(buffer.len())),
            }
        }
    }
}

/// A reader of all bytes from the beginning.
pub(crate) struct InOrder<'r, 'a> {
    ranges: &'r Ranges<'a>,
    at: u64,
}

impl<'r, 'a> InOrder<'r, 'a> {
    pub(crate) fn new(ranges: &'r Ranges<'a>) -> Self {
        Self { ranges, at: 0 }
    }
}

impl Read for InOrder<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.ranges.bytes.length()?.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let read = self.ranges.read(self.at, &mut buffer[..wanted])?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The piece in memory.
pub(crate) struct RangesWindow<'a> {
    ranges: Arc<Ranges<'a>>,
    /// The bytes from offset `at`.
    piece: Vec<u8>,
    at: u64,
}

impl<'a> RangesWindow<'a> {
    pub(crate) fn new(ranges: Arc<Ranges<'a>>) -> Self {
        Self { ranges, piece: Vec::new(), at: 0 }
    }

    pub(crate) fn ranges(&self) -> &Arc<Ranges<'a>> {
        &self.ranges
    }

    /// Returns the current length in bytes.
    pub(crate) fn len(&self) -> Result<u64> {
        Ok(self.ranges.bytes.length()?)
    }

    pub(crate) fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        // Find the offset inside the piece. If the offset is outside the piece, start a new piece.
        let within = |window: &Self| {
            let skip = at.checked_sub(window.at).and_then(|skip| usize::try_from(skip).ok())?;
            (skip <= window.piece.len()).then_some(skip)
        };
        let skip = within(self).unwrap_or(usize::MAX);
        if skip.saturating_add(len) > self.piece.len() {
            self.piece.drain(..skip.min(self.piece.len()));
            self.at = at;
            self.fill(len)?;
        }
        let skip = within(self).unwrap_or(0);
        let to = skip.saturating_add(len).min(self.piece.len());
        Ok(&self.piece[skip..to])
    }

    /// Reads until the piece has this many bytes or the input ends. The piece never extends past the end of the input.
    fn fill(&mut self, len: usize) -> Result<()> {
        let left = self.ranges.length()?.saturating_sub(self.at);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let (mut end, wanted) = (self.piece.len(), len.max(PIECE).min(left));
        let mut failure = None;
        while end < wanted && failure.is_none() {
            if end == self.piece.len() {
                self.piece.resize(wanted.min(end.saturating_mul(2).max(UNREAD)), 0);
            }
            match self.ranges.read(self.at.saturating_add(end as u64), &mut self.piece[end..]) {
                Ok(0) => failure = Some(SystemError::TRUNCATED),
                Ok(n) => end += n,
                Err(e) => failure = Some((&e).into()),
            }
        }
        self.piece.truncate(end);
        failure.map_or(Ok(()), |why: SystemError| {
            // If the input was truncated, the error's location in the trace is meaningless.
            let place = if why.is_truncated() { 0 } else { self.at.saturating_add(end as u64) };
            Err(Error::at(place, ErrorKind::Io(why)))
        })
    }
}
