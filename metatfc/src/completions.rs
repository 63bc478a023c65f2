//! `completions`: prints a shell's completion script for `metatfc`.

use crate::failure::Result;
use crate::output;

const MORE: &str = "\
Examples:
  metatfc completions bash > ~/.local/share/bash-completion/completions/metatfc
  metatfc completions zsh > ~/.zfunc/_metatfc
  metatfc completions fish > ~/.config/fish/completions/metatfc.fish";

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Shell to generate the script for
    shell: clap_complete::Shell,
}

pub(crate) fn run(args: &Args, command: &mut clap::Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "metatfc", &mut script);
    output::print_data(&String::from_utf8_lossy(&script))
}
