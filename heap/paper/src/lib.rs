//! Sizes and speeds of heap traces in every encoding, as in the tables in section 3 of the paper, including later
//! encodings.
//!
//! All encodings contain the same data, which are the calls of a trace as raw 32-byte records (tag, size, address, old
//! address). Every size is that of a complete file, including header, index and DTD. A size counts only after the file
//! has been read back and compared. Sizes are exact; times are medians of CPU time over several in-memory runs.
//!
//! | module | contents |
//! | --- | --- |
//! | `column` | the encodings and their packings |
//! | `encoding` | conversion of raw records to files, and back |
//! | `split_addr` | the paper's HATF SplitAddr: a trace split into its unencoded addresses and the rest |
//! | `simple` | formats other than Meta-TF: simple binary and ASCII, compressed as files |
//! | `tools` | files created by other programs |
//! | `measure` | sizes and times of a trace, and a summary of its contents (table 3 of the paper) |
//! | `tables` | the paper's tables |
//! | `chart` | the chart |

mod chart;
mod column;
mod encoding;
mod measure;
mod simple;
mod split_addr;
mod tables;
mod tools;

pub use chart::chart;
pub use column::{Column, Packing};
pub use measure::{Measured, Options, Perl, Step, Summary, Times, measure};
pub use tables::Sizes;
