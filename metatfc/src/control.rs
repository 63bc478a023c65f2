//! `control`: prints or changes the kinds of events that a running program emits.

use crate::failure::Result;
use crate::{output, postmortem};
use metatf_telemetry::control::print;

const MORE: &str = "\
Kinds are named by the program's DTD (`tag.kind`). KINDS is a list of names
separated by spaces, a number (one bit per kind), `all` or `none`. The program
applies it within 100 ms. Without KINDS, all kinds and the enabled ones are
printed.

Examples:
  metatfc control 4711
  metatfc control 4711 'Arena Pool'
  metatfc control 4711 '+Object -Pool'";

/// Print or change the kinds of events that a running program emits
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// A process, its buffers file, or its trace
    #[arg(value_name = "WHERE")]
    place: String,
    /// Kinds to enable; all others are disabled. With + or - before every name, enable or disable only these kinds
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
