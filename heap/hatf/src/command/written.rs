//! The output trace of a command that derives a trace.

use std::path::{Path, PathBuf};

use hatf_trace::event::EventSink;
use hatf_trace::heap::{GROUP_RECORDS, HeapOptions, HeapWriter};
use hatf_trace::{Error, Result};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink};
use metatf_tools::recode::Preset;

use super::lab::warn_of_losses;

/// Checks that the output is not also an input.
pub(super) fn check_is_no_input<'p>(output: &Path, inputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
    let place = std::fs::canonicalize(output).ok();
    if inputs.into_iter().any(|input| place.is_some() && std::fs::canonicalize(input).ok() == place) {
        let name = output.display();
        return Err(Error::Usage(format!("{name} is also an input: choose another name for the output")));
    }
    Ok(())
}

/// Options for the output trace.
#[derive(clap::Args)]
pub(crate) struct Written {
    /// Trace to write, in heap.dtd format; `-` is standard output.
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
}

impl Written {
    /// Returns the path of the trace, or `None` for standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        (self.output != Path::new("-")).then_some(&*self.output)
    }

    /// Checks that the output replaces no input.
    pub(crate) fn check<'p>(&self, inputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        self.file().map_or(Ok(()), |output| check_is_no_input(output, inputs))
    }

    /// Writes the trace produced by `give`, with a clock resolution of this many nanoseconds.
    pub(crate) fn write<R>(&self, resolution: u64, give: impl FnOnce(&mut dyn EventSink) -> Result<R>) -> Result<R> {
        write_trace(&self.output, resolution, give)
    }
}

/// Writes the trace produced by `give` to a file, with a clock resolution of this many nanoseconds.
pub(super) fn write_trace<R>(
    path: &Path,
    resolution: u64,
    give: impl FnOnce(&mut dyn EventSink) -> Result<R>,
) -> Result<R> {
    write_file(path, Preset::Default, |write, sink| {
        let heap = HeapOptions { write, resolution, group_records: GROUP_RECORDS, plain: false };
        let mut writer = HeapWriter::new(sink, &heap)?;
        match give(&mut writer) {
            Ok(given) => writer.finish().map(|losses| {
                warn_of_losses("heap", &losses);
                given
            }),
            Err(error) => {
                writer.abandon();
                Err(error)
            }
        }
    })
}

/// Creates a file and calls `write` to fill it, passing it the options for Meta-TF formats. The file appears only if
/// `write` succeeds.
pub(super) fn write_file<R>(
    path: &Path,
    preset: Preset,
    write: impl FnOnce(WriteOptions, &mut dyn Sink) -> Result<R>,
) -> Result<R> {
    let is_printed = path == Path::new("-");
    let name = if is_printed { "standard output".to_owned() } else { path.display().to_string() };
    let problem = || Error::system(name.clone());
    let (output, sink) = OutputFile::create(path).map_err(problem())?;
    let mut options = WriteOptions::default();
    preset.apply(&mut options);
    options.threads = super::cores();
    options.flush = if output.appears_whole() { FlushEvery::NEVER } else { FlushEvery::LIVE };
    let mut sink = Box::new(ProgressSink::new(sink, is_printed));
    let written = write(options, &mut *sink);
    // If the output failed, report its error as the cause of all other errors.
    if let Some(error) = output.error() {
        return Err(problem()(error));
    }
    let written = written?;
    output.keep(sink).map_err(problem())?;
    Ok(written)
}
