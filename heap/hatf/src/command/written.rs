//! The output trace of a command that derives a trace.

use std::path::{Path, PathBuf};

use hatf_trace::event::EventSink;
use hatf_trace::heap::{GROUP_RECORDS, HeapOptions, HeapWriter};
use hatf_trace::{Error, Result};
use metatf::container::{FlushEvery, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink, number};
use metatf_tools::recode::Preset;

use super::lab::warn_of_losses;

/// Options for the output trace.
#[derive(clap::Args)]
pub(crate) struct Written {
    /// Trace to write, in heap.dtd format; `-` is standard output. An existing file is not replaced unless --force is
    /// given.
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,

    /// Replace an existing file.
    #[arg(long)]
    force: bool,

    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,

    /// Approximate number of records per group, as for `hatf convert` [default: a million].
    #[arg(long, value_name = "RECORDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    group: Option<u64>,
}

impl Written {
    /// Returns the path of the trace, or `None` for standard output.
    pub(crate) fn file(&self) -> Option<&Path> {
        (self.output != Path::new("-")).then_some(&*self.output)
    }

    /// Checks that neither an input trace nor any other existing file is overwritten.
    pub(crate) fn check<'p>(&self, inputs: impl IntoIterator<Item = &'p Path>) -> Result<()> {
        let Some(output) = self.file() else { return Ok(()) };
        let name = output.display();
        let place = std::fs::canonicalize(output).ok();
        let is_input = |input: &Path| place.is_some() && std::fs::canonicalize(input).ok() == place;
        if inputs.into_iter().any(is_input) {
            return Err(Error::Usage(format!("{name} is also an input: choose another name for the output")));
        }
        if !self.force && std::fs::metadata(output).is_ok_and(|metadata| metadata.is_file()) {
            return Err(Error::Usage(format!("{name} already exists; to replace it, add --force")));
        }
        Ok(())
    }

    /// Writes the trace produced by `give`, with a clock resolution of this many nanoseconds.
    pub(crate) fn write<R>(&self, resolution: u64, give: impl FnOnce(&mut dyn EventSink) -> Result<R>) -> Result<R> {
        let name = self.file().map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
        let problem = || Error::system(name.clone());
        let (output, sink) = OutputFile::create(&self.output).map_err(problem())?;
        let mut write = WriteOptions { threads: super::cores(), ..WriteOptions::default() };
        self.preset.apply(&mut write);
        if output.appears_whole() {
            write.flush = FlushEvery::NEVER;
        }
        let group_records = self.group.unwrap_or(GROUP_RECORDS);
        let mut sink = Box::new(ProgressSink::new(sink, self.file().is_none()));
        let heap = HeapOptions { write, resolution, group_records, plain: false };
        let given = HeapWriter::new(&mut *sink, &heap).and_then(|mut writer| match give(&mut writer) {
            Ok(given) => writer.finish().map(|losses| {
                warn_of_losses("heap", &losses);
                given
            }),
            Err(error) => {
                writer.abandon();
                Err(error)
            }
        });
        // If the output failed, report its error as the cause of all other errors.
        if let Some(error) = output.error() {
            return Err(problem()(error));
        }
        let given = given?;
        output.keep(sink).map_err(problem())?;
        Ok(given)
    }
}
