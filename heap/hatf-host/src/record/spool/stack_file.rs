//! The reader's view of the call stack file next to a spool.

use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use hatf_record::names::STACKS;
use hatf_record::{StackTable, stacks_bytes, stacks_first_bytes, stacks_head};

use super::mapping::Mapping;
use super::own_folder::{Access, OwnFolder};
use hatf_trace::event::Stack;

/// Maximum number of frames that are followed in a stack, because the chain of callers may be corrupt.
const DEPTH_MAX: usize = 1024;
/// Maximum number of cached stacks.
const KEPT: usize = 1 << 18;
/// Maximum number of frames in the cached stacks.
const KEPT_FRAMES: usize = 1 << 23;

/// Creates the file for stacks of this many frames, with a maximum size in bytes. Reserves the disk blocks of its first
/// part, or of the entire file if the kernel cannot do that later, because touching a missing block would kill the
/// program.
///
/// # Errors
/// Returns an error if a system call failed.
pub(crate) fn create_stack_file(folder: &OwnFolder, depth: usize, room: usize) -> io::Result<()> {
    let file = folder.file(STACKS, Access::Create)?;
    // SAFETY: the range is empty. Kernels that support the operation accept it.
    let whole = unsafe { libc::madvise(std::ptr::null_mut(), 0, libc::MADV_POPULATE_WRITE) } != 0;
    let bytes = stacks_bytes(room);
    file.set_len(bytes as u64)?;
    let first = libc::off_t::try_from(stacks_first_bytes(bytes, whole)).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: the file is open, and the other arguments are numbers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, first) } {
        0 => {}
        error => return Err(io::Error::from_raw_os_error(error)),
    }
    let head: Vec<u8> = stacks_head(depth, bytes, whole).iter().flat_map(|word| word.to_ne_bytes()).collect();
    file.write_all_at(&head, 0)
}

/// The stacks of a recording, by number.
#[derive(Default)]
pub(crate) struct StackFile {
    file: Option<Mapping>,
    /// The numbers and the frames of cached stacks, by their places in the file.
    known: HashMap<u32, (u32, Vec<u64>)>,
    /// The total number of frames in the cached stacks.
    frames: usize,
    /// Whether a requested stack was missing.
    has_missed: bool,
}

impl StackFile {
    /// Opens the file in a spool's directory. Without a file, there are no stacks.
    pub(crate) fn open(folder: &OwnFolder) -> Self {
        let map = || {
            let file = folder.file(STACKS, Access::Edit)?;
            let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
            Mapping::new(file, bytes)
        };
        Self { file: map().ok(), ..Self::default() }
    }

    /// Returns the number of calls without a stack because the table was full.
    pub(crate) fn missed(&self) -> u64 {
        self.file.as_ref().and_then(table).map_or(0, |table| table.missed())
    }

    /// Returns whether any of the requested stacks could not be read.
    pub(crate) fn is_damaged(&self) -> bool {
        self.has_missed || self.file.as_ref().is_some_and(|file| file.unreadable() > 0)
    }

    /// Returns a stack.
    #[inline]
    pub(crate) fn stack(&mut self, place: u32) -> Stack<'_> {
        if place == 0 { Stack::NONE } else { self.stack_at(place) }
    }

    fn stack_at(&mut self, place: u32) -> Stack<'_> {
        let Some(file) = self.file.as_ref() else {
            self.has_missed = true;
            return Stack::NONE;
        };
        if (self.known.len() >= KEPT || self.frames >= KEPT_FRAMES) && !self.known.contains_key(&place) {
            self.known.clear();
            self.frames = 0;
        }
        let (number, frames) = self.known.entry(place).or_insert_with(|| {
            let mut frames = Vec::new();
            if let Some(table) = table(file) {
                let mut next = table.get(place);
                while let Some((caller, address)) = next.filter(|_| frames.len() < DEPTH_MAX) {
                    frames.push(address);
                    next = table.get(caller);
                }
            }
            self.frames += frames.len();
            self.has_missed |= frames.is_empty();
            (number(), frames)
        });
        Stack::numbered(frames, *number)
    }
}

/// Numbers a stack. The spools of a process before and after `exec` are written to one trace, so the numbers are unique
/// across all files.
fn number() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    let next = |last: u32| Some(last.saturating_add(1));
    LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).map_or(0, |last| last.saturating_add(1))
}

/// Returns a view of the table in a file, or `None` if the file contains no table.
fn table(file: &Mapping) -> Option<StackTable<'_>> {
    // SAFETY: this many bytes are mapped at a multiple of the chunk size as long as the mapping lives, and they are
    // used only through tables.
    unsafe { StackTable::attach(file.memory(), file.bytes()) }
}

#[cfg(test)]
mod tests {
    use super::super::own_folder::temporary;
    use super::*;

    #[test]
    fn stacks_of_a_file() {
        let (_outside, folder) = temporary().unwrap();
        create_stack_file(&folder, 64, 1 << 20).unwrap();
        let file = folder.file(STACKS, Access::Edit).unwrap();
        let put = |node: u32, caller: u64, address: u64| {
            let words = [address | caller << 48, caller + 1];
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            // The nodes follow two slots that contain the head.
            file.write_all_at(&bytes, 16 * (2 + u64::from(node) - 1)).unwrap();
        };
        put(7, 0, 0x10);
        put(9, 7, 0x20);
        // This node is its own caller.
        put(3, 3, 0x30);
        let mut stacks = StackFile::open(&folder);
        assert_eq!(*stacks.stack(9), [0x20, 0x10]);
        assert!(stacks.stack(0).is_empty());
        assert_eq!(stacks.missed(), 0);
        file.write_all_at(&7_u64.to_ne_bytes(), 16).unwrap();
        assert_eq!((stacks.missed(), StackFile::default().missed()), (7, 0));
        assert_eq!((stacks.stack(5).len(), stacks.stack(u32::MAX).len()), (0, 0));
        assert_eq!(stacks.stack(3).len(), DEPTH_MAX);
        // A stack that was added later.
        put(8, 9, 0x30);
        assert_eq!(*stacks.stack(8), [0x30, 0x20, 0x10]);
        let (_outside, none) = temporary().unwrap();
        assert_eq!(*StackFile::open(&none).stack(9), [0_u64; 0]);
        // After a file has been truncated, known stacks are kept.
        file.set_len(64).unwrap();
        assert_eq!(*stacks.stack(8), [0x30, 0x20, 0x10]);
        assert!(stacks.stack(1_000_000).is_empty());
        file.set_len(0).unwrap();
        assert_eq!((stacks.stack(6).len(), stacks.missed()), (0, 0));
    }
}
