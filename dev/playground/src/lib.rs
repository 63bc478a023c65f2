//! The DTD language, the universal reader and writer, and heap pages for the playground, which runs in a browser.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`mod@request`] | the page's requests, and the responses to them |
//! | [`check`] | checks and formats DTDs |
//! | [`samples`] | built-in DTDs and sample traces |
//! | [`open`] | recognizes files and finds their DTDs |
//! | [`converted`] | unpacks compressed files and converts heap traces in other formats |
//! | [`rows`] | records, their fields, and their bytes |
//! | [`plan`] | records and fields as declared in the DTD, and interpretations in words |
//! | [`encode`] | encodes JSON lines as a trace |
//! | [`heap`] | builds the heap page |
//!
//! Only `memory` depends on a browser: it exports a few functions that access the module's memory. All other modules
//! are tested like any library. The page is in `assets`; `dev/scripts/playground` combines both into one file.

pub mod check;
pub mod converted;
pub mod encode;
pub mod heap;
pub mod memory;
pub mod open;
pub mod plan;
pub mod request;
pub mod rows;
pub mod samples;

/// A result whose error is a message for the user.
pub type Result<T> = std::result::Result<T, String>;
