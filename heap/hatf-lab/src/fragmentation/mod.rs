//! Analysis of blocks that pin memory. From the addresses in a trace, this module determines which pages are held and
//! which blocks keep them from being free.
//!
//! A page is *held* while a live block has a byte on it (an empty block holds the page at its address). The bytes of a
//! held page that no live block requested (free space, headers and padding) are *wasted*. The wasted bytes of a page
//! are divided equally among the blocks that hold it. Each block gets `wasted / blocks`, rounded down. The remaining
//! `wasted % blocks` bytes go to the blocks with the lowest addresses, one byte each. The shares are thus integers that
//! add up to the total exactly.
//!
//! # Examples
//!
//! Eight blocks of 24 bytes pin eight pages of 4 KiB:
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::fragmentation::{Moment, Names, Settings};
//! use hatf_trace::{Event, EventSink};
//!
//! let mut tracker = HeapTracker::new(());
//! for page in 1..=8_u64 {
//!     tracker.event(&Event::malloc(page << 12, 24))?;
//! }
//! let objects = &tracker.heap().objects;
//! let name = |site: u64| format!("site {site}");
//! let names = Names { site: &name, function: &name };
//! let moment = Moment::new(objects.live().collect(), (objects.tick(), 0), Settings::default(), names);
//! let pages = &moment.pages[0];
//! assert_eq!((pages.held, pages.pinned, pages.wasted), (8, 8, 8 * (4_096 - 24)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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

/// The measured page sizes in bytes.
pub const PAGES: [u64; 3] = [4 << 10, 64 << 10, 2 << 20];

/// Returns the first byte of an object and the last byte that holds a page. Objects are capped at 2^47 bytes.
fn extent(object: &Object) -> (u64, u64) {
    (object.address, crate::extents::last_byte(object.address, object.size))
}
