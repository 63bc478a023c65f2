//! The memory of a process in a core file.
//!
//! A core file is an ELF file. Its segments contain the memory, and its notes contain the registers of the threads and
//! the names of the mapped files. All numbers are checked against the length of the file, so a file of any content is
//! read in time and memory that its length bounds.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use object::elf::{
    ELFCLASS64, ELFDATA2LSB, EM_X86_64, ET_CORE, NT_FILE, NT_PRPSINFO, NT_PRSTATUS, PF_W, PF_X, PN_XNUM, PT_LOAD,
    PT_NOTE,
};
use rustix::fs::{SeekFrom, seek};

use crate::mapping::OF_NO_FILE;
use crate::memory::{Memory, PAGE, Page};
use crate::{Mapping, Thread, glibc};

/// The size of a program header.
const HEADER: usize = 56;
/// Maximum number of program headers.
const MOST_HEADERS: u64 = 1 << 18;
/// Maximum size of the notes, which contain about 4 KB per thread.
const MOST_NOTES: u64 = 256 << 20;
/// Maximum size of the memory. One byte is needed for each page.
const MOST_MEMORY: u64 = 1 << 40;
/// The size of a page, of which this many are read at once.
const PAGE_BYTES: usize = 4096;
const PAGES_AT_ONCE: usize = 64;

/// A place at which a core file is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreError {
    /// The offset in the file.
    pub offset: u64,
    /// A description of the mistake.
    pub what: Cow<'static, str>,
}

impl CoreError {
    fn new(offset: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Self { offset, what: what.into() }
    }
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at offset {}: {}", self.offset, self.what)
    }
}

impl std::error::Error for CoreError {}

type Result<T> = std::result::Result<T, CoreError>;

/// A core file of an x86-64 process.
///
/// A core file does not state which pages were in memory. A page that contains only zeros counts as absent, because
/// the kernel also writes pages without content as zeros.
#[derive(Debug)]
pub struct CoreFile {
    file: File,
    segments: Vec<Segment>,
    /// The mappings. The number of resident bytes is that of the pages that do not only contain zeros.
    pub mappings: Vec<Mapping>,
    /// The threads, the one that received the signal first.
    pub threads: Vec<Thread>,
    /// The process ID, or 0 if unknown.
    pub process: u32,
    /// The beginning of the command line, at most 80 bytes.
    pub command: Vec<String>,
}

/// A segment with memory.
#[derive(Debug)]
struct Segment {
    start: u64,
    offset: u64,
    flags: u32,
    /// The address after the last byte of the mapping, which the file may lack.
    end: u64,
    pages: Vec<Page>,
}

impl CoreFile {
    /// Reads the tables of a core file and finds the pages that do not only contain zeros.
    ///
    /// # Errors
    /// Returns an error with an offset if the file cannot be read, is no core file of an x86-64 process, is truncated,
    /// or contradicts itself.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use hatf_inspect::{CoreFile, read_heap};
    ///
    /// let core = CoreFile::read(std::fs::File::open("core.1234")?)?;
    /// let heap = read_heap(&core, &core.mappings, &core.threads)?;
    /// println!("{} live blocks", heap.map_or(0, |heap| heap.live().count()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(file: File) -> Result<Self> {
        let length = file.metadata().map_err(|error| CoreError::new(0, error.to_string()))?.len();
        let headers = headers(&file, length)?;
        let mut notes = Notes::default();
        let mut left = MOST_NOTES;
        for header in headers.iter().filter(|header| header.kind == PT_NOTE) {
            left =
                left.checked_sub(header.size).ok_or_else(|| CoreError::new(header.offset, "the notes are too long"))?;
            notes.read(&bytes(&file, header.offset, header.size)?, header.offset)?;
        }
        let segments = segments(&file, length, &headers)?;
        let Notes { files, threads, process, command } = notes;
        let mut core = Self { file, segments, mappings: Vec::new(), threads, process, command };
        let mut mappings: Vec<_> = core.segments.iter().flat_map(|segment| segment.mappings(&files)).collect();
        glibc::name_segment(&core, &mut mappings);
        core.mappings = mappings;
        Ok(core)
    }
}

