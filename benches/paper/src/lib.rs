//! How small and how fast a heap trace is in every encoding: the tables of the paper's section 3, and what came after it.
//!
//! All encodings hold the same: the calls of a trace as raw records of 32 bytes (tag, size, address, old address). Every
//! size is that of a whole file, header, index and DTD included, and every file is read back and compared before its
//! size counts. Sizes are exact; times are of the processor, medians of several runs in memory.
//!
//! | module | what it answers |
//! | --- | --- |
//! | `column` | which encodings there are, and how each is compressed |
//! | `encoding` | from raw records to a file, and back |
//! | `split_addr` | the paper's HATF SplitAddr: a trace cut into its unencoded addresses and the rest |
//! | `simple` | the forms that are no Meta-TF: simple binary, ASCII; compressed as files |
//! | `tools` | files that other programs make |
//! | `measure` | sizes and times of a trace, and what it holds (the paper's table 3) |
//! | `tables` | the paper's tables |
//! | `chart` | the picture |

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
