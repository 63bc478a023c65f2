//! The Markov chain of sizes defined by the transition matrix.

use std::collections::HashMap;

use super::file::{Cell as StoredCell, Transitions as Stored};
use super::histogram::Ends;
use super::law::{Law, Shape};
use super::random::Random;
use hatf_lab::AddressMap;

/// A Markov chain with a row for each size that has a successor.
#[derive(Debug)]
pub(super) struct Chain {
    cells: Vec<Cell>,
    rows: Vec<Row>,
    /// The row from which the next cell is drawn.
    row: usize,
    pairs: HashMap<(u64, u64), u32>,
    pub(super) first: u64,
}

/// The successors of a size, as the position of their cells and a sampler of their counts.
#[derive(Debug)]
struct Row {
    begin: usize,
    counts: Ends,
}

/// The data of a size pair.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) size: u64,
    /// The row of this cell's size. A size without a successor continues with the row of the first size.
    row: usize,
    /// Interarrival times, or `None` if there is no data.
    pub(super) iat: Option<Law>,
    pub(super) ht: Option<Law>,
}

impl Chain {
    /// Prepares a chain. If `pairs` is set, cells can be looked up by size pair.
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

    /// Draws the successor of the current size. Returns `None` if the first size has no successor.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<&Cell> {
        let Some(row) = self.rows.get(self.row) else {
            // Consume as many random bits as if the size had a successor.
            random.bits();
            return None;
        };
        let cell = self.cells.get(row.begin + row.counts.draw(random))?;
        self.row = cell.row;
        Some(cell)
    }

    /// Returns the cell of a size pair.
    pub(super) fn of(&self, before: u64, size: u64) -> Option<&Cell> {
        self.cells.get(*self.pairs.get(&(before, size))? as usize)
    }
}
