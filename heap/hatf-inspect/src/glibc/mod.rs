//! The heap of glibc 2.26 and later, on 64-bit machines.
//!
//! | file | content |
//! | --- | --- |
//! | `chunks.rs` | Blocks between two addresses |
//! | `arenas.rs` | The arenas and their memory |
//! | `mapped.rs` | Blocks that are mapped individually |
//! | `lists.rs` | Freed blocks that look allocated: fast bins and the caches of threads |

mod arenas;
mod chunks;
mod lists;
mod mapped;
#[cfg(test)]
pub(crate) mod tests;

use crate::memory::Memory;
use crate::{Mapping, Result};
pub(crate) use chunks::{Chunk, Place, Region, State};

/// The registers of a stopped thread that its memory depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The stack pointer.
    pub stack_pointer: u64,
    /// The address of the thread's control block (`fs_base`), or 0 if unknown.
    pub thread_pointer: u64,
}

/// A live block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The address that `malloc` returned.
    pub address: u64,
    /// The number of usable bytes (`malloc_usable_size`).
    pub usable: u64,
}

/// A heap in which everything adds up.
#[derive(Clone, Debug, Default)]
pub struct Heap {
    /// The memory of the arenas and the mapped blocks, in the order of their addresses.
    pub(crate) regions: Vec<Region>,
    pub(crate) arenas: u64,
    pub(crate) caches: u64,
}

impl Heap {
    /// Returns the live blocks in the order of their addresses.
    pub fn live(&self) -> impl Iterator<Item = Block> {
        let blocks = self.regions.iter().flat_map(|region| region.chunks.iter().map(move |chunk| (region, chunk)));
        blocks
            .filter(|(_, chunk)| chunk.state() == State::Live)
            .map(|(region, chunk)| Block { address: chunk.address + 16, usable: chunk.size() - region.header(*chunk) })
    }

    /// Returns the number of arenas.
    #[must_use]
    pub fn arenas(&self) -> u64 {
        self.arenas
    }
}

/// Reads the heap of a stopped process. Returns `None` if glibc's malloc has no blocks in the process.
///
/// # Errors
/// Returns an error if the memory cannot be read or does not add up, for example because a thread was stopped in the
/// middle of a call.
pub fn read_heap(memory: &dyn Memory, mappings: &[Mapping], threads: &[Thread]) -> Result<Option<Heap>> {
    let Some(found) = arenas::find(memory, mappings)? else { return Ok(None) };
    let mut regions = arenas::regions(memory, mappings, &found)?;
    regions.extend(mapped::regions(memory, mappings, &regions, &found)?);
    regions.sort_by_key(|region| region.start);
    let mut heap = Heap { regions, arenas: found.arenas.len() as u64, caches: 0 };
    lists::take_out(memory, mappings, threads, &found, &mut heap)?;
    Ok(Some(heap))
}

/// Gives the mappings of the heap segment their name, which a core file does not contain: those around the free memory
/// at the end of the main arena.
pub(crate) fn name_segment(memory: &dyn Memory, mappings: &mut [Mapping]) {
    let Ok(Some(found)) = arenas::find(memory, mappings) else { return };
    let top = found.arenas.first().map_or(0, |arena| arena.top);
    let adjacent =
        mappings.chunk_by_mut(|one, next| one.end == next.start && one.is_anonymous_data() && next.is_anonymous_data());
    for group in adjacent {
        if group.iter().any(|mapping| mapping.contains(top) && mapping.is_anonymous_data()) {
            group.iter_mut().for_each(|mapping| mapping.name = "[heap]".to_owned());
        }
    }
}