impl Memory for CoreFile {
    fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (mut at, mut rest) = (address, buffer);
        while !rest.is_empty() {
            let next = self.segments.partition_point(|segment| segment.start <= at).checked_sub(1);
            let segment = next.and_then(|next| self.segments.get(next));
            let within = segment.and_then(|segment| Some((segment.offset, at - segment.start, segment.content()?)));
            let (offset, within, size) = within.ok_or(io::ErrorKind::NotFound)?;
            let length = usize::try_from(size.saturating_sub(within)).unwrap_or(usize::MAX).min(rest.len());
            if length == 0 {
                return Err(io::ErrorKind::NotFound.into());
            }
            let (part, after) = rest.split_at_mut(length);
            self.file.read_exact_at(part, offset + within)?;
            (at, rest) = (at.saturating_add(length as u64), after);
        }
        Ok(())
    }

    fn pages(&self, start: u64, end: u64) -> io::Result<Vec<Page>> {
        // The range is in one mapping or in a heap, whose size was checked before.
        let count =
            end.checked_sub(start).filter(|size| *size <= MOST_MEMORY).ok_or(io::ErrorKind::InvalidInput)? / PAGE;
        let mut pages = vec![Page::Absent; usize::try_from(count).map_err(|_| io::ErrorKind::InvalidInput)?];
        let first = self.segments.partition_point(|segment| segment.end <= start);
        for segment in self.segments.iter().skip(first).take_while(|segment| segment.start < end) {
            let from = segment.start.max(start);
            let first = usize::try_from((from - start) / PAGE).unwrap_or(usize::MAX);
            let to = pages.get_mut(first..).unwrap_or_default();
            to.iter_mut().zip(segment.states(from, end)).for_each(|(to, state)| *to = *state);
        }
        Ok(pages)
    }
}

impl Segment {
    /// Returns the number of bytes in the file, if there are any.
    fn content(&self) -> Option<u64> {
        Some(self.pages.len() as u64 * PAGE).filter(|size| *size > 0)
    }

    /// Returns the states of the pages between two addresses that the file contains.
    fn states(&self, start: u64, end: u64) -> &[Page] {
        let number = |address: u64| {
            let pages = address.clamp(self.start, self.end).saturating_sub(self.start) / PAGE;
            usize::try_from(pages).unwrap_or(usize::MAX).min(self.pages.len())
        };
        self.pages.get(number(start)..number(end)).unwrap_or_default()
    }

    /// Returns the mappings of the segment, which begin and end where mapped files do. Memory of no file that the core
    /// file does not contain is left out.
    fn mappings(&self, files: &[Named]) -> Vec<Mapping> {
        let mut mappings = Vec::new();
        let content = self.start + self.content().unwrap_or_default();
        let mut at = self.start;
        while at < self.end {
            let next = files.partition_point(|file| file.end <= at);
            let file = files.get(next).filter(|file| file.start < self.end);
            let (end, name) = match file {
                Some(file) if file.start <= at => (file.end.min(self.end), file.name.clone()),
                Some(file) => (file.start, String::new()),
                None => (self.end, String::new()),
            };
            let is_private = !OF_NO_FILE.iter().any(|start| name.starts_with(start));
            let (is_writable, is_code) = (self.flags & PF_W != 0, self.flags & PF_X != 0);
            let states = self.states(at, end).iter();
            let resident = PAGE * states.filter(|state| **state == Page::Resident).count() as u64;
            let (start, last) = (at, if name.is_empty() { end.min(content) } else { end });
            at = end;
            if start < last {
                mappings.push(Mapping { start, end: last, is_writable, is_private, is_code, name, resident });
            }
        }
        mappings
    }
}

/// A program header.
struct Header {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    size: u64,
    memory: u64,
    /// The offset of the header itself.
    at: u64,
}

/// Reads bytes of a file. The caller has limited the size.
fn bytes(file: &File, offset: u64, size: u64) -> Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
    file.read_exact_at(&mut bytes, offset).map_err(|error| CoreError::new(offset, format!("cannot read: {error}")))?;
    Ok(bytes)
}

