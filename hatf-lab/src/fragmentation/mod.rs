//! Which blocks pin memory: from the addresses in a trace, the pages that hold a live block, and whose fault it is that they
//! are not free.
//!
//! A page is *held* while a live block has a byte on it (a block of no bytes holds the page of its address). The bytes of a
//! held page that no live block asked for are *wasted*: free space, headers and padding. A page's wasted bytes are shared
//! equally among the blocks that hold it: each has `wasted / blocks`, rounded down, and the `wasted % blocks` bytes that are
//! left go one each to the blocks with the lowest addresses. So shares sum to the total exactly, in integers.

mod held;
mod map;
mod moment;
mod page;
mod share;

pub use held::{Held, HeldReport, Peak};
pub use map::map;
pub use moment::{Moment, Names, OnPage, Pages, Settings};
pub use share::Share;

use crate::objects::Object;

/// The sizes of pages that are measured, in bytes.
pub const PAGES: [u64; 3] = [4 << 10, 64 << 10, 2 << 20];

/// The first byte of an object and the last one that holds a page. No object is taken to be larger than 2^47 bytes.
fn extent(object: &Object) -> (u64, u64) {
    (object.address, crate::extents::last_byte(object.address, object.size))
}
