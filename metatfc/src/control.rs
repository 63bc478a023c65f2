//! `control`: prints or changes the kinds of events that a running program emits.

use crate::failure::Result;
use crate::{output, postmortem};
use metatf_telemetry::control::print;

const MORE: &str = "\
The program's DTD defines the names of the kinds (`tag.kind`). KINDS is a
space-separated list of names, a number with one bit per kind, `all` or `none`.
The program applies the change within 100 ms. Without KINDS, the command prints
all kinds and the enabled kinds.

Examples:
  metatfc control 4711
  metatfc control 4711 'Arena Pool'
  metatfc control 4711 '+Object -Pool'";

/// Print or change the kinds of events that a running program emits
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Process ID, buffers file or trace of the program
    #[arg(value_name = "WHERE")]
    place: String,
    /// Kinds to enable; all other kinds are disabled. If every name starts with + or -, only the named kinds change
    #[arg(allow_hyphen_values = true)]
    kinds: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let buffers = postmortem::open(&args.place)?;
    let known = buffers.kinds();
    match &args.kinds {
        Some(kinds) => buffers.set_kinds(kinds).map(drop).map_err(|error| postmortem::failure(&error)),
        None => output::print(&format!("kinds: {}\non: {}\n", known.join(" "), print(buffers.control(), &known))),
    }
}
