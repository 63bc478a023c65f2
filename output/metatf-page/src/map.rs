//! Maps of the address space.

use crate::Unit;

/// Regions of the address space, divided into cells of the same size.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressMap {
    /// The title.
    pub title: String,
    /// The size of a cell in bytes.
    pub cell: u64,
    /// The regions, ordered by address.
    pub regions: Vec<Region>,
    /// The number of omitted regions.
    pub left_out: u64,
}

/// A contiguous part of the address space.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The start address.
    pub address: u64,
    /// The live fraction of each cell, from 0 to 1; `None` if the allocator holds no memory in the cell.
    pub cells: Vec<Option<f32>>,
}

impl AddressMap {
    /// Returns the text that explains the size of a cell.
    pub(crate) fn legend(&self) -> String {
        format!("each cell covers {}", crate::Value::of(self.cell, Unit::Bytes))
    }
}
