//! Printing a report.

mod svg;
mod text;

pub use svg::svg;
pub use text::text;
