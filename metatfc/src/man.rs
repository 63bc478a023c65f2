//! `man`: writes manual pages with the same text as `--help`.

use crate::failure::{Failure, Result};
use std::path::PathBuf;

const MORE: &str = "\
Examples:
  metatfc man ~/.local/share/man/man1
  man metatfc-dump";

/// Write manual pages: one for metatfc, and one for each of its commands
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The folder; it is made if it is missing
    folder: PathBuf,
}

pub(crate) fn run(args: &Args, command: clap::Command) -> Result<()> {
    metatf_cli::write_manual(command, &args.folder)
        .map_err(|error| Failure::io(&args.folder.display().to_string(), &error))
}
