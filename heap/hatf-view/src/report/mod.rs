//! Printing of reports.

mod diff;
mod events;
mod fragmentation;
mod groups;
#[cfg(feature = "symbols")]
mod leaks;
mod page;
#[cfg(feature = "symbols")]
mod profile;
mod site_tables;
mod sites;

pub use diff::Difference;
pub use events::{EventPrinter, concerns};
pub use fragmentation::{Fragmentation, FragmentationOptions, ReadTrace, When, default_moments};
pub use groups::Grouped;
#[cfg(feature = "symbols")]
pub use leaks::{Leaks, LeaksOf, Startup, Suppressed};
#[cfg(feature = "symbols")]
pub use profile::{ProfileReport, ProfileTable, Shows};
pub use site_tables::SiteTables;
pub use sites::{AllSites, Between, FrameReport, SIZES_ONLY, Sites, frames, stack};
