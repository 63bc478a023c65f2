//! Traces made of traces: a part of one, several as one, a sample, one without names.
//!
//! Each is an [`EventSink`](crate::EventSink) before another: it passes on what it keeps, changed or not, in memory bounded by what is live.

mod anonymize;
mod carried;
mod context;
mod cut;
mod mapped;
mod merge;
mod moved;
mod process;
mod same;
mod sample;
mod subset;
mod tokens;

pub use anonymize::{Anonymizer, Kept as KeptNames};
pub use cut::{Cut, CutCounts, Records};
pub use merge::{Merged, merge};
pub use process::OfProcess;
pub use same::{Checked, Figure, check};
pub use sample::{SampleCounts, Sampler, SizesSeen, mean_for};
pub use subset::{Subset, Wanted};
pub use tokens::Tokens;
