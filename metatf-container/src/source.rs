//! Where a trace's bytes come from: a mapped file, a caller's slice, a file that is read in pieces, or a stream read through a window.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::files::{self, Map};
use crate::error::SystemError;
use crate::{Error, ErrorKind, Result};

/// Bytes by file offset. A stream keeps only what lies between the last [`Source::release`] and the furthest
/// [`Source::view`].
pub(crate) enum Source<'a> {
    Map(Map),
    Slice {
        bytes: &'a [u8],
        /// They are of a mapping that another source holds.
        mapped: bool,
    },
    /// A file from which pieces are read, from any place: one that is cut meanwhile ends early.
    File(FileWindow),
    Stream(Window<'a>),
}

/// What readers of the same bytes, perhaps in other threads, are made of.
#[derive(Clone, Debug)]
pub(crate) enum Shared<'s> {
    Bytes { bytes: &'s [u8], mapped: bool },
    File(Arc<OpenedFile>),
}

impl<'s> Shared<'s> {
    /// The same bytes once more.
    pub(crate) fn open(&self) -> Source<'s> {
        match self {
            Self::Bytes { bytes, mapped } => Source::Slice { bytes, mapped: *mapped },
            Self::File(file) => Source::File(FileWindow::new(Arc::clone(file))),
        }
    }
}

impl<'a> Source<'a> {
    /// A regular, non-empty file is mapped; anything else (a pipe, `/dev/stdin`) is read as a stream.
    pub(crate) fn open(path: &Path) -> Result<Source<'static>> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_file() && about.len() > 0 {
            return Ok(Source::Map(files::map(file)?));
        }
        Ok(Source::stream(file))
    }

    /// A regular, non-empty file is read in pieces, where the system has a way to read from any place; anything else as a stream.
    pub(crate) fn read(path: &Path) -> Result<Source<'static>> {
        let file = File::open(path)?;
        let about = file.metadata()?;
        if cfg!(unix) && about.is_file() && about.len() > 0 {
            return Ok(Source::File(FileWindow::new(Arc::new(OpenedFile { file, length: about.len() }))));
        }
        Ok(Source::stream(file))
    }

    /// A caller's memory.
    pub(crate) fn slice(bytes: &'a [u8]) -> Self {
        Source::Slice { bytes, mapped: false }
    }

    /// What others read the same bytes by; `None` for a stream.
    pub(crate) fn share(&self) -> Option<Shared<'_>> {
        match self {
            Source::File(window) => Some(Shared::File(Arc::clone(&window.file))),
            _ => Some(Shared::Bytes { bytes: self.all()?, mapped: self.is_mapped() }),
        }
    }

    /// How many bytes there are; `None` for a stream.
    pub(crate) fn len(&self) -> Option<u64> {
        match self {
            Source::File(window) => Some(window.len()),
            _ => self.all().map(|all| all.len() as u64),
        }
    }

    /// Another process may change the bytes.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self, Source::Map(_) if files::IS_SHARED) || matches!(self, Source::Slice { mapped: true, .. })
    }

    pub(crate) fn stream(read: impl Read + Send + 'a) -> Self {
        Source::Stream(Window::new(Box::new(read)))
    }

    /// Everything, where it is at hand.
    #[inline]
    pub(crate) fn all(&self) -> Option<&[u8]> {
        match self {
            Source::Map(map) => Some(map),
            Source::Slice { bytes, .. } => Some(bytes),
            Source::File(_) | Source::Stream(_) => None,
        }
    }

    /// The `len` bytes at `at`, or as many as there are before the end of the input.
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

    /// Whether there are these bytes. Those of a file are not read for it.
    pub(crate) fn has(&mut self, at: u64, len: usize) -> Result<bool> {
        match self {
            Source::File(window) => Ok(at.saturating_add(len as u64) <= window.len()),
            _ => Ok(self.view(at, len)?.len() == len),
        }
    }

    /// Bytes before `upto` will not be asked for again.
    pub(crate) fn release(&mut self, upto: u64) {
        if let Source::Stream(window) = self {
            window.release(upto);
        }
    }

    /// Has all bytes at hand by way of an unlinked temporary file, or memory without such, for version 0 (whose table asks for
    /// it) and raw streams. Nothing may have been released.
    pub(crate) fn spool(self) -> Result<Self> {
        let kept = match self {
            // Nothing was read from its beginning on: pieces leave the place of the file alone.
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

/// Bytes asked of a stream at a time. What arrives is taken at once, so that a live pipe is not held up.
const BLOCK: usize = 64 << 10;

/// The part of a stream that is in memory. It grows as data appears, whatever length was asked for (spec 7).
pub(crate) struct Window<'a> {
    read: Box<dyn Read + Send + 'a>,
    /// `buffer[head..end]` is the stream from offset `at`; beyond `end` is capacity.
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

    /// Reads once. Room at most doubles, so it stays in proportion to what the stream has given.
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

/// Bytes read of a file at least: a chunk's header, and what is small behind it.
const PIECE: usize = 4 << 10;

/// A file, and its length when it was opened.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    file: File,
    length: u64,
}

impl OpenedFile {
    /// Returns the length that the file has now, which is not less than it was.
    fn length(&self) -> Result<u64> {
        let now = self.file.metadata()?.len();
        if now < self.length { Err(Error::at(0, ErrorKind::Io(SystemError::TRUNCATED))) } else { Ok(now) }
    }
}

/// The piece of a file that is in memory.
pub(crate) struct FileWindow {
    file: Arc<OpenedFile>,
    /// The file from offset `at`.
    piece: Vec<u8>,
    at: u64,
}

impl FileWindow {
    fn new(file: Arc<OpenedFile>) -> Self {
        Self { file, piece: Vec::new(), at: 0 }
    }

    /// Returns how many bytes the file has now; 0 if the system does not say.
    fn len(&self) -> u64 {
        self.file.file.metadata().map_or(0, |about| about.len())
    }

    fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        // Where it lies in the piece; a place behind the piece, or before it, begins another.
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

    /// Reads on until the piece has this many bytes, or the file ends. The piece is never longer than the file.
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
            // The end of the file says nothing about the trace.
            let place = if why.is_truncated() { 0 } else { self.at + end as u64 };
            Err(Error::at(place, ErrorKind::Io(why)))
        })
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

/// No file is read in pieces there: see [`Source::read`].
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> std::io::Result<usize> {
    Err(std::io::ErrorKind::Unsupported.into())
}
