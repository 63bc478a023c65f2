//! A picture of the address space at one point in time. Each cell covers a few pages; cells with more live bytes are
//! darker.

use metatf_page::{AddressMap, Region as Drawn};

use super::moment::{Moment, Run};

/// The number of cells in the picture.
const CELLS: u64 = 8192;
/// The maximum number of regions to draw. The regions with the most held pages are drawn.
const REGIONS: usize = 24;
/// A gap of this many pages or more ends a region.
const GAP: u64 = 256;

/// A contiguous part of the address space, in pages.
struct Region<'r> {
    start: u64,
    end: u64,
    held: u64,
    runs: &'r [Run],
}

/// Draws a map of the pages of a snapshot, using the page size for which waste is attributed.
#[must_use]
pub fn map(title: String, moment: &Moment) -> AddressMap {
    let page = moment.pages.first().map_or(1, |pages| pages.page);
    let (regions, left_out) = regions(&moment.runs);
    let span = regions.iter().fold(0_u64, |sum, region| sum.saturating_add(region.end - region.start));
    let scale = span.div_ceil(CELLS).max(1).next_power_of_two();
    let cell = scale.saturating_mul(page);
    let drawn = regions.iter().map(|region| Drawn {
        address: region.start.saturating_mul(page),
        cells: cells(region, scale).into_iter().map(|live| live.map(|live| part(live, cell))).collect(),
    });
    AddressMap { title, cell, regions: drawn.collect(), left_out }
}

/// Returns the live fraction of a cell.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the value is a shade in an image")]
fn part(live: u64, cell: u64) -> f32 {
    (live as f64 / cell as f64) as f32
}

/// Splits the address space at its gaps. Returns the regions with the most pages in address order, and the number of
/// omitted regions.
fn regions(runs: &[Run]) -> (Vec<Region<'_>>, u64) {
    let near = |one: &Run, next: &Run| next.page.saturating_sub(one.page.saturating_add(one.pages)) < GAP;
    let found = runs.chunk_by(near).filter_map(|runs| {
        let start = runs.first()?.page;
        // In an invalid trace with overlapping blocks, the last run is not necessarily the one that ends last.
        let end = runs.iter().map(|run| run.page.saturating_add(run.pages)).max()?;
        let held = runs.iter().fold(0_u64, |sum, run| sum.saturating_add(run.pages));
        Some(Region { start, end, held, runs })
    });
    let mut found: Vec<Region<'_>> = found.collect();
    found.sort_by_key(|region| std::cmp::Reverse(region.held));
    let left_out = found.len().saturating_sub(REGIONS) as u64;
    found.truncate(REGIONS);
    found.sort_by_key(|region| region.start);
    (found, left_out)
}

/// Returns the live bytes in each cell, or `None` for a cell without held pages.
fn cells(region: &Region<'_>, scale: u64) -> Vec<Option<u64>> {
    let count = (region.end - region.start).div_ceil(scale);
    let mut cells = vec![None; usize::try_from(count).unwrap_or(0)];
    for run in region.runs {
        let (start, end) = (run.page - region.start, (run.page - region.start).saturating_add(run.pages));
        for cell in start / scale..end.div_ceil(scale) {
            let pages = end.min((cell + 1) * scale) - start.max(cell * scale);
            if let Some(live) = usize::try_from(cell).ok().and_then(|cell| cells.get_mut(cell)) {
                *live = Some(live.unwrap_or(0_u64).saturating_add(pages.saturating_mul(run.live)));
            }
        }
    }
    cells
}
