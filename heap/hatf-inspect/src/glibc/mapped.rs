//! Blocks with a mapping of their own.
//!
//! The first word of such a block's header is the distance from the start of the mapping, which is 0 unless the block
//! is aligned. The allocator counts these blocks, so that missing and invented ones are noticed.

use super::arenas::{Arenas, segment};
use super::chunks::{Chunk, FLAGS, LEAST, MAPPED, Place, Region, State};
use crate::memory::{Memory, PAGE, Pages, Window};
use crate::{Inconsistency, Mapping, Result};

/// Finds the mapped blocks outside of the arenas.
pub(super) fn regions(
    memory: &dyn Memory,
    mappings: &[Mapping],
    arenas: &[Region],
    found: &Arenas,
) -> Result<Vec<Region>> {
    let Some(counts) = found.counts(mappings) else {
        return Err(Inconsistency::new(
            0,
            "the allocator's counts were not found among the variables of the C library",
        ));
    };
    let segment = segment(mappings).unwrap_or_default();
    let is_outside = |mapping: &&Mapping| {
        let is_arena = arenas.iter().any(|region| region.start < mapping.end && mapping.start < region.end);
        mapping.is_anonymous_data() && !is_arena && mapping.start != segment.0
    };
    let outside: Vec<_> = mappings.iter().filter(is_outside).collect();
    let mut sum = (0, 0);
    // Adjacent mappings appear as one, so a second search looks at each page.
    for everywhere in [false, true] {
        let mut regions = Vec::new();
        if counts.mapped > 0 {
            for mapping in &outside {
                search(memory, mapping, everywhere, &mut regions)?;
            }
        }
        sum = (regions.len() as u64, regions.iter().map(|region| region.end - region.start).sum());
        if sum == (counts.mapped, counts.mapped_bytes) {
            return Ok(regions);
        }
    }
    let what = format!(
        "the allocator counts {} mapped blocks with {} bytes, but {} with {} bytes were found",
        counts.mapped, counts.mapped_bytes, sum.0, sum.1
    );
    Err(Inconsistency::new(outside.first().map_or(0, |mapping| mapping.start), what))
}

/// Finds the mapped blocks in a mapping, at its start and directly after each other, or everywhere.
fn search(memory: &dyn Memory, mapping: &Mapping, everywhere: bool, regions: &mut Vec<Region>) -> Result<()> {
    let mut window = Window::new(memory, Pages::read(memory, mapping.start, mapping.end)?);
    let (mut lowest, mut at) = (mapping.start, mapping.start);
    while at < mapping.end {
        match block(&mut window, mapping, lowest, at) {
            Some((start, chunk)) => {
                let pages = Pages::read(memory, start, chunk.end())?;
                regions.push(Region { start, end: chunk.end(), place: Place::Mapped, chunks: vec![chunk], pages });
                (lowest, at) = (chunk.end(), chunk.end());
            }
            None if everywhere => at += PAGE,
            None => break,
        }
    }
    Ok(())
}

/// Returns the block whose header is in the page at an address, and the start of its mapping, which must not precede
/// `lowest`.
fn block(window: &mut Window<'_>, mapping: &Mapping, lowest: u64, page: u64) -> Option<(u64, Chunk)> {
    // The content of an aligned block begins at a power of two, or at the end of a page, and follows the header.
    let places = [0].into_iter().chain((5..=12).map(|power| (1 << power) - 16));
    places.map(|place| page + place).find_map(|address| {
        let [before, head] = window.pair(address).ok()?;
        let (start, size) = (address.checked_sub(before)?, head & !FLAGS);
        let end = address.checked_add(size)?;
        let is_block =
            head & FLAGS == MAPPED && size >= LEAST && size % 16 == 0 && end % PAGE == 0 && start % PAGE == 0;
        (is_block && start >= lowest && end <= mapping.end).then(|| (start, Chunk::new(address, size, State::Live)))
    })
}
