//! The chain of sizes that the matrix of transitions makes.

use std::collections::HashMap;

use super::file::Transitions as Stored;
use super::law::{Law, Shape};
use super::random::{Random, scaled};
use crate::address::AddressMap;

/// The chain: a row for each size that has a successor.
#[derive(Debug)]
pub(super) struct Chain {
    cells: Vec<Cell>,
    /// The row that the next cell is drawn from.
    row: Row,
    pairs: HashMap<(u64, u64), u32>,
    pub(super) first: u64,
}

/// Where a row is among the cells: of the successors of one size.
type Row = (u32, u32);

/// What comes with a pair of sizes.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) size: u64,
    /// Allocations of the row up to this cell and with it.
    upto: u64,
    /// The row of this cell's size. A size without successor continues as the first size does.
    row: Row,
    /// Interarrival times, which all cells have; `None` stands for none at all.
    pub(super) iat: Option<Law>,
    pub(super) ht: Option<Law>,
}

impl Chain {
    /// Prepares a chain. `pairs`: cells are looked up by both sizes.
    pub(super) fn new(stored: &Stored, iat: Shape, ht: Shape, pairs: bool) -> Self {
        let mut chain = Self {
            cells: Vec::with_capacity(stored.cells.len()),
            row: (0, 0),
            pairs: HashMap::new(),
            first: stored.first,
        };
        let (mut before, mut upto, mut rows) = (None, 0_u64, AddressMap::<Row>::default());
        for (place, cell) in (0..).zip(&stored.cells) {
            if before != Some(cell.before) {
                (before, upto) = (Some(cell.before), 0);
            }
            upto += cell.count;
            rows.entry(cell.before).or_insert((place, place)).1 = place + 1;
            if pairs {
                chain.pairs.insert((cell.before, cell.size), place);
            }
            let (iat, ht) = (Law::new(iat, &cell.iat), Law::new(ht, &cell.ht));
            chain.cells.push(Cell { size: cell.size, upto, row: (0, 0), iat, ht });
        }
        chain.row = rows.get(&stored.first).copied().unwrap_or_default();
        for cell in &mut chain.cells {
            cell.row = rows.get(&cell.size).copied().unwrap_or(chain.row);
        }
        chain
    }

    /// Draws what follows the size before; `None`: the first size has no successor.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<&Cell> {
        let (begin, end) = self.row;
        let row = self.cells.get(begin as usize..end as usize)?;
        let value = scaled(random.bits(), row.last()?.upto);
        let cell = row.get(row.partition_point(|cell| cell.upto <= value))?;
        self.row = cell.row;
        Some(cell)
    }

    /// Returns the cell of two sizes.
    pub(super) fn of(&self, before: u64, size: u64) -> Option<&Cell> {
        self.cells.get(*self.pairs.get(&(before, size))? as usize)
    }
}
