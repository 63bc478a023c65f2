//! Tables of two quantities. Users select cells to show their data.

use hatf_lab::blocks::Cell;
use hatf_lab::fragmentation::Moment;
use hatf_lab::sites::Amount;
use serde::Serialize;

/// A table whose cells contain the amount of each site.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    pub(super) about: About,
    pub(super) cells: Vec<GridCell>,
}

/// Non-numeric data of a table for the report's script.
#[derive(Clone, Debug, Serialize)]
pub(super) struct About {
    kind: Kind,
    /// Name that distinguishes several tables of one kind.
    name: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Rows are sizes and columns are lifetimes: see [`Cell`].
    Lifetimes,
    /// Rows are fill levels of pages, and columns are ages: see [`OnPage`](hatf_lab::fragmentation::OnPage). Amounts
    /// are in wasted bytes.
    Pages,
}

/// The amount of a site in one cell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GridCell {
    pub(super) site: u32,
    pub(super) row: u8,
    pub(super) column: u8,
    pub(super) amount: Amount,
}

impl GridCell {
    /// Returns site, row and column as a single number, which sorts by these in this order.
    pub(super) fn key(&self) -> u64 {
        u64::from(self.site) << 16 | u64::from(self.row) << 8 | u64::from(self.column)
    }
}

impl Grid {
    /// Creates the table of sizes and lifetimes.
    pub(super) fn lifetimes(sites: &[Vec<(Cell, Amount)>]) -> Self {
        let of_site = |(site, cells): (u32, &Vec<(Cell, Amount)>)| {
            let cell =
                |(cell, amount): &(Cell, Amount)| GridCell { site, row: cell.size, column: cell.life, amount: *amount };
            cells.iter().map(cell).collect::<Vec<_>>()
        };
        let about = About { kind: Kind::Lifetimes, name: String::new() };
        Self { about, cells: (0..).zip(sites).flat_map(of_site).collect() }
    }

    /// Creates the table of pages at a named point in time.
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
