//! What the commands `metatfc` and `hatf` share: files that appear once they are whole, and a line of progress.

mod output_file;
mod progress;

pub use output_file::OutputFile;
pub use progress::{Progress, ProgressSink};
