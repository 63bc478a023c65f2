//! `hatf man`: writes manual pages with the text of `--help`.

use hatf_trace::{Error, Result};

use super::Man;

pub(crate) fn run(options: &Man, command: clap::Command) -> Result<u8> {
    metatf_cli::write_manual(command, &options.folder).map_err(Error::system(options.folder.display().to_string()))?;
    Ok(0)
}