/// Returns the number in the `N` bytes at a place, or 0 after the end.
fn number<const N: usize>(bytes: &[u8], place: usize) -> u64 {
    let bytes = bytes.get(place..).and_then(|bytes| bytes.first_chunk::<N>());
    bytes.map_or(0, |bytes| bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Returns a number of 32 bits.
fn half(bytes: &[u8], place: usize) -> u32 {
    bytes.get(place..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Reads the program headers. No content of a segment with notes or memory is after the end of the file.
fn headers(file: &File, length: u64) -> Result<Vec<Header>> {
    let start = bytes(file, 0, length.min(64))?;
    let compressed: [&[u8]; 4] = [b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\xfd7zXZ", b"\x04\x22\x4d\x18"];
    if compressed.iter().any(|magic| start.starts_with(magic)) {
        return Err(CoreError::new(0, "the file is compressed; decompress it first"));
    }
    if !start.starts_with(b"\x7fELF") || start.len() < 64 {
        return Err(CoreError::new(0, "expected a process ID or a core file, found a file in another format"));
    }
    if number::<2>(&start, 16) != u64::from(ET_CORE) {
        return Err(CoreError::new(16, "expected a core file, found a program or library"));
    }
    let is_machine = number::<2>(&start, 18) == u64::from(EM_X86_64);
    if start.get(4..6) != Some(&[ELFCLASS64, ELFDATA2LSB]) || !is_machine {
        return Err(CoreError::new(18, "the core file is not of an x86-64 process"));
    }
    let (table, sections) = (number::<8>(&start, 32), number::<8>(&start, 40));
    let mut count = number::<2>(&start, 56);
    if count == u64::from(PN_XNUM) {
        // The first section header contains the number of program headers.
        let at = sections.checked_add(44).filter(|at| *at + 4 <= length);
        count = number::<4>(&bytes(file, at.ok_or_else(|| truncated(sections, length))?, 4)?, 0);
    }
    let size = count.saturating_mul(HEADER as u64);
    if count > MOST_HEADERS {
        return Err(CoreError::new(56, format!("the core file has {count} segments, more than {MOST_HEADERS}")));
    }
    if table.checked_add(size).is_none_or(|end| end > length) {
        return Err(truncated(table, length));
    }
    let mut headers = Vec::new();
    for (header, at) in bytes(file, table, size)?.chunks_exact(HEADER).zip((table..).step_by(HEADER)) {
        let [offset, address, _, size, memory] = [8, 16, 24, 32, 40].map(|place| number::<8>(header, place));
        let header = Header { kind: half(header, 0), flags: half(header, 4), offset, address, size, memory, at };
        let is_read = header.kind == PT_NOTE || header.kind == PT_LOAD;
        if is_read && size > 0 && offset.checked_add(size).is_none_or(|end| end > length) {
            let content = match header.kind {
                PT_NOTE => "the notes end".to_owned(),
                _ => format!("the memory from {address:#x} ends"),
            };
            let what = format!(
                "{content} at offset {}, but the file has only {length} bytes; the core file is truncated, for example \
                 by `ulimit -c` or a full disk",
                u128::from(offset) + u128::from(size)
            );
            return Err(CoreError::new(at, what));
        }
        headers.push(header);
    }
    Ok(headers)
}

fn truncated(offset: u64, length: u64) -> CoreError {
    CoreError::new(offset, format!("the core file is truncated: it has only {length} bytes"))
}

/// Reads the states of the pages of all segments. The segments must not overlap.
fn segments(file: &File, length: u64, headers: &[Header]) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = Vec::new();
    if headers.iter().all(|header| header.kind != PT_LOAD) {
        return Err(CoreError::new(56, "the core file contains no memory"));
    }
    let mut left = length.min(MOST_MEMORY);
    let mut loads: Vec<_> = headers.iter().filter(|header| header.kind == PT_LOAD && header.memory > 0).collect();
    loads.sort_by_key(|header| header.address);
    for header in loads {
        let Header { flags, offset, address: start, size, memory, at, .. } = *header;
        let wrong = |what: &str| CoreError::new(at, format!("the segment at {start:#x} {what}"));
        let end = start.checked_add(memory).ok_or_else(|| wrong("ends after the end of all memory"))?;
        if start % PAGE != 0 || size > memory {
            return Err(wrong("does not begin at a page, or has more content than memory"));
        }
        if segments.last().is_some_and(|last| last.end > start) {
            return Err(wrong("overlaps another segment"));
        }
        left = left.checked_sub(size).ok_or_else(|| wrong("has content that another segment has, too"))?;
        segments.push(Segment { start, offset, flags, end, pages: states(file, offset, size / PAGE)? });
    }
    Ok(segments)
}

/// Returns which pages in a part of the file do not only contain zeros. Holes in the file are not read.
fn states(file: &File, offset: u64, count: u64) -> Result<Vec<Page>> {
    let count = usize::try_from(count).unwrap_or_default();
    let mut states = vec![Page::Absent; count];
    let mut buffer = vec![0; PAGES_AT_ONCE * PAGE_BYTES];
    let mut page = 0;
    while page < count {
        let at = offset + page as u64 * PAGE;
        // Without support for holes, the file is read from here. After the last data, there is an error.
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => at,
        };
        page += usize::try_from(data.saturating_sub(at) / PAGE).unwrap_or(count);
        let wanted = count.saturating_sub(page).min(PAGES_AT_ONCE);
        let part = buffer.get_mut(..wanted * PAGE_BYTES).unwrap_or_default();
        let at = offset.saturating_add(page as u64 * PAGE);
        file.read_exact_at(part, at).map_err(|error| CoreError::new(at, format!("cannot read: {error}")))?;
        for (state, page) in states.iter_mut().skip(page).zip(part.chunks_exact(PAGE_BYTES)) {
            if page.iter().any(|byte| *byte != 0) {
                *state = Page::Resident;
            }
        }
        page += wanted;
    }
    Ok(states)
}

/// The addresses at which a file is mapped.
struct Named {
    start: u64,
    end: u64,
    name: String,
}

/// The content of the notes.
#[derive(Default)]
struct Notes {
    files: Vec<Named>,
    threads: Vec<Thread>,
    process: u32,
    command: Vec<String>,
}

impl Notes {
    /// Reads the notes that begin at an offset of the file.
    fn read(&mut self, notes: &[u8], offset: u64) -> Result<()> {
        let mut rest = notes;
        while !rest.is_empty() {
            let at = offset + (notes.len() - rest.len()) as u64;
            let [name, size] = [0, 4].map(|place| half(rest, place) as usize);
            let content = 12_usize.saturating_add(name.next_multiple_of(4));
            let end = content.saturating_add(size);
            let Some(content) = rest.get(content..end) else {
                return Err(CoreError::new(at, "a note ends after its segment"));
            };
            if rest.get(12..).is_some_and(|rest| rest.starts_with(b"CORE")) {
                match half(rest, 8) {
                    NT_PRSTATUS => self.thread(content, at)?,
                    NT_PRPSINFO => self.process(content, at)?,
                    NT_FILE => self.files(content, at)?,
                    _ => {}
                }
            }
            rest = rest.get(end.next_multiple_of(4)..).unwrap_or_default();
        }
        self.files.sort_by_key(|file| file.start);
        let mut pairs = self.files.iter().zip(self.files.iter().skip(1));
        if let Some((_, next)) = pairs.find(|(file, next)| file.end > next.start) {
            return Err(CoreError::new(offset, format!("two files are mapped at {:#x}", next.start)));
        }
        Ok(())
    }

    /// Reads the registers of a thread (`elf_prstatus`), which begin at byte 112.
    fn thread(&mut self, content: &[u8], at: u64) -> Result<()> {
        if content.len() < 336 {
            return Err(CoreError::new(at, "a note with registers is too short"));
        }
        let register = |place: usize| number::<8>(content, 112 + 8 * place);
        self.threads.push(Thread { stack_pointer: register(19), thread_pointer: register(21) });
        Ok(())
    }

    /// Reads the process ID, the name and the command line (`elf_prpsinfo`).
    fn process(&mut self, content: &[u8], at: u64) -> Result<()> {
        if content.len() < 136 {
            return Err(CoreError::new(at, "a note about the process is too short"));
        }
        self.process = half(content, 24);
        let text = |from: usize, to: usize| {
            let bytes = content.get(from..to).unwrap_or_default();
            let text = String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned();
            text.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let line = text(56, 136);
        self.command = if line.is_empty() { text(40, 56) } else { line };
        Ok(())
    }

    /// Reads the mapped files: their number and the unit of offsets, three words for each, and their names.
    fn files(&mut self, content: &[u8], at: u64) -> Result<()> {
        let count = usize::try_from(number::<8>(content, 0)).unwrap_or(usize::MAX);
        let names = count.checked_mul(24).and_then(|size| content.get(size.checked_add(16)?..));
        let names =
            names.ok_or_else(|| CoreError::new(at, format!("the note lacks the {count} files that it counts")))?;
        let entries = content.get(16..).unwrap_or_default().chunks_exact(24).take(count);
        for (entry, name) in entries.zip(names.split(|byte| *byte == 0)) {
            let (start, end) = (number::<8>(entry, 0), number::<8>(entry, 8));
            if start >= end {
                return Err(CoreError::new(at, format!("a file is mapped from {start:#x} to {end:#x}")));
            }
            self.files.push(Named { start, end, name: String::from_utf8_lossy(name).into_owned() });
        }
        Ok(())
    }
}
