//! Printing a report.

mod diff;
mod events;
mod groups;
mod page;
mod profile;
mod sites;

pub use diff::Difference;
pub use events::{EventPrinter, concerns};
pub use groups::Grouped;
pub use profile::{ProfileReport, ProfileTable, Shows};
pub use sites::{AllSites, Between, FrameReport, SIZES_ONLY, SiteTables, Sites, frames, stack};
