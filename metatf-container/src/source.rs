//! Where a trace's bytes come from: a mapped file, a caller's slice, or a stream read through a window.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::files::{self, Map};
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
    Stream(Window<'a>),
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

    /// A caller's memory.
    pub(crate) fn slice(bytes: &'a [u8]) -> Self {
        Source::Slice { bytes, mapped: false }
    }

    /// The same bytes once more; `None` for a stream.
    pub(crate) fn share(&self) -> Option<Source<'_>> {
        Some(Source::Slice { bytes: self.all()?, mapped: self.is_mapped() })
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
            Source::Stream(_) => None,
        }
    }

    /// The `len` bytes at `at`, or as many as there are before the end of the input.
    pub(crate) fn view(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let all: &[u8] = match self {
            Source::Map(map) => map,
            Source::Slice { bytes, .. } => bytes,
            Source::Stream(window) => return window.view(at, len),
        };
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(all.len());
        let to = from.saturating_add(len).min(all.len());
        Ok(&all[from..to])
    }

    /// Bytes before `upto` will not be asked for again.
    pub(crate) fn release(&mut self, upto: u64) {
        if let Source::Stream(window) = self {
            window.release(upto);
        }
    }

    /// Makes a stream randomly accessible by way of an unlinked temporary file, or memory without such, for version 0 (whose table asks for
    /// it) and raw streams. Nothing may have been released.
    pub(crate) fn spool(self) -> Result<Self> {
        let Source::Stream(mut window) = self else { return Ok(self) };
        let beginning = window.kept().to_vec();
        Ok(files::keep(&beginning, &mut window.read)?.map_or(Source::slice(&[]), Source::Map))
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
                Err(e) => return Err(Error::at(self.at + have as u64, ErrorKind::Io(e.kind()))),
            }
            return Ok(());
        }
    }
}
