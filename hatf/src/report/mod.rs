//! Printing a report.

mod sites;
mod svg;
mod text;

pub use sites::{SiteReport, SiteTables, site_reports, sites_text};
pub use svg::svg;
pub use text::text;
