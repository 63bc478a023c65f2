//! Trace files that are continued by another writer.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use super::chunk::{self, ChunkHeader, Frame, Probe};
use super::decode::Decoder;
use super::existing::ExistingTrace;
use super::header::{Header, INTS_AT};
use super::index::{self, ChunkInfo};
use super::order::Sequence;
use super::read::Reader;
use super::read_v1;
use super::salvage::Salvage;
use super::sink::{Sink, seek_and_write};
use super::source::Source;
use super::times::GroupTimes;
use crate::{Error, ErrorKind, Result};

/// A trace file to which a writer adds records, as a sink for any writer. A file that does not exist or is empty
/// becomes a new trace. Continuing a trace requires a Unix system.
///
/// The new records form groups after the existing ones, so every reader can read the result. The writer must have the
/// same DTD as the trace. It uses the trace's class and byte order, and ignores those of its options.
///
/// All complete chunks are kept. If the previous writer was killed, the file may end with an incomplete chunk; these
/// [bytes](Self::torn_bytes) are removed, because no reader can read them. The file does not change before the first
/// write. The index and the footer are then removed, and written again when the trace is finished. If the writer is
/// killed before that, the file is an unfinished trace with all complete chunks.
///
/// The file is locked against other `AppendFile`s until the sink is dropped. Other writers must not use it, and
/// programs that read it in the meantime should not map it ([`Reader::read`]), because it becomes shorter at first.
///
/// # Examples
///
/// ```
/// use metatf_container::{AppendFile, ChunkSpec, ChunkWriter, Reader, WriteOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.mtf");
/// for group in 0..2 {
///     // The first turn creates the file.
///     let sink = AppendFile::open(&path)?;
///     let mut writer = ChunkWriter::new(sink, &WriteOptions::default(), b"section log 1 { }")?;
///     let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, group, ..ChunkSpec::default() };
///     writer.data(spec, b"one")?;
///     writer.finish(u64::from(group) + 1)?;
/// }
///
/// let mut reader = Reader::open(&path)?;
/// assert_eq!(reader.header().nrecords, 2);
/// while let Some(part) = reader.next_part()? {
///     assert_eq!(reader.bytes(&part.content), b"one");
/// }
/// assert!(reader.warnings().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AppendFile {
    file: BufWriter<File>,
    /// The trace in the file, until a writer takes it.
    existing: Option<ExistingTrace>,
    /// The change to the file before the first write.
    start: Option<Start>,
    torn: u64,
}

/// The changes to a file before the first write.
#[derive(Debug)]
struct Start {
    /// End of the data to keep.
    keep: u64,
    /// The offset and size of the number of records in the header, which is set to 0, because it is wrong until the
    /// trace is finished.
    count: Option<(u64, usize)>,
}

impl AppendFile {
    /// Opens a version 1 trace, or creates the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read and written, if another `AppendFile` has locked it, or if it is
    /// neither empty nor a version 1 trace with an embedded DTD. A corrupt trace is also an error; `metatfc convert
    /// --salvage` makes an intact copy.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        // Some file systems have no locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let why = "another program is appending to the file; wait until it has finished, or write another file";
            return Err(Error::at(0, ErrorKind::Usage(why)));
        }
        let length = file.metadata()?.len();
        let existing = if length > 0 { existing(&file)? } else { None };
        let keep = existing.as_ref().map_or(0, |(trace, _)| trace.end);
        let count = existing.as_ref().filter(|(trace, _)| trace.header.nrecords > 0).map(|(trace, _)| {
            let int = trace.header.class.int_size();
            ((INTS_AT + 2 * int) as u64, int)
        });
        let torn = existing.as_ref().map_or(length, |(_, torn_at)| torn_at.map_or(0, |at| length - at));
        Ok(Self {
            file: BufWriter::new(file),
            existing: existing.map(|(trace, _)| trace),
            start: Some(Start { keep, count }),
            torn,
        })
    }

    /// Returns the number of bytes of an incomplete chunk at the end of the file, which the first write removes.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.torn
    }

    /// Prepares the file for the first write. If the program is killed between the steps, the trace is still valid: a
    /// header may state no number of records, and the index and the footer may be missing.
    fn start(&mut self) -> io::Result<()> {
        if self.existing.is_some() {
            return Err(io::Error::other("only a version 1 writer can continue a trace"));
        }
        let Some(Start { keep, count }) = self.start.take() else { return Ok(()) };
        let file = self.file.get_mut();
        if let Some((at, size)) = count {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&[0; 8][..size.min(8)])?;
        }
        file.set_len(keep)?;
        file.seek(SeekFrom::Start(keep)).map(|_| ())
    }
}

