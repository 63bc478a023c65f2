//! Sources of a trace's bytes: a mapped file, a caller's slice, byte ranges read in pieces, or a stream read through a
//! window.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::files::{self, Map};
use super::ranges::{ByteRanges, InOrder, Ranges, RangesWindow};
use crate::{Error, ErrorKind, Result};

/// Bytes addressed by file offset. For a stream, only the bytes between the last [`Source::release`] and the furthest
/// [`Source::view`] are kept in memory.
pub(crate) enum Source<'a> {
    Map(Map),
    Slice {
        bytes: &'a [u8],
        /// Whether the bytes belong to a mapping that another source holds.
        mapped: bool,
    },
    /// Byte ranges read in pieces from arbitrary offsets, such as those of a file. If a file is truncated in the
    /// meantime, the source ends early.
    Ranges(RangesWindow<'a>),
    Stream(Window<'a>),
}

/// The shared basis for several readers of the same bytes, possibly on different threads.
#[derive(Clone, Debug)]
pub(crate) enum Shared<'s> {
    Bytes { bytes: &'s [u8], mapped: bool },
    Ranges(Arc<Ranges<'s>>),
}

impl<'s> Shared<'s> {
    /// Opens the same bytes again.
    pub(crate) fn open(&self) -> Source<'s> {
        match self {
            Self::Bytes { bytes, mapped } => Source::Slice { bytes, mapped: *mapped },
            Self::Ranges(ranges) => Source::Ranges(RangesWindow::new(Arc::clone(ranges))),
        }
    }
}

impl<'a> Source<'a> {
    /// Opens a file. A regular, nonempty file is mapped; anything else (a pipe, `/dev/stdin`) is read as a stream.
    pub(crate) fn open(path: &Path) -> Result<Source<'static>> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_file() && about.len() > 0 {
            return Ok(Source::Map(files::map(file)?));
        }
        Ok(Source::stream(file))
    }

    /// Opens a file without mapping it. A regular, nonempty file is read in pieces if the system supports reading at an
    /// offset; anything else is read as a stream.
    pub(crate) fn read(path: &Path) -> Result<Source<'static>> {
        Source::of(File::open(path)?)
    }

    /// Reads an open file like [`read`](Self::read).
    pub(crate) fn of(file: File) -> Result<Source<'static>> {
        #[cfg(unix)]
        if file.metadata().is_ok_and(|about| about.is_file() && about.len() > 0) {
            return Source::ranges(file);
        }
        Ok(Source::stream(file))
    }

    /// Creates a source that reads byte ranges in pieces.
    pub(crate) fn ranges(ranges: impl ByteRanges + 'a) -> Result<Self> {
        Ok(Source::Ranges(RangesWindow::new(Arc::new(Ranges::new(ranges)?))))
    }

    /// Creates a source from a caller's memory.
    pub(crate) fn slice(bytes: &'a [u8]) -> Self {
        Source::Slice { bytes, mapped: false }
    }

    /// Returns the basis for other readers of the same bytes, or `None` for a stream.
    pub(crate) fn share(&self) -> Option<Shared<'_>> {
        match self {
            Source::Ranges(window) => Some(Shared::Ranges(Arc::clone(window.ranges()))),
            _ => Some(Shared::Bytes { bytes: self.all()?, mapped: self.is_mapped() }),
        }
    }

    /// Returns the number of bytes, or `None` for a stream.
    pub(crate) fn len(&self) -> Result<Option<u64>> {
        match self {
            Source::Ranges(window) => window.len().map(Some),
            _ => Ok(self.all().map(|all| all.len() as u64)),
        }
    }

    /// Returns whether another process may change the bytes.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Source::Map(_) if files::IS_SHARED) || matches!(self, Source::Slice { mapped: true, .. })
    }

    pub(crate) fn stream(read: impl Read + Send + 'a) -> Self {
        Source::Stream(Window::new(Box::new(read)))
    }

    /// Returns all bytes if they are in memory.
    #[inline]
    pub(crate) fn all(&self) -> Option<&[u8]> {
        match self {
            Source::Map(map) => Some(map),
            Source::Slice { bytes, .. } => Some(bytes),
            Source::Ranges(_) | Source::Stream(_) => None,
        }
    }

    /// Returns the `len` bytes at `at`, or fewer if the input ends first.
    pub(crate) fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let all: &[u8] = match self {
            Source::Map(map) => map,
            Source::Slice { bytes, .. } => bytes,
            Source::Ranges(window) => return window.view(at, len),
            Source::Stream(window) => return window.view(at, len),
        };
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
        let to = from.saturating_add(len).min(all.len());
        Ok(&all[from..to])
    }

    /// Returns whether the source contains this range. For byte ranges, checks only the length and reads nothing.
    pub(crate) fn has(&mut self, at: u64, len: usize) -> Result<bool> {
        match self {
            Source::Ranges(window) => Ok(at.saturating_add(len as u64) <= window.len()?),
            _ => Ok(self.view(at, len)?.len() == len),
        }
    }

    /// Allows a stream to discard the bytes before `upto`, which will not be requested again.
    pub(crate) fn release(&mut self, upto: u64) {
        if let Source::Stream(window) = self {
            window.release(upto);
        }
    }

    /// Makes all bytes accessible, for raw streams and for version 0, whose table requires it. They are copied to an
    /// unlinked temporary file, or to memory without the `files` feature. Nothing may have been released.
    pub(crate) fn spool(self) -> Result<Self> {
        let kept = match self {
            Source::Ranges(window) => files::keep(&[], InOrder::new(window.ranges()))?,
            Source::Stream(mut window) => {
                let beginning = window.kept().to_vec();
                files::keep(&beginning, &mut window.read)?
            }
            _ => return Ok(self),
        };
        Ok(kept.map_or(Source::slice(&[]), Source::Map))
    }
}

