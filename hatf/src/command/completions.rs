//! `hatf completions`

use std::io::{self, Write as _};

use clap::CommandFactory as _;
use hatf::Result;

use super::{Command, Completions as Options};

pub(crate) fn run(options: &Options) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Command::command(), "hatf", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(0)
}
