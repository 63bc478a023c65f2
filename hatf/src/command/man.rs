//! `hatf man`: manual pages, of the same texts as `--help`.

use std::fs;

use hatf::{Error, Result};

use super::Man;

pub(crate) fn run(options: &Man, command: clap::Command) -> Result<u8> {
    fs::create_dir_all(&options.folder)
        .and_then(|()| clap_mangen::generate_to(command, &options.folder))
        .map_err(Error::system(options.folder.display().to_string()))?;
    Ok(0)
}
