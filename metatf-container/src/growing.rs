//! Files that are still being written.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::index::{FOOTER, parse_footer};

/// Interval between checks of the file.
const LOOK: Duration = Duration::from_millis(50);

/// A version 1 trace file to which a writer is still appending, as an input for
/// [`Reader::from_read`](crate::Reader::from_read).
///
/// At the end of the file, reading waits for more data, so the reader never sees an incomplete chunk. The input ends
/// after the footer, which the writer writes last, or when the file has been deleted. If the writer dies before writing
/// the footer, the wait ends only when the file is deleted.
///
/// # Examples
///
/// ```
/// use metatf_container::{ChunkSpec, ChunkWriter, GrowingFile, Reader, WriteOptions};
///
/// let path = tempfile::NamedTempFile::new()?.into_temp_path();
/// let file = std::fs::File::create(&path)?;
/// let mut writer = ChunkWriter::new(file, &WriteOptions::default(), b"section log 1 { }")?;
/// let mut reader = Reader::from_read(GrowingFile::open(&path)?)?;
///
/// let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
/// writer.data(spec, b"one")?;
/// writer.flush()?;
/// assert_eq!(reader.next_part()?.and_then(|part| part.records), Some(1)); // The file is still incomplete.
///
/// writer.finish(1)?;
/// assert!(reader.next_part()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct GrowingFile {
    file: File,
    at_end: Arc<AtomicBool>,
}

impl GrowingFile {
    /// Opens a file.
    ///
    /// # Errors
    /// Returns errors from the system.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, at_end: Arc::default() })
    }

    /// Returns a flag that is true whenever all current data in the file has been read.
    #[must_use]
    pub fn at_end(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.at_end)
    }

    /// Returns whether nothing more will be written, because the last bytes are a footer or the file has been deleted.
    fn is_finished(&mut self, length: u64) -> io::Result<bool> {
        let Some(at) = length.checked_sub(FOOTER as u64) else { return self.is_removed() };
        let before = self.file.stream_position()?;
        self.file.seek(SeekFrom::Start(at))?;
        let mut footer = [0; FOOTER];
        let read = self.file.read_exact(&mut footer);
        self.file.seek(SeekFrom::Start(before))?;
        // If the file has become shorter in the meantime, there is no footer at this offset.
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
                return Err(io::Error::other("the file was truncated while it was being read"));
            }
            std::thread::sleep(LOOK);
        }
    }
}
