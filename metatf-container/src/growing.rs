//! Files that are still being written.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::index::{FOOTER, parse_footer};

/// How often the file is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// A trace file of version 1 that a writer appends to, as an input of [`Reader::from_read`](crate::Reader::from_read).
///
/// At the end of the file it waits for more, so what reads it never sees half a chunk. It ends behind the footer, with which a writer finishes, and
/// where the file has no name any more. A writer that died leaves a file without a footer: waiting for it has no end.
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    at_end: Arc<AtomicBool>,
}

impl GrowingFile {
    /// Opens a file.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, at_end: Arc::default() })
    }

    /// Returns a flag that is set while all was read that the file had.
    #[must_use]
    pub fn at_end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.at_end)
    }

    /// Returns whether nothing more will be written: the last bytes are a footer, or nobody else can open the file.
    fn is_finished(&mut self, length: u64) -> io::Result<bool> {
        let Some(at) = length.checked_sub(FOOTER as u64) else { return self.is_removed() };
        let before = self.file.stream_position()?;
        self.file.seek(SeekFrom::Start(at))?;
        let mut footer = [0; FOOTER];
        let read = self.file.read_exact(&mut footer);
        self.file.seek(SeekFrom::Start(before))?;
        // A file that became shorter meanwhile has no footer there.
        let has_footer = read.is_ok() && parse_footer(&footer).is_some_and(|index| index < at);
        Ok(has_footer || self.is_removed()?)
    }

    fn is_removed(&self) -> io::Result<bool> {
        #[cfg(unix)]
        return Ok(std::os::unix::fs::MetadataExt::nlink(&self.file.metadata()?) == 0);
        #[cfg(not(unix))]
        Ok(false)
    }
}

impl Read for GrowingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let length = self.file.metadata()?.len();
            let finished = self.is_finished(length)?;
            let read = self.file.read(buffer)?;
            let at = self.file.stream_position()?;
            self.at_end.store(at >= length, Ordering::Relaxed);
            if read > 0 || finished || buffer.is_empty() {
                return Ok(read);
            }
            if at > length {
                return Err(io::Error::other("the file became shorter while it was read"));
            }
            std::thread::sleep(LOOK);
        }
    }
}
