//! Maps of the address space.

use crate::Unit;

/// Regions of the address space, divided into cells of the same size.
///
/// # Examples
///
/// ```
/// use metatf_page::{AddressMap, Form, Page, Region, render};
///
/// let region = Region { address: 0x5555_0000, cells: vec![Some(1.0), None, Some(0.25)] };
/// let title = "grep.mtf: the heap at its peak".to_owned();
/// let mut page = Page::default();
/// page.push(AddressMap { title, cell: 4096, regions: vec![region], left_out: 2 });
///
/// // Text contains a summary instead of the picture.
/// let mut out = Vec::new();
/// render(&page, Form::text(None), &mut out)?;
/// assert_eq!(out, b"  2 cells of 4.00 KiB in 3 regions\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// A contiguous part of the address space. See the example of [`AddressMap`](AddressMap#examples).
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
