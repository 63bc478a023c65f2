//! Converts heap traces between formats, and merges traces.

use std::path::{Path, PathBuf};

use hatf_trace::Result;
use hatf_trace::forms::{CreateOptions, Form, FreedEarly, Input, RereadInput, convert, with_early_frees};
use metatf_page::units::count;
use metatf_tools::recode::Preset;

use super::{Convert, merge};
use crate::command::lab::warn_of_losses;
use crate::command::written::write_file;
use crate::command::{about, open_options, print_message};

pub(super) fn run(options: &Convert, to: &'static Form, inputs: &[PathBuf], output: &Path) -> Result<u8> {
    let open = open_options(options.from, print_message);
    let create = |write| CreateOptions {
        write,
        resolution: options.clock,
        group_records: options.group,
        inner_records: options.inner_records,
    };
    let preset = options.preset.unwrap_or(Preset::Default);
    let losses = match inputs {
        [input] if options.free_at_last_access => {
            let again = RereadInput::new(input, options.from)?;
            let (freed, losses) = write_file(output, preset, |write, sink| {
                with_early_frees(&|| again.open(), &open, &create(write), sink).map_err(|error| about(input, error))
            })?;
            say(&freed);
            losses
        }
        [input] => {
            let opened = Input::open(input)?;
            write_file(output, preset, |write, sink| {
                convert(opened, to, &open, &create(write), sink).map_err(|error| about(input, error))
            })?
        }
        inputs => {
            let traces = merge::open(inputs, options.as_is, &open)?;
            write_file(output, preset, |write, sink| merge::write(traces, to, &create(write), sink))?
        }
    };
    warn_of_losses(to.name, &losses);
    Ok(u8::from(options.strict && !losses.is_empty()))
}

/// Prints how many blocks now end at their last access.
fn say(freed: &FreedEarly) {
    let FreedEarly { blocks, early, freed_later } = *freed;
    print_message(&format!(
        "{} of {} blocks now end at their last access; the program freed {} of them later. The ends of the other blocks are unchanged",
        count(early),
        count(blocks),
        count(freed_later)
    ));
}
