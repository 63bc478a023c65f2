//! The heap events that are written and read.

use crate::Result;
use crate::ours::heap;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A heap operation of a program. It occupies 24 bytes, like the input of the other formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The allocation of a block.
    Alloc {
        /// The size in bytes.
        size: u64,
        /// The address.
        address: u64,
    },
    /// A reallocation, which frees one block and allocates another block.
    Realloc {
        /// The old address, or 0 if there was no block.
        old: u64,
        /// The size of the new block. HATF 1.0 has no field for this size; only traces of `heap.dtd` contain it.
        size: u32,
        /// The new address.
        address: u64,
    },
    /// The deallocation of a block.
    Free {
        /// The address.
        address: u64,
    },
}

/// The counts of allocations, reallocations and frees.
pub type Counts = [u64; 3];

/// Returns the events of the files named by `METATF_BENCH_EVENTS` (separated as in `PATH`), or of the shipped files,
/// along with a sentence that describes the source.
///
/// # Errors
/// Fails if a file cannot be read or there are no files.
pub fn load() -> Result<(Vec<Event>, String)> {
    let (paths, what): (Vec<PathBuf>, _) = match std::env::var_os("METATF_BENCH_EVENTS") {
        Some(list) => (std::env::split_paths(&list).collect(), "of METATF_BENCH_EVENTS"),
        None => (shipped()?, "of dev/benches/events"),
    };
    let mut events = Vec::new();
    for path in &paths {
        read_file(path, usize::MAX, &mut events).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    if events.is_empty() {
        return Err("no events: METATF_BENCH_EVENTS must name files".into());
    }
    let names: Vec<_> = paths.iter().filter_map(|p| p.file_name()?.to_str()?.split('.').next()).collect();
    let what = format!("{} events {what}: {}", thousands(events.len()), names.join(", "));
    Ok((events, what))
}

/// Returns the shipped traces ordered by name.
///
/// # Errors
/// Returns the errors of the file system.
pub fn shipped() -> Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("events");
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "mtf") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Adds up to `most` events from a file. The file is a trace of `dtds/heap.dtd` (`.mtf`), or contains 32-byte records,
/// compressed with zstd (`.zst`) or uncompressed. A record consists of four little-endian `u64`: the tag (1 is malloc,
/// 2 free, 3 calloc, 4 realloc, 5 memalign), size, address, and old address.
///
/// # Errors
/// Fails if the file cannot be read or the trace is corrupt.
pub fn read_file(path: &Path, most: usize, events: &mut Vec<Event>) -> Result<()> {
    let extension = path.extension().and_then(|e| e.to_str());
    if extension == Some("mtf") {
        return heap::read_events(&std::fs::read(path)?, most, events);
    }
    let file = std::fs::File::open(path)?;
    let mut bytes = Vec::new();
    match extension {
        Some("zst") => zstd::Decoder::new(file)?.read_to_end(&mut bytes)?,
        _ => std::io::BufReader::new(file).read_to_end(&mut bytes)?,
    };
    let (records, _) = bytes.as_chunks::<32>();
    for record in records.iter().take(most) {
        events.push(event(record)?);
    }
    Ok(())
}

fn event(record: &[u8; 32]) -> Result<Event> {
    let (words, _) = record.as_chunks::<8>();
    let [tag, size, address, old] = [0, 1, 2, 3].map(|i| words.get(i).map_or(0, |w| u64::from_le_bytes(*w)));
    Ok(match tag {
        2 => Event::Free { address },
        4 => Event::realloc(old, size, address)?,
        _ => Event::Alloc { size, address },
    })
}

impl Event {
    /// Creates a reallocation.
    ///
    /// # Errors
    /// Fails if the size exceeds 4 GiB.
    pub fn realloc(old: u64, size: u64, address: u64) -> Result<Self> {
        let size = u32::try_from(size).map_err(|_| "a reallocation of over 4 GiB")?;
        Ok(Self::Realloc { old, size, address })
    }
}

/// Returns the sum of all fields that HATF 1.0 stores, which is the expected result of loops that read all fields.
#[must_use]
pub fn sum(events: &[Event]) -> u64 {
    events.iter().fold(0, |sum, event| {
        sum.wrapping_add(match *event {
            Event::Alloc { size, address } => size.wrapping_add(address),
            Event::Realloc { old, address, .. } => old.wrapping_add(address),
            Event::Free { address } => address,
        })
    })
}

/// Returns the total size of all reallocations, which `heap.dtd` stores but HATF 1.0 does not.
#[must_use]
pub fn realloc_sizes(events: &[Event]) -> u64 {
    events.iter().fold(0, |sum, event| match *event {
        Event::Realloc { size, .. } => sum.wrapping_add(size.into()),
        _ => sum,
    })
}

/// Returns the total size of all allocations, which is the expected result of loops that read a single field.
#[must_use]
pub fn alloc_sizes(events: &[Event]) -> u64 {
    events.iter().fold(0, |sum, event| match *event {
        Event::Alloc { size, .. } => sum.wrapping_add(size),
        _ => sum,
    })
}

/// Returns the number of events of each kind, which is the expected result of loops that count records by tag.
#[must_use]
pub fn counts(events: &[Event]) -> Counts {
    let mut counts = [0; 3];
    for event in events {
        let [allocs, reallocs, frees] = &mut counts;
        *match event {
            Event::Alloc { .. } => allocs,
            Event::Realloc { .. } => reallocs,
            Event::Free { .. } => frees,
        } += 1;
    }
    counts
}

/// Formats a number with thousands separators.
#[must_use]
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
