//! Manual pages, with the same text as `--help`.

use std::io;
use std::path::Path;

use clap_mangen::Man;
use metatf::container::Sink;

use crate::{OutputFile, OutputFolder};

/// A page that has been written, but has not appeared yet.
type Page = (OutputFile, Box<dyn Sink + Send>);

/// Writes the manual pages of a command and its subcommands to a directory, which is created if necessary. The pages
/// appear when all have been written; if writing one fails, the directory is unchanged.
///
/// # Errors
/// Returns the system error.
pub fn write_manual(command: clap::Command, folder: &Path) -> io::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(command, &OutputFolder::create(folder)?, &mut pages)?;
    pages.into_iter().try_for_each(|(output, sink)| output.keep(sink))
}

/// Writes the pages of the subcommands and of the command itself.
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
