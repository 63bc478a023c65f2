//! `hatf convert`

use std::path::Path;

use hatf::convert::{Form, FreedEarly, Input, Options as Convert};
use hatf::{Error, Result};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink};
use metatf_page::units::count;

use super::lab::readable_twice;
use super::{CSV, Convert as Options, about, cores, print_message};

pub(crate) fn run(options: &Options) -> Result<u8> {
    let input = Input::open(&options.input)?;
    let to = match (options.to, &options.output) {
        (Some(form), _) => form,
        (None, output) => of_name(output.as_deref())?,
    };
    if options.free_at_last_access {
        readable_twice(&options.input, "with --free-at-last-access a trace is read twice")?;
        if to != Form::Heap {
            return Err(Error::Usage(
                "--free-at-last-access writes heap traces: --to heap, or a name that ends in .mtf".to_owned(),
            ));
        }
    }
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
    let convert = Convert {
        from: options.from,
        write,
        resolution: options.clock,
        group_records: options.group,
        inner_records: options.inner_records,
        warn: Some(print_message),
    };
    let mut sink = Box::new(ProgressSink::new(sink, path == Path::new("-")));
    let converted = if options.free_at_last_access {
        let open = || Input::open(&options.input);
        let freed = hatf::convert::with_early_frees(&open, &convert, &mut *sink);
        freed.map(|(freed, losses)| {
            say(&freed);
            (sink as Box<dyn Sink>, losses)
        })
    } else {
        hatf::convert::convert(input, to, &convert, sink)
    };
    // Where the output failed, that is the cause, whatever became of it on the way.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let (sink, losses) = converted.map_err(|error| about(&options.input, error))?;
    output.keep(sink).map_err(problem())?;
    for (loss, count) in losses.iter() {
        print_message(&format!("{} cannot hold {}: {count}", to.name(), loss.text()));
    }
    Ok(u8::from(options.strict && !losses.is_empty()))
}

/// Says how many blocks end early.
fn say(freed: &FreedEarly) {
    let FreedEarly { blocks, early, freed_later } = *freed;
    print_message(&format!(
        "{} of {} blocks end at their last access, of which the program freed {} later; the others keep their ends",
        count(early),
        count(blocks),
        count(freed_later)
    ));
}

/// Returns the form of an output by its name.
fn of_name(output: Option<&Path>) -> Result<Form> {
    let name = output.map(|path| path.display().to_string()).unwrap_or_default();
    let ends = [
        (".mtf", Form::Heap),
        (".hatf", Form::Hatf1),
        (".raw32", Form::Raw32),
        (".raw64", Form::Raw64),
        (".rep", Form::Malloclab),
        (".jsonl", Form::Jsonl),
    ];
    if name.ends_with(".csv") {
        return Err(Error::Usage(CSV.to_owned()));
    }
    let found = ends.iter().find(|(end, _)| name.ends_with(end));
    let unknown = || Error::Usage("the name of the output does not show its form: give it with --to".to_owned());
    found.map(|(_, form)| *form).ok_or_else(unknown)
}
