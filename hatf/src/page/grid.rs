//! Tables of two quantities whose cells choose what the page shows.

use hatf_lab::fragmentation::Moment;
use hatf_lab::lifetimes::Cell;
use hatf_lab::sites::Amount;
use serde::Serialize;

/// A table, and what each site has in its cells.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) about: About,
    pub(super) cells: Vec<GridCell>,
}

/// What the page's script reads of a table beside numbers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct About {
    kind: Kind,
    /// Which of several.
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Rows are sizes and columns lifetimes: see [`Cell`].
    Lifetimes,
    /// Rows are how full pages are and columns their ages: see [`OnPage`](hatf_lab::fragmentation::OnPage). Bytes are wasted ones.
    Pages,
}

/// What a site has in one cell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GridCell {
    pub(super) site: u32,
    pub(super) row: u8,
    pub(super) column: u8,
    pub(super) amount: Amount,
}

impl GridCell {
    /// Returns site, row and column as one number, by which these are in the same order.
    pub(super) fn key(&self) -> u64 {
        u64::from(self.site) << 16 | u64::from(self.row) << 8 | u64::from(self.column)
    }
}

impl Grid {
    /// Makes the table of sizes and lifetimes.
    pub(super) fn lifetimes(sites: &[Vec<(Cell, Amount)>]) -> Self {
        let of_site = |(site, cells): (u32, &Vec<(Cell, Amount)>)| {
            let cell =
                |(cell, amount): &(Cell, Amount)| GridCell { site, row: cell.size, column: cell.life, amount: *amount };
            cells.iter().map(cell).collect::<Vec<_>>()
        };
        let about = About { kind: Kind::Lifetimes, name: String::new() };
        Self { about, cells: (0..).zip(sites).flat_map(of_site).collect() }
    }

    /// Makes the table of pages at a moment of this name.
    pub(super) fn pages(name: &str, moment: &Moment) -> Self {
        let cells = moment.on_pages.iter().map(|on| GridCell {
            site: u32::try_from(on.site).unwrap_or(0),
            row: on.full,
            column: on.age,
            amount: Amount { blocks: 1, bytes: on.wasted },
        });
        Self { about: About { kind: Kind::Pages, name: name.to_owned() }, cells: cells.collect() }
    }
}
