//! The chain of sizes that the matrix of transitions makes.

use std::collections::HashMap;

use super::file::{Cell as StoredCell, Transitions as Stored};
use super::histogram::Ends;
use super::law::{Law, Shape};
use super::random::Random;
use crate::address::AddressMap;

/// The chain: a row for each size that has a successor.
#[derive(Debug)]
pub(super) struct Chain {
    cells: Vec<Cell>,
    rows: Vec<Row>,
    /// The row that the next cell is drawn from.
    row: usize,
    pairs: HashMap<(u64, u64), u32>,
    pub(super) first: u64,
}

/// The successors of one size: where they are among the cells, and how often each came.
#[derive(Debug)]
struct Row {
    begin: usize,
    counts: Ends,
}

/// What comes with a pair of sizes.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) size: u64,
    /// The row of this cell's size. A size without successor continues as the first size does.
    row: usize,
    /// Interarrival times, which all cells have; `None` stands for none at all.
    pub(super) iat: Option<Law>,
    pub(super) ht: Option<Law>,
}

impl Chain {
    /// Prepares a chain. `pairs`: cells are looked up by both sizes.
    pub(super) fn new(stored: &Stored, iat: Shape, ht: Shape, pairs: bool) -> Self {
        let (mut rows, mut numbers, mut begin) = (Vec::new(), AddressMap::default(), 0);
        for row in stored.cells.chunk_by(|cell, next| cell.before == next.before) {
            numbers.extend(row.first().map(|cell| (cell.before, rows.len())));
            rows.push(Row { begin, counts: Ends::new(row.iter().map(|cell| cell.count)) });
            begin += row.len();
        }
        let first = numbers.get(&stored.first).copied().unwrap_or(usize::MAX);
        let cell = |cell: &StoredCell| Cell {
            size: cell.size,
            row: numbers.get(&cell.size).copied().unwrap_or(first),
            iat: Law::new(iat, &cell.iat),
            ht: Law::new(ht, &cell.ht),
        };
        let places = stored.cells.iter().zip(0..).filter(|_| pairs);
        Self {
            cells: stored.cells.iter().map(cell).collect(),
            rows,
            row: first,
            pairs: places.map(|(cell, place)| ((cell.before, cell.size), place)).collect(),
            first: stored.first,
        }
    }

    /// Draws what follows the size before; `None`: the first size has no successor.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<&Cell> {
        let Some(row) = self.rows.get(self.row) else {
            // A trace has this random number drawn, too.
            random.bits();
            return None;
        };
        let cell = self.cells.get(row.begin + row.counts.draw(random))?;
        self.row = cell.row;
        Some(cell)
    }

    /// Returns the cell of two sizes.
    pub(super) fn of(&self, before: u64, size: u64) -> Option<&Cell> {
        self.cells.get(*self.pairs.get(&(before, size))? as usize)
    }
}
