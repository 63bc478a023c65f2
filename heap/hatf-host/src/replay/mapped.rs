//! Memory mapped independently of the allocator under test.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, MmapOptions, MmapRaw};

use super::compile::{Blocks, Summary};
use hatf_trace::{Error, Result};

/// A mapped file of operations.
pub(super) struct Words(Mmap);

impl Words {
    /// Maps a file and reads its summary.
    pub(super) fn open(path: &Path) -> Result<(Self, Summary, Blocks)> {
        let failed = || Error::system(path.display().to_string());
        let file = File::open(path).map_err(failed())?;
        let length = file.metadata().map_err(failed())?.len();
        let mut end = [0; 8];
        file.read_exact_at(&mut end, length.saturating_sub(8)).map_err(failed())?;
        let at = length.saturating_sub(8).checked_sub(u64::from_le_bytes(end));
        let bad = || Error::Trace(format!("{}: not an operations file", path.display()).into());
        let at = at.ok_or_else(bad)?;
        let mut summary = vec![0; usize::try_from(u64::from_le_bytes(end)).map_err(|_| bad())?];
        file.read_exact_at(&mut summary, at).map_err(failed())?;
        let (summary, blocks) = serde_json::from_slice(&summary).map_err(|_| bad())?;
        // SAFETY: the file has no name or was created by a test, so nobody writes to it.
        let map = unsafe { MmapOptions::new().populate().map(&file) }.map_err(failed())?;
        Ok((Self(map), summary, blocks))
    }

    /// Returns the words of the operations in `first..first + count` that exist.
    pub(super) fn block(&self, (first, count): (u64, u64)) -> impl Iterator<Item = [u64; 2]> {
        let at = |operation: u64| usize::try_from(operation.saturating_mul(16)).ok();
        let range = at(first).zip(at(first.saturating_add(count)));
        let bytes = range.and_then(|(from, to)| self.0.get(from..to)).unwrap_or_default();
        bytes.as_chunks::<16>().0.iter().map(|bytes| {
            let [a, b] =
                [bytes.first_chunk(), bytes.last_chunk()].map(|half| half.map_or(0, |half| u64::from_le_bytes(*half)));
            [a, b]
        })
    }
}

/// The addresses of blocks, and the turns of their slots.
pub(super) struct Places(MmapRaw);

/// The slot of a block.
#[repr(C)]
pub(super) struct Place {
    /// The address of the block, or 0 if there is none.
    pub(super) address: AtomicU64,
    /// The number of operations performed on the slot.
    pub(super) turns: AtomicU64,
}

impl Places {
    /// Creates empty slots. Their memory is populated immediately, so that the replay causes no page faults for them.
    pub(super) fn new(count: u64) -> Result<Self> {
        let bytes = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<Place>()).max(1);
        let map = MmapOptions::new()
            .len(bytes)
            .populate()
            .map_anon()
            .map_err(Error::system("memory for the blocks' addresses"))?;
        Ok(Self(map.into()))
    }

    pub(super) fn all(&self) -> &[Place] {
        // SAFETY: the mapping is page-aligned, has this many bytes and lives as long as `self`. It is only accessed
        // through these atomics, and all zeros is a valid `Place`.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<Place>()) }
    }

    /// Returns the addresses of the live blocks.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.all().iter().map(|place| place.address.load(Ordering::Relaxed)).filter(|address| *address != 0)
    }
}
