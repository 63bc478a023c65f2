//! Manual pages, of the same texts as `--help`.

use std::fs;
use std::io;
use std::path::Path;

use crate::output_file::PREFIX;

/// Writes the manual pages of a command and of its subcommands into a folder, which is made if it is missing. They appear when all are
/// written; where that fails, the folder has those that it had.
///
/// # Errors
/// The system's.
pub fn write_manual(command: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let pages = tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder)?;
    clap_mangen::generate_to(command, pages.path())?;
    let written: Vec<_> = fs::read_dir(pages.path())?.collect::<io::Result<_>>()?;
    for page in &written {
        fs::File::open(page.path())?.sync_all()?;
    }
    written.iter().try_for_each(|page| fs::rename(page.path(), folder.join(page.file_name())))
}
