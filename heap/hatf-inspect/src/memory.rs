//! The memory of another process.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::{Inconsistency, Result};

/// The size of a page in bytes.
pub(crate) const PAGE: u64 = 4096;

/// Number of bytes read at once.
const WINDOW: u64 = 256 << 10;

/// The state of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The page has no content yet.
    Absent,
    /// The page is in memory.
    Resident,
    /// The content of the page is in swap space.
    Swapped,
}

/// Readable memory of a process.
pub trait Memory {
    /// Fills the buffer with the bytes at an address.
    ///
    /// # Errors
    /// Returns an error if a byte cannot be read.
    fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Returns the state of each page in a range that begins and ends at a page boundary.
    ///
    /// # Errors
    /// Returns an error if the state cannot be determined.
    fn pages(&self, start: u64, end: u64) -> io::Result<Vec<Page>>;
}

/// The memory of a running process.
///
/// # Examples
///
/// ```
/// use hatf_inspect::{Memory as _, ProcessMemory};
///
/// let number = 0x1234_u64;
/// let mut read = [0; 8];
/// ProcessMemory::open(std::process::id())?.read(&raw const number as u64, &mut read)?;
/// assert_eq!(u64::from_ne_bytes(read), number);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ProcessMemory {
    memory: File,
    pages: File,
}

impl ProcessMemory {
    /// Opens the memory of a process.
    ///
    /// # Errors
    /// Returns an error if the process does not exist, or if this process may not trace it.
    pub fn open(process: u32) -> io::Result<Self> {
        let memory = File::open(format!("/proc/{process}/mem"))?;
        Ok(Self { memory, pages: File::open(format!("/proc/{process}/pagemap"))? })
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.memory.read_exact_at(buffer, address)
    }

    fn pages(&self, start: u64, end: u64) -> io::Result<Vec<Page>> {
        let (start, end) = (start / PAGE, end / PAGE);
        let mut pages = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        let mut at = start;
        while at < end {
            let wanted = usize::try_from((end - at).saturating_mul(8)).unwrap_or(usize::MAX).min(buffer.len());
            let part = buffer.get_mut(..wanted).unwrap_or_default();
            self.pages.read_exact_at(part, at.saturating_mul(8))?;
            for entry in part.as_chunks::<8>().0 {
                let entry = u64::from_ne_bytes(*entry);
                pages.push(match (entry >> 63, entry >> 62 & 1) {
                    (1, _) => Page::Resident,
                    (_, 1) => Page::Swapped,
                    _ => Page::Absent,
                });
            }
            at += wanted as u64 / 8;
        }
        Ok(pages)
    }
}

/// Page states of a memory range.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    start: u64,
    states: Vec<Page>,
}

impl Pages {
    /// Reads the states of all pages that the range touches.
    pub(crate) fn read(memory: &dyn Memory, start: u64, end: u64) -> Result<Self> {
        let (start, end) = (start & !(PAGE - 1), end.checked_next_multiple_of(PAGE).unwrap_or(end));
        let states = memory.pages(start, end);
        let states = states.map_err(|_| Inconsistency::new(start, "the page states cannot be read"))?;
        Ok(Self { start, states })
    }

    fn state(&self, address: u64) -> Page {
        let number = address.checked_sub(self.start).and_then(|offset| usize::try_from(offset / PAGE).ok());
        number.and_then(|number| self.states.get(number).copied()).unwrap_or(Page::Absent)
    }

    /// Returns the number of bytes between two addresses that are in memory.
    pub(crate) fn resident(&self, start: u64, end: u64) -> u64 {
        let mut sum = 0;
        let mut at = start;
        while at < end {
            let next = ((at | (PAGE - 1)).saturating_add(1)).min(end);
            if self.state(at) == Page::Resident {
                sum += next - at;
            }
            at = next;
        }
        sum
    }
}

/// A reader that keeps the last bytes it read. It reads no page without content, because the kernel would give the
/// process a page then.
pub(crate) struct Window<'m> {
    memory: &'m dyn Memory,
    pages: Pages,
    start: u64,
    /// The bytes, of which the first `length` were read.
    bytes: Vec<u8>,
    length: usize,
}

impl<'m> Window<'m> {
    /// Creates a reader of the memory whose page states are known.
    pub(crate) fn new(memory: &'m dyn Memory, pages: Pages) -> Self {
        Self { memory, pages, start: 0, bytes: Vec::new(), length: 0 }
    }

    /// Returns the page states.
    pub(crate) fn into_pages(self) -> Pages {
        self.pages
    }

    /// Returns two words. The address must be a multiple of 16.
    pub(crate) fn pair(&mut self, address: u64) -> Result<[u64; 2]> {
        if self.at(address).is_none() {
            self.fill(address)?;
        }
        self.at(address).ok_or_else(|| Inconsistency::new(address, "the memory cannot be read"))
    }

    /// Returns two words without reading more, or `None` if their page has no content.
    pub(crate) fn probe(&self, address: u64) -> Option<[u64; 2]> {
        let read = || words(self.memory, address, 2).ok()?.try_into().ok();
        self.at(address).or_else(|| (self.pages.state(address) != Page::Absent).then(read)?)
    }

    fn at(&self, address: u64) -> Option<[u64; 2]> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let (words, _) = self.bytes.get(..self.length)?.get(offset..offset.checked_add(16)?)?.as_chunks::<8>();
        Some([u64::from_ne_bytes(*words.first()?), u64::from_ne_bytes(*words.get(1)?)])
    }

    fn fill(&mut self, address: u64) -> Result<()> {
        self.start = address & !(PAGE - 1);
        self.length = 0;
        if self.pages.state(address) == Page::Absent {
            return Err(Inconsistency::new(address, "a block header is in a page that was never written"));
        }
        let mut end = self.start + PAGE;
        while end - self.start < WINDOW && self.pages.state(end) != Page::Absent {
            end += PAGE;
        }
        let length = usize::try_from(end - self.start).unwrap_or_default();
        if self.bytes.len() < length {
            self.bytes.resize(length, 0);
        }
        let read = self.bytes.get_mut(..length).map(|bytes| self.memory.read(self.start, bytes));
        if !matches!(read, Some(Ok(()))) {
            return Err(Inconsistency::new(address, "the memory cannot be read"));
        }
        self.length = length;
        Ok(())
    }
}

/// Reads a word.
pub(crate) fn word(memory: &dyn Memory, address: u64) -> Result<u64> {
    let mut bytes = [0; 8];
    let read = memory.read(address, &mut bytes);
    read.map_err(|_| Inconsistency::new(address, "the memory cannot be read"))?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Reads words.
pub(crate) fn words(memory: &dyn Memory, address: u64, count: u64) -> Result<Vec<u64>> {
    let mut bytes = vec![0; usize::try_from(count.saturating_mul(8)).unwrap_or_default()];
    let read = memory.read(address, &mut bytes);
    read.map_err(|_| Inconsistency::new(address, "the memory cannot be read"))?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}
