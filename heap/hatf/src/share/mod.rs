//! Derives traces from other traces: part of a trace, several merged traces, a sample, or a trace without names.
//!
//! Each derivation is an [`EventSink`](hatf_trace::EventSink) that forwards selected events, changed or unchanged, to
//! another sink. Memory is bounded by the number of live blocks.

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
mod segment;
mod subset;
mod tokens;

pub use anonymize::{Anonymizer, Kept as KeptNames};
pub use cut::{Cut, CutCounts, Records};
pub use merge::{Merged, merge};
pub use process::OfProcess;
pub use same::{Checked, Figure, check};
pub use sample::{SampleCounts, Sampler, SizesSeen, mean_for};
pub use segment::{LiveState, SegmentStart};
pub use subset::{Subset, Wanted};
pub use tokens::Tokens;
