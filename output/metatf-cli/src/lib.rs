//! Code shared by the commands `metatfc` and `hatf`: files that appear when they are complete, printing, progress,
//! numeric arguments, SQL, and child processes with limits.

mod arguments;
mod child;
#[cfg(unix)]
mod file_signals;
mod installed_docs;
mod memory;
mod number;
mod output_file;
mod output_folder;
mod print;
mod progress;
mod shown;
pub mod sql;
mod streams;
mod trace_file;

pub use arguments::parse;
pub use child::{Child, ChildCommand, ChildLimits, Death, Message, ToParent, file_bytes, output_of, serve_parent};
#[cfg(unix)]
pub use file_signals::report_file_signals;
pub use memory::{CountedMemory, MemoryLimit, available_memory, before_memory_ends, limit_memory, memory_limit};
pub use metatf_page::{is_control, shown};
pub use number::number;
pub use output_file::OutputFile;
pub use output_folder::OutputFolder;
pub use print::{
    Format, FormatArgs, FormatOr, OutputArgs, OutputOrArgs, print, print_into, stderr_width, stdout_width,
};
pub use progress::{Progress, ProgressSink};
pub use shown::{Shown, Style, without_colours};
pub use streams::{
    JSON_VERSION, Stdout, print_failure, print_message, stderr, stderr_is_terminal, stdout, stdout_is_terminal,
};
pub use trace_file::{Opened, is_mapped, lost_records, open_any, open_raw_trace, open_trace, read_head, watch_trace};
