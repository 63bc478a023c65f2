//! Manual pages, of the same texts as `--help`.

use std::fs;
use std::io;
use std::path::Path;

use clap_mangen::Man;
use metatf::container::Sink;

use crate::OutputFile;

/// A page that is written and has no name yet.
type Page = (OutputFile, Box<dyn Sink + Send>);

/// Writes the manual pages of a command and of its subcommands into a folder, which is made if it is missing. They appear when all are
/// written; if writing one fails, the folder keeps the pages that it had.
///
/// # Errors
/// The system's.
pub fn write_manual(command: clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, folder, &mut pages)?;
    pages.into_iter().try_for_each(|(page, sink)| page.keep(sink))
}

/// Writes the pages of a command and of those below it.
fn write_pages(command: &clap::Command, folder: &Path, pages: &mut Vec<Page>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, folder, pages)?;
    }
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let (output, mut sink) = OutputFile::create(&folder.join(page.get_filename()))?;
    sink.write_all(&text)?;
    sink.flush()?;
    pages.push((output, sink));
    Ok(())
}
