//! Draws a map of the address space, in which each cell covers a few pages. Cells with more live memory are darker.

use std::io::{self, Write};

use super::{begin, float};
use crate::{AddressMap, Region, Value};

/// The number of cells in a row.
const ROW: u64 = 128;
const CELL: f64 = 6.0;
const LEFT: f64 = 130.0;
const TOP: f64 = 70.0;

pub(super) fn draw(map: &AddressMap, out: &mut dyn Write) -> io::Result<()> {
    let rows = |region: &Region| (region.cells.len() as u64).div_ceil(ROW);
    let height = map.regions.iter().map(|region| float(rows(region)) * CELL + 10.0).sum::<f64>();
    let about = format!("{} regions of the address space; {}", map.regions.len(), map.legend());
    begin(&map.title, &about, (LEFT + float(ROW) * CELL + 20.0, 90.0 + height), out)?;
    legend(&map.legend(), out)?;
    let mut y = TOP;
    for region in &map.regions {
        let address = Value::Address(region.address);
        writeln!(
            out,
            r#"<text x="{:.0}" y="{:.0}" text-anchor="end" font-size="12">{address}</text>"#,
            LEFT - 8.0,
            y + 6.0
        )?;
        for (at, live) in (0..).zip(&region.cells) {
            let Some(live) = live else { continue };
            let (x, y) = (LEFT + float(at % ROW) * CELL, y + float(at / ROW) * CELL);
            writeln!(out, r#"<rect x="{x:.0}" y="{y:.0}" width="5.5" height="5.5" fill="{}"/>"#, shade(*live))?;
        }
        y += float(rows(region)) * CELL + 10.0;
    }
    if map.left_out > 0 {
        let regions = Value::Count(map.left_out);
        writeln!(out, r#"<text x="{LEFT:.0}" y="{:.0}">and {regions} regions with fewer pages</text>"#, y + 12.0)?;
    }
    writeln!(out, "</svg>")
}

/// Returns the color of a cell, from light orange (almost nothing is live) to dark blue (full).
fn shade(live: f32) -> &'static str {
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
    let mut x = 12.0;
    for (live, text) in shades {
        writeln!(
            out,
            r#"<rect x="{x:.0}" y="36" width="11" height="11" fill="{}"/><text x="{:.0}" y="46">{text}</text>"#,
            shade(live),
            x + 16.0
        )?;
        x += 40.0 + 8.0 * float(text.len() as u64);
    }
    writeln!(out, r#"<text x="{x:.0}" y="46">{cell}</text>"#)
}
