//! What the commands `metatfc` and `hatf` share: files that appear once they are whole, a line of progress,
//! numbers among the arguments.

mod number;
mod output_file;
mod progress;

pub use number::number;
pub use output_file::OutputFile;
pub use progress::{Progress, ProgressSink};
