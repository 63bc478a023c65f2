//! `hatf completions`: prints shell completion scripts.

use std::io::Write as _;

use clap::CommandFactory as _;
use hatf_trace::Result;
use metatf_cli::{Style, stdout};

use super::{Cli, Completions as Options};

pub(crate) fn run(options: &Options) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "hatf", &mut script);
    let mut out = stdout(Style::Data);
    out.write_all(&script)?;
    out.flush()?;
    Ok(0)
}
