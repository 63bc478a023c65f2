//! `hatf import`: the older name of `hatf convert --from`, kept for one release.

use std::path::PathBuf;

use hatf_trace::Result;
use hatf_trace::forms::{Form, HEAP};
use metatf_tools::recode::Preset;

use super::{Convert, form};

/// Convert another tool's log to a heap trace, as `hatf convert --from` does.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// Format of the log.
    #[arg(value_name = "FORMAT", value_parser = form())]
    from: &'static Form,

    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,

    /// Log to read; `-` is standard input.
    #[arg(value_name = "LOG")]
    input: PathBuf,

    /// Trace to write; `-` is standard output.
    #[arg(value_name = "OUT")]
    output: PathBuf,
}

pub(crate) fn run(options: Import) -> Result<u8> {
    let Import { from, preset, input, output } = options;
    let (clock, group, inner_records, strict) = (None, None, false, false);
    let (from, to, output) = (Some(from), Some(&HEAP), Some(output));
    super::convert::run(&Convert {
        from,
        to,
        preset,
        clock,
        group,
        inner_records,
        free_at_last_access: false,
        strict,
        input,
        output,
    })
}
