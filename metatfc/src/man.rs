//! `man`: writes manual pages with the same text as `--help`.

use crate::failure::{Failure, Result};
use std::path::PathBuf;

const MORE: &str = "\
Examples:
  metatfc man ~/.local/share/man/man1
  man metatfc-dump";

/// Write manual pages for metatfc and each of its commands
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Output directory; created if it does not exist
    folder: PathBuf,
}

pub(crate) fn run(args: &Args, command: clap::Command) -> Result<()> {
    metatf_cli::write_manual(command, &args.folder)
        .map_err(|error| Failure::io(&args.folder.display().to_string(), &error))
}
