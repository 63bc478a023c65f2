//! The option `--install-docs`: manual pages with the same text as `--help`, and shell completions.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, ValueHint, error::ErrorKind, value_parser};
use clap_complete::Shell;
use clap_mangen::Man;
use metatf::container::Sink;

use crate::{OutputFile, OutputFolder, print_failure};

const NAME: &str = "install-docs";

/// A file that has been written, but has not appeared yet.
type Written = (OutputFile, Box<dyn Sink + Send>);

/// Adds the option to a command. If it is among the arguments, no subcommand is required.
pub(crate) fn with_option(command: Command, arguments: &[OsString]) -> Command {
    let command = command.arg(
        Arg::new(NAME)
            .long(NAME)
            .value_name("DIR")
            .value_hint(ValueHint::DirPath)
            .value_parser(value_parser!(PathBuf))
            .help("Write manual pages and shell completions to DIR, such as ~/.local/share"),
    );
    let is_given = arguments.iter().any(|argument| argument.to_string_lossy().starts_with("--install-docs"));
    if is_given { command.subcommand_required(false).arg_required_else_help(false) } else { command }
}

/// Writes the files and exits if the option is given. `command` creates the command without the option.
pub(crate) fn write_if_asked(command: impl FnOnce() -> Command, matches: &ArgMatches) {
    let Some(folder) = matches.get_one::<PathBuf>(NAME) else { return };
    let mut command = with_option(command(), &[]);
    if let Some(subcommand) = matches.subcommand_name() {
        let message = format!("--install-docs cannot be used with the command `{subcommand}`\n");
        command.error(ErrorKind::ArgumentConflict, message).exit();
    }
    let name = command.get_name().to_owned();
    let status = match write(command, &name, folder) {
        Ok(()) => 0,
        Err(error) => {
            print_failure(&name, &format!("{}: {error}", folder.display()));
            1
        }
    };
    std::process::exit(status)
}

/// Writes the manual pages and completions to the subdirectories of `folder` in which `man` and shells look for them.
/// The files appear when all have been written.
fn write(mut command: Command, name: &str, folder: &Path) -> io::Result<()> {
    let share = OutputFolder::create(folder)?;
    let mut files = Vec::new();
    // The completions include the subcommand `help`, but it has no page.
    let mut pages = command.clone().disable_help_subcommand(true);
    pages.build();
    write_pages(pages, &share.folders(["man", "man1"])?, &mut files)?;
    let completions = [
        (Shell::Bash, "bash-completion/completions", name.to_owned()),
        (Shell::Fish, "fish/vendor_completions.d", format!("{name}.fish")),
        (Shell::Zsh, "zsh/site-functions", format!("_{name}")),
    ];
    for (shell, folder, file) in completions {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, name, &mut script);
        let (output, mut sink) = share.folders(folder.split('/'))?.file(file.as_ref())?;
        sink.write_all(&script)?;
        sink.flush()?;
        files.push((output, sink));
    }
    files.into_iter().try_for_each(|(output, sink)| output.keep(sink))
}

/// Writes the manual pages of the subcommands and of the command itself.
fn write_pages(command: Command, folder: &OutputFolder, files: &mut Vec<Written>) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()).cloned() {
        write_pages(subcommand, folder, files)?;
    }
    let page = Man::new(command);
    let (output, mut sink) = folder.file(page.get_filename().as_ref())?;
    page.render(&mut sink)?;
    sink.flush()?;
    files.push((output, sink));
    Ok(())
}
