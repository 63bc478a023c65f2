//! The language, the universal reader and writer, and pages of heap traces, for the playground: a page in a browser.
//!
//! | module | what it answers |
//! | --- | --- |
//! | [`mod@request`] | what the page asks for, and what comes back |
//! | [`check`] | what is wrong in a DTD, where, and how it is laid out |
//! | [`samples`] | DTDs that come with the project, and traces to begin with |
//! | [`open`] | what a file is, and by which DTD it is read |
//! | [`converted`] | files that are not traces as they are: compressed ones, heap traces in other forms |
//! | [`rows`] | records, their fields, and the bytes of both |
//! | [`plan`] | records and fields as the DTD declares them, and interpretations in words |
//! | [`encode`] | JSON lines as a trace |
//! | [`heap`] | the page of a heap |
//!
//! Nothing is bound to a browser but `memory`, which exports a few functions over the module's memory; all else is tested as
//! any library. The page is `assets`; `scripts/playground` puts both into one file.

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

/// Why something that was asked for cannot be: a sentence for people.
pub type Result<T> = std::result::Result<T, String>;
