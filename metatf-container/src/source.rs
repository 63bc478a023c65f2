//! Sources of a trace's bytes: a mapped file, a caller's slice, a file read in pieces, or a stream read through a
//! window.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::files::{self, Map};
use crate::error::SystemError;
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
    /// A file read in pieces from arbitrary offsets. If the file is truncated in the meantime, the source ends early.
    File(FileWindow),
    Stream(Window<'a>),
}

/// The shared basis for several readers of the same bytes, possibly on different threads.
#[derive(Clone, Debug)]
pub(crate) enum Shared<'s> {
    Bytes { bytes: &'s [u8], mapped: bool },
    File(Arc<OpenedFile>),
}

impl<'s> Shared<'s> {
    /// Opens the same bytes again.
    pub(crate) fn open(&self) -> Source<'s> {
        match self {
            Self::Bytes { bytes, mapped } => Source::Slice { bytes, mapped: *mapped },
            Self::File(file) => Source::File(FileWindow::new(Arc::clone(file))),
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
        let file = File::open(path)?;
        let about = file.metadata()?;
        if cfg!(unix) && about.is_file() && about.len() > 0 {
            return Ok(Source::File(FileWindow::new(Arc::new(OpenedFile { file, length: about.len() }))));
        }
        Ok(Source::stream(file))
    }

    /// Creates a source from a caller's memory.
    pub(crate) fn slice(bytes: &'a [u8]) -> Self {
        Source::Slice { bytes, mapped: false }
    }

    /// Returns the basis for other readers of the same bytes, or `None` for a stream.
    pub(crate) fn share(&self) -> Option<Shared<'_>> {
        match self {
            Source::File(window) => Some(Shared::File(Arc::clone(&window.file))),
            _ => Some(Shared::Bytes { bytes: self.all()?, mapped: self.is_mapped() }),
        }
    }

    /// Returns the number of bytes, or `None` for a stream.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Source::File(window) => Some(window.len()),
            _ => self.all().map(|all| all.len() as u64),
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
            Source::File(_) | Source::Stream(_) => None,
        }
    }

    /// Returns the `len` bytes at `at`, or fewer if the input ends first.
    pub(crate) fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let all: &[u8] = match self {
            Source::Map(map) => map,
            Source::Slice { bytes, .. } => bytes,
            Source::File(window) => return window.view(at, len),
            Source::Stream(window) => return window.view(at, len),
        };
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
        let to = from.saturating_add(len).min(all.len());
        Ok(&all[from..to])
    }

    /// Returns whether the source contains this range. For a file, checks only the length and reads nothing.
    pub(crate) fn has(&mut self, at: u64, len: usize) -> Result<bool> {
        match self {
            Source::File(window) => Ok(at.saturating_add(len as u64) <= window.len()),
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
            // Pieces are read at explicit offsets, so the file's position is still at its beginning.
            Source::File(window) => files::keep(&[], &window.file.file)?,
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

/// Minimum number of bytes read from a file: enough for a chunk header and a small payload after it.
const PIECE: usize = 4 << 10;

/// A file and its length when it was opened.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    file: File,
    length: u64,
}

impl OpenedFile {
    /// Returns the current length of the file, or an error if it is less than the original length.
    fn length(&self) -> Result<u64> {
        let now = self.file.metadata()?.len();
        if now < self.length { Err(Error::at(0, ErrorKind::Io(SystemError::TRUNCATED))) } else { Ok(now) }
    }
}

/// The piece of a file in memory.
pub(crate) struct FileWindow {
    file: Arc<OpenedFile>,
    /// The bytes of the file from offset `at`.
    piece: Vec<u8>,
    at: u64,
}

impl FileWindow {
    fn new(file: Arc<OpenedFile>) -> Self {
        Self { file, piece: Vec::new(), at: 0 }
    }

    /// Returns the current length of the file in bytes, or 0 if the system cannot determine it.
    fn len(&self) -> u64 {
        self.file.file.metadata().map_or(0, |about| about.len())
    }

    fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
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

    /// Reads until the piece has this many bytes or the file ends. The piece never extends past the end of the file.
    fn fill(&mut self, len: usize) -> Result<()> {
        let left = self.file.length()?.saturating_sub(self.at);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let (mut end, wanted) = (self.piece.len(), len.max(PIECE).min(left));
        self.piece.resize(wanted.max(end), 0);
        let mut failure = None;
        while end < wanted && failure.is_none() {
            match read_at(&self.file.file, &mut self.piece[end..], self.at + end as u64) {
                Ok(0) => failure = Some(SystemError::TRUNCATED),
                Ok(n) => end += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => failure = Some((&e).into()),
            }
        }
        self.piece.truncate(end);
        failure.map_or(Ok(()), |why: SystemError| {
            // If the file was truncated, the error's location in the trace is meaningless.
            let place = if why.is_truncated() { 0 } else { self.at + end as u64 };
            Err(Error::at(place, ErrorKind::Io(why)))
        })
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

/// Files are not read in pieces on this platform; see [`Source::read`].
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
