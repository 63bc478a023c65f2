//! Printing a report.

mod diff;
mod events;
mod page;
mod profile;
mod sites;

pub use diff::{DiffReport, diff_report, diff_text};
pub use events::{EventPrinter, concerns};
pub use profile::{ProfileTable, advice_text, profile_json, profile_text, unread_text};
pub use sites::{SIZES_ONLY, SiteReport, SiteTables, sampling_note, site_reports, sites_text};
