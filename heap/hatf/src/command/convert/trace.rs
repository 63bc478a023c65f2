//! Converts heap traces between formats.

use std::path::Path;

use hatf_trace::forms::{CreateOptions, Form, FreedEarly, Input, OpenOptions, RereadInput, convert, with_early_frees};
use hatf_trace::{Error, Result};
use metatf::container::{FlushEvery, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink};
use metatf_page::units::count;

use super::Convert;
use crate::command::lab::warn_of_losses;
use crate::command::{about, cores, print_message};

pub(super) fn run(options: &Convert, to: &'static Form) -> Result<u8> {
    let again = options.free_at_last_access.then(|| RereadInput::new(&options.input, options.from)).transpose()?;
    let input = again.as_ref().map_or_else(|| Input::open(&options.input), RereadInput::open)?;
    let mut write = WriteOptions::default();
    options.preset.apply(&mut write);
    write.threads = cores();
    let path = options.output.as_deref().unwrap_or(Path::new("-"));
    let name = if path == Path::new("-") { "standard output".to_owned() } else { path.display().to_string() };
    let problem = || Error::system(name.clone());
    let (output, sink) = OutputFile::create(path).map_err(problem())?;
    if output.appears_whole() {
        write.flush = FlushEvery::NEVER;
    }
    let open = OpenOptions { form: options.from, note: print_message };
    let create = CreateOptions {
        write,
        resolution: options.clock,
        group_records: options.group,
        inner_records: options.inner_records,
    };
    let mut sink = Box::new(ProgressSink::new(sink, path == Path::new("-")));
    let converted = if let Some(again) = &again {
        let freed = with_early_frees(&|| again.open(), &open, &create, &mut *sink);
        freed.map(|(freed, losses)| {
            say(&freed);
            losses
        })
    } else {
        convert(input, to, &open, &create, &mut *sink)
    };
    // If the output failed, report its error as the cause of all other errors.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let losses = converted.map_err(|error| about(&options.input, error))?;
    output.keep(sink).map_err(problem())?;
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