impl Write for AppendFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.start()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink for AppendFile {
    fn mark(&mut self) -> Option<u64> {
        Some(0)
    }

    fn overwrite(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.start()?;
        seek_and_write(&mut self.file, at, bytes)
    }

    fn existing(&mut self) -> Option<ExistingTrace> {
        self.existing.take()
    }
}

/// Reads the trace in a file, and returns it and the offset of an incomplete chunk at the end of the file. Returns `None`
/// if the file ends inside the header or the DTD.
fn existing(file: &File) -> Result<Option<(ExistingTrace, Option<u64>)>> {
    let mut reader = match Reader::start(Source::of(file.try_clone()?)?, false) {
        Ok(reader) => reader,
        Err(error) if matches!(error.kind, ErrorKind::Truncated(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if reader.header().version != 1 {
        return Err(Error::at(0, ErrorKind::Usage("a version 0 trace cannot be continued; convert it to version 1")));
    }
    let dtd = reader.dtd_text().map(<[u8]>::to_vec);
    let Reader { source, header, .. } = &mut reader;
    let (mut chunks, mut end, is_torn) = walk(source, header)?;
    let torn_at = is_torn.then_some(end);
    let Some(dtd) = dtd else {
        if chunks.is_empty() && (is_torn || source.view(end, 1)?.is_empty()) {
            return Ok(None);
        }
        return Err(Error::at(0, ErrorKind::Dtd("the trace embeds no DTD, so it cannot be continued")));
    };
    let mut times = None;
    // The writer will write the times of all groups after its own groups.
    if let Some(last) = chunks.pop_if(|last| last.kind == chunk::TIMES) {
        times = Some(group_times(source, last.offset, &chunks)?);
        end = last.offset;
    }
    let header = header.clone();
    Ok(Some((ExistingTrace { header, dtd, chunks, times, end }, torn_at)))
}

/// Reads the chunk with the times of groups, which follows these chunks.
fn group_times(source: &mut Source<'_>, start: u64, chunks: &[ChunkInfo]) -> Result<GroupTimes> {
    let Frame::Whole(header) = chunk::frame(source, start)? else {
        return Err(Error::at(start, ErrorKind::Truncated("a chunk")));
    };
    header.check_fields(start)?;
    let content = read_v1::content(source, &mut Decoder::default(), &header, start)?;
    let groups = chunks.iter().filter(|chunk| chunk.is_group_start()).count();
    GroupTimes::parse(read_v1::bytes(source, &content).unwrap_or_default(), start, groups as u64)
}

/// Returns the chunks before the index or the end, the end of the last chunk, and whether an incomplete chunk follows.
/// Checks all headers, and the CRC of the last chunk, which the system may not have written completely.
fn walk(source: &mut Source<'_>, file: &Header) -> Result<(Vec<ChunkInfo>, u64, bool)> {
    let (mut sequence, mut chunks, mut at) = (Sequence::new(), Vec::<ChunkInfo>::new(), file.start);
    let is_torn = loop {
        match chunk::frame(source, at)? {
            Frame::Whole(header) => {
                header.check(at, file)?;
                sequence.check(&header, at)?;
                if header.kind == chunk::INDEX {
                    check_end(source, &header, at, &chunks)?;
                    break false;
                }
                sequence.note(&header);
                chunks.push(ChunkInfo::of(&header, at));
                at += header.total_len();
            }
            Frame::None(Probe::Bad(error)) if matches!(error.kind, ErrorKind::Truncated(_)) => {
                // If a complete chunk follows, the length in the header is corrupt, and nothing must be removed.
                let fits = |header: &ChunkHeader, at: u64| header.check(at, file).is_ok();
                match Salvage::new().search(source, at + 1, &fits)? {
                    Ok(_) => return Err(error),
                    Err(_) => break true,
                }
            }
            Frame::None(Probe::Bad(error)) => return Err(error),
            Frame::None(_) => break false,
        }
    };
    match chunks.last().map(|last| chunk::probe(source, last.offset)).transpose()? {
        Some(Probe::Bad(error)) => Err(error),
        _ => Ok((chunks, at, is_torn)),
    }
}

/// Checks the index at `start` and the footer, which may be missing or incomplete. Both are removed, and so must not be
/// anything else.
fn check_end(source: &mut Source<'_>, header: &ChunkHeader, start: u64, chunks: &[ChunkInfo]) -> Result<()> {
    index::check(read_v1::payload(source, header, start)?, start, chunks)?;
    let footer_at = start + header.total_len();
    match index::check_footer(source.view(footer_at, index::FOOTER + 1)?, footer_at, start) {
        Err(error) if !matches!(error.kind, ErrorKind::Truncated(_)) => Err(error),
        _ => Ok(()),
    }
}
