//! Memory by address.

use crate::Unit;

/// Regions of the address space, in cells of the same size.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressMap {
    /// What it shows.
    pub title: String,
    /// Bytes of a cell.
    pub cell: u64,
    /// Regions, by address.
    pub regions: Vec<Region>,
    /// Regions that are left out.
    pub left_out: u64,
}

/// A stretch of the address space.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// Where it begins.
    pub address: u64,
    /// How much of each cell is live, from 0 to 1; `None`: the cell is not held.
    pub cells: Vec<Option<f32>>,
}

impl AddressMap {
    /// Returns what a cell is.
    pub(crate) fn legend(&self) -> String {
        format!("a cell is {}", crate::Value::of(self.cell, Unit::Bytes))
    }
}
