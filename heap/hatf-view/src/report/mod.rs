//! Printing of reports.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_trace::{Event, EventSink};
//! use hatf_view::report::{SiteTables, Sites};
//! use metatf_page::{Form, Report, render};
//!
//! let mut tracker = HeapTracker::new(hatf_lab::sites::Sites::new());
//! tracker.event(&Event::malloc(0x1000, 64))?;
//! tracker.event(&Event::malloc(0x2000, 32))?;
//! let (heap, counting) = tracker.into_parts();
//! let counts = counting.report();
//!
//! let sites = Sites::all("a trace".to_owned(), &heap, &counts, None, SiteTables::default());
//! let mut text = Vec::new();
//! render(&sites.page(), Form::text(None), &mut text)?;
//! assert!(String::from_utf8(text)?.contains("ALLOCATED: 96 B in 2 blocks"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod diff;
mod events;
mod fragmentation;
mod groups;
#[cfg(feature = "native")]
mod leaks;
mod overview;
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
pub use overview::Overview;
#[cfg(feature = "native")]
pub use profile::{ProfileReport, ProfileTable, Shows};
pub use site_tables::SiteTables;
pub use sites::{AllSites, Between, FrameReport, SIZES_ONLY, SiteFrames, Sites, stack};
