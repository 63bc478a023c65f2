//! Printing a report.

mod svg;
mod text;
mod units;

pub use svg::svg;
pub use text::text;
pub(crate) use units::count;
