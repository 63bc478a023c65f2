//! Blocks that are mapped individually.
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
        // The count of bytes becomes wrong in glibc 2.43 when aligned blocks are freed.
        if sum.0 == counts.mapped && (sum.1 == counts.mapped_bytes || counts.mapped_bytes % PAGE != 0) {
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
    let mut start = mapping.start;
    while start < mapping.end {
        match block(&mut window, mapping, start, everywhere) {
            Some((chunk, end)) => {
                let pages = Pages::read(memory, start, end)?;
                regions.push(Region { start, end, place: Place::Mapped, chunks: vec![chunk], pages });
                start = end;
            }
            None if everywhere => start += PAGE,
            None => break,
        }
    }
    Ok(())
}

/// Returns the block whose mapping starts at an address, and the end of the mapping. Since glibc 2.43, the mapping has
/// room for another header at its end.
///
/// The header of an aligned block is before the first aligned address of the mapping. The header that the block had
/// before it was aligned remains at the start of the mapping, so the highest place with a valid header counts.
fn block(window: &mut Window<'_>, mapping: &Mapping, start: u64, everywhere: bool) -> Option<(Chunk, u64)> {
    let mut read = |address| match everywhere && address - start < PAGE {
        // All pages are read, so they are read together.
        true => window.pair(address).ok(),
        false => window.probe(address),
    };
    let [_, first] = read(start)?;
    let is_far = first & FLAGS == MAPPED && matches!(first & !FLAGS & (PAGE - 1), 0 | 0xff0);
    let alignments = (4..=30).map(|power| 1 << power).take_while(|alignment| is_far || *alignment <= PAGE);
    let places = alignments.filter_map(|alignment: u64| (start + 16).checked_next_multiple_of(alignment));
    places
        .take_while(|place| *place < mapping.end)
        .filter_map(|place| {
            let address = place - 16;
            let [before, head] = read(address)?;
            let size = head & !FLAGS;
            let end = address.checked_add(size).filter(|end| end % PAGE == 0 || end % PAGE == PAGE - 16)?;
            let end = end.checked_next_multiple_of(PAGE)?;
            let is_block = head & FLAGS == MAPPED && size >= LEAST && size.is_multiple_of(16) && end <= mapping.end;
            // The lowest bit of the distance states whether huge pages are used.
            let is_here = address.checked_sub(before & !1) == Some(start);
            (is_block && is_here).then(|| (Chunk::new(address, size, State::Live), end))
        })
        .last()
}
