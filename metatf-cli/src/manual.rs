//! Manual pages, of the same texts as `--help`.

use std::io;
use std::path::Path;

use clap_mangen::Man;
use metatf::container::Sink;

use crate::{OutputFile, OutputFolder};

/// A page that is written, and appears later.
type Page = (OutputFile, Box<dyn Sink + Send>);

/// Writes the manual pages of a command and of its subcommands into a folder, which is made if it is missing. They appear when all are
/// written; where that fails, the folder has those that it had.
///
/// # Errors
/// The system's.
pub fn write_manual(command: clap::Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(command, &OutputFolder::create(folder)?, &mut pages)?;
    pages.into_iter().try_for_each(|(output, sink)| output.keep(sink))
}

/// Writes the pages of the subcommands and the page of the command.
fn write_pages(command: clap::Command, folder: &OutputFolder, pages: &mut Vec<Page>) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned() {
        write_pages(subcommand, folder, pages)?;
    }
    let page = Man::new(command);
    let (output, mut sink) = folder.file(page.get_filename().as_ref())?;
    page.render(&mut sink)?;
    sink.flush()?;
    pages.push((output, sink));
    Ok(())
}
