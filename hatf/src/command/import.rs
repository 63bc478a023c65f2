//! `hatf import`: the older name of `hatf convert --from`, for a release.

use std::path::PathBuf;

use hatf::Result;
use hatf::forms::{Form, HEAP};
use metatf_tools::recode::Preset;

use super::{Convert, form};

/// Make a heap trace of another tool's log, as hatf convert --from does.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// The form of the log.
    #[arg(value_name = "FORM", value_parser = form())]
    from: &'static Form,

    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,

    /// The log; `-` is standard input.
    #[arg(value_name = "LOG")]
    input: PathBuf,

    /// The trace; `-` is standard output.
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
