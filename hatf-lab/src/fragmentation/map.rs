//! The address space at one moment, as a picture: a cell for each few pages, the darker the more of it is live.

use std::io::{self, Write};

use super::moment::{Moment, Run};
use crate::chart::{begin, float};
use metatf_page::units::{bytes, count};

/// Cells in a row, and in the whole picture.
const ROW: u64 = 128;
const CELLS: u64 = 8192;
/// Regions drawn: those with the most pages held.
const REGIONS: usize = 24;
/// A gap of so many pages ends a region.
const GAP: u64 = 256;
const CELL: f64 = 6.0;
const LEFT: f64 = 130.0;

/// A stretch of the address space, in pages.
struct Region<'r> {
    start: u64,
    end: u64,
    held: u64,
    runs: &'r [Run],
}

/// Draws the pages whose waste a moment attributes.
///
/// # Errors
/// The output's.
pub fn map(title: &str, moment: &Moment, out: &mut dyn Write) -> io::Result<()> {
    let page = moment.pages.first().map_or(1, |pages| pages.page);
    let (regions, left_out) = regions(&moment.runs);
    let span = regions.iter().fold(0_u64, |sum, region| sum.saturating_add(region.end - region.start));
    let scale = span.div_ceil(CELLS).max(1).next_power_of_two();
    let rows = |region: &Region<'_>| (region.end - region.start).div_ceil(scale).div_ceil(ROW);
    let height = regions.iter().map(|region| float(rows(region)) * CELL + 10.0).sum::<f64>();
    begin(title, LEFT + float(ROW) * CELL + 20.0, 90.0 + height, out)?;
    legend(&format!("a cell is {}", bytes(scale.saturating_mul(page))), out)?;
    let mut y = 70.0;
    for region in &regions {
        let address = region.start.saturating_mul(page);
        writeln!(out, r#"<text x="{}" y="{:.0}" text-anchor="end">0x{address:x}</text>"#, LEFT - 8.0, y + 6.0)?;
        for (at, live) in (0..).zip(cells(region, scale)) {
            let Some(live) = live else { continue };
            let (x, y) = (LEFT + float(at % ROW) * CELL, y + float(at / ROW) * CELL);
            let colour = shade(float(live) / (float(scale) * float(page)));
            writeln!(out, r#"<rect x="{x:.0}" y="{y:.0}" width="5.5" height="5.5" fill="{colour}"/>"#)?;
        }
        y += float(rows(region)) * CELL + 10.0;
    }
    if left_out > 0 {
        writeln!(
            out,
            r#"<text x="{LEFT}" y="{:.0}">and {} regions with fewer pages</text>"#,
            y + 12.0,
            count(left_out)
        )?;
    }
    writeln!(out, "</svg>")
}

/// Cuts the address space at its gaps; the regions with the most pages, by address, and how many others there are.
fn regions(runs: &[Run]) -> (Vec<Region<'_>>, u64) {
    let near = |one: &Run, next: &Run| next.page.saturating_sub(one.page.saturating_add(one.pages)) < GAP;
    let found = runs.chunk_by(near).filter_map(|runs| {
        let start = runs.first()?.page;
        // Where blocks overlap, which is wrong, another run than the last may end last.
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

/// Live bytes in each cell; `None`: no page of it is held.
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

/// From light orange (pinned by next to nothing) to dark blue (full).
fn shade(live: f64) -> &'static str {
    match live {
        ..0.0625 => "#fdae61",
        ..0.25 => "#fee8a8",
        ..0.5 => "#abd9e9",
        ..0.75 => "#74add1",
        ..0.95 => "#4575b4",
        _ => "#2b3f8c",
    }
}

fn legend(cell: &str, out: &mut dyn Write) -> io::Result<()> {
    let shades = [(0.0, "up to 1/16 live"), (0.1, "1/4"), (0.3, "1/2"), (0.6, "3/4"), (0.8, "19/20"), (1.0, "more")];
    for (at, (live, text)) in (0..).zip(shades) {
        let x = LEFT + float(at) * 100.0;
        writeln!(
            out,
            r#"<rect x="{x:.0}" y="36" width="10" height="10" fill="{}"/><text x="{:.0}" y="45">{text}</text>"#,
            shade(live),
            x + 14.0
        )?;
    }
    writeln!(out, r#"<text x="{:.0}" y="45">{cell}</text>"#, LEFT + 620.0)
}