/// Number of bytes requested from a stream at a time. Arriving data is accepted immediately, so data from a live pipe
/// is not delayed.
const BLOCK: usize = 64 << 10;

/// The part of a stream in memory. It grows as data arrives, regardless of the requested length (spec 7).
pub(crate) struct Window<'a> {
    read: Box<dyn Read + Send + 'a>,
    /// `buffer[head..end]` contains the stream from offset `at`; bytes past `end` are spare capacity.
    buffer: Vec<u8>,
    head: usize,
    end: usize,
    at: u64,
    eof: bool,
}

impl<'a> Window<'a> {
    fn new(read: Box<dyn Read + Send + 'a>) -> Self {
        Self { read, buffer: Vec::new(), head: 0, end: 0, at: 0, eof: false }
    }

    fn kept(&self) -> &[u8] {
        &self.buffer[self.head..self.end]
    }

    fn release(&mut self, upto: u64) {
        let drop = upto.saturating_sub(self.at).min((self.end - self.head) as u64);
        self.at += drop;
        self.head += usize::try_from(drop).unwrap_or(0);
    }

    fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let Some(skip) = at.checked_sub(self.at).and_then(|skip| usize::try_from(skip).ok()) else {
            return Err(Error::at(at, ErrorKind::Usage("a stream cannot be read backwards")));
        };
        let want = skip.saturating_add(len);
        while self.end - self.head < want && !self.eof {
            self.fill(want)?;
        }
        let kept = self.kept();
        let from = skip.min(kept.len());
        Ok(&kept[from..want.min(kept.len())])
    }

    /// Reads once. The buffer at most doubles, so its size stays proportional to the data received.
    fn fill(&mut self, want: usize) -> Result<()> {
        let have = self.end - self.head;
        if self.head > 0 && (have == 0 || self.buffer.len() - self.end < BLOCK) {
            self.buffer.copy_within(self.head..self.end, 0);
            (self.head, self.end) = (0, have);
        }
        if self.buffer.len() - self.end < BLOCK {
            let more = (want.saturating_sub(have)).clamp(BLOCK, have.max(BLOCK));
            self.buffer.resize(self.end + more, 0);
        }
        loop {
            match self.read.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.eof = true,
                Ok(n) => self.end += n.min(self.buffer.len() - self.end),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::at(self.at + have as u64, ErrorKind::Io((&e).into()))),
            }
            return Ok(());
        }
    }
}
