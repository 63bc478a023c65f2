//! `fmt`: formats DTDs.

use crate::failure::{Failure, Result, print_message};
use crate::{dtd, input, output, target};
use std::path::{Path, PathBuf};

const MORE: &str = "\
Comments are kept. Formatting is idempotent. A DTD that cannot be parsed is left
unchanged.

Examples:
  metatfc fmt spans.dtd              changes the file
  metatfc fmt --check dtds/*.dtd     prints the files that would change; exit status 1
  metatfc fmt --short spans.dtd      also shortens the file
  metatfc fmt - < spans.dtd";

/// Format DTDs
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTDs; `-` formats standard input to standard output
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Change nothing; exit with status 1 if a file would change
    #[arg(long)]
    check: bool,
    /// Also write types in field lists (`size: u32`) in place of statements
    #[arg(long)]
    short: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut wrong = false;
    for path in &args.files {
        match format(path, args) {
            Ok(fine) => wrong |= !fine,
            Err(Failure::Failed(message)) => {
                print_message(&message);
                wrong = true;
            }
            Err(Failure::Printed) => wrong = true,
            Err(other) => return Err(other),
        }
    }
    if wrong { Err(Failure::Printed) } else { Ok(()) }
}

/// Formats one DTD. Returns false if the DTD was only checked and formatting would change it.
fn format(path: &Path, args: &Args) -> Result<bool> {
    let text = input::read(path)?;
    let name = input::name(path);
    let name = &*name;
    let formatted = if args.short { metatf_parser::shorten(name, &text) } else { metatf_parser::format(name, &text) };
    let formatted = match formatted {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            dtd::print(&diagnostics, name, &text);
            return Err(Failure::Printed);
        }
    };
    let same = formatted.as_bytes() == text;
    if args.check {
        if !same {
            output::print(&format!("{name}\n"))?;
        }
        return Ok(same);
    }
    if input::is_standard(path) {
        output::print_data(&formatted)?;
    } else if !same {
        target::replace(path, formatted.as_bytes())?;
    }
    Ok(true)
}
