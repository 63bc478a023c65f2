//! Printing of reports.

mod diff;
mod events;
mod fragmentation;
mod groups;
#[cfg(feature = "native")]
mod leaks;
mod page;
#[cfg(feature = "native")]
mod profile;
mod site_tables;
mod sites;

pub use diff::Difference;
pub use events::{EventPrinter, concerns};
pub use fragmentation::{Fragmentation, FragmentationOptions, ReadTrace, default_moments};
pub use groups::Grouped;
#[cfg(feature = "native")]
pub use leaks::{Leaks, LeaksOf, Startup, Suppressed};
#[cfg(feature = "native")]
pub use profile::{ProfileReport, ProfileTable, Shows};
pub use site_tables::SiteTables;
pub use sites::{AllSites, Between, FrameReport, SIZES_ONLY, SiteFrames, Sites, stack};
