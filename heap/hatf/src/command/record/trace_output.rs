//! Output of a recording, including the format of the trace, its file, and its errors. `hatf recover` also writes
//! traces with this module.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use hatf_host::record::{DumpInto, path_to_json};
use hatf_trace::hatf10::Hatf10Writer;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Error, EventSink, Result};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf_cli::{OutputFile, OutputFolder};
use metatf_tools::recode::Preset;
use serde_json::{Value, json};

use super::options::{Record as Options, TraceFormat};
use crate::command::print_message;

/// Returns the directory next to a trace for the traces of processes that the program created.
pub(crate) fn folder_of(trace: &Path) -> PathBuf {
    if trace.extension().is_some_and(|extension| extension == "mtf") {
        return trace.with_extension("processes");
    }
    let mut name = trace.as_os_str().to_owned();
    name.push(".processes");
    name.into()
}

/// A written trace that does not have its final name yet.
pub(crate) struct WrittenTrace {
    output: OutputFile,
    sink: Box<dyn Sink + Send>,
    name: String,
}

impl WrittenTrace {
    /// Writes the events from `give` to a trace in the opened output. Error messages refer to the output as `name`. Returns
    /// the result of `give` and the written trace.
    pub(crate) fn write<T>(
        name: &Path,
        opened: io::Result<(OutputFile, Box<dyn Sink + Send>)>,
        form: TraceForm,
        write: &WriteOptions,
        give: impl FnOnce(&mut dyn EventSink) -> Result<T>,
    ) -> Result<(T, Self)> {
        let name = name.display().to_string();
        let problem = || Error::system(name.clone());
        let (output, mut sink) = opened.map_err(problem())?;
        let mut trace = TraceWriter::new(&mut *sink, form, write).map_err(|error| about_output(&name, error))?;
        let given = give(trace.sink());
        let finished = trace.finish();
        if let Some(error) = output.error() {
            return Err(full(problem()(error)));
        }
        let given = given?;
        finished.map_err(|error| about_output(&name, error))?;
        Ok((given, Self { output, sink, name }))
    }

    /// Renames the trace to its final name and waits until the trace is on disk.
    pub(crate) fn keep(self) -> Result<()> {
        self.output.keep(self.sink).map_err(Error::system(self.name))
    }

    /// Renames the trace to a different name in the same directory and waits until the trace is on disk.
    pub(crate) fn keep_as(mut self, path: &Path) -> Result<()> {
        self.output.rename(path.file_name().unwrap_or_default());
        self.name = path.display().to_string();
        self.keep()
    }
}

/// Writes the events currently kept by `hatf record --keep` to `TRACE.dump1.mtf` (or the next unused number), next to
/// the trace that is written at the end.
pub(crate) fn dump(options: &Options, folder: &OutputFolder, trace: &Path, write: &WriteOptions, give: DumpInto<'_>) {
    let stem = trace.file_stem().unwrap_or_default();
    let named = |number: u32| {
        let mut name = stem.to_owned();
        name.push(format!(".dump{number}.mtf"));
        name
    };
    let is_free = |name: &OsString| !folder.path().join(name).exists();
    let Some(name) = (1..=u32::MAX).map(named).find(is_free) else { return };
    let path = folder.path().join(&name);
    let written = WrittenTrace::write(&path, folder.file(&name), TraceForm::of(options), write, give);
    match written.and_then(|((), trace)| trace.keep()) {
        Ok(()) if options.quiet => {}
        Ok(()) => {
            let bytes = path.metadata().map_or(0, |metadata| metadata.len());
            print_message(&format!("requested trace: {bytes} bytes in {}", path.display()));
        }
        Err(error) => print_message(&format!("could not write the requested trace: {error}")),
    }
}

/// Settings of the trace's format, in addition to the container settings in [`WriteOptions`].
#[derive(Clone, Copy)]
pub(crate) struct TraceForm {
    /// DTD of the trace.
    pub(crate) format: TraceFormat,
    /// Clock resolution in nanoseconds.
    pub(crate) resolution: u64,
    /// Approximate number of records per group.
    pub(crate) group_records: u64,
    /// See [`HeapOptions::plain`].
    pub(crate) plain: bool,
}

impl TraceForm {
    /// Returns the settings requested by the options of `hatf record`.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            format: options.format,
            resolution: options.clock,
            group_records: group(options),
            plain: is_plain(options.preset.trace()),
        }
    }
}

/// Reads the settings from the data that [`about`] stores.
pub(crate) fn of_about(about: &Value) -> (TraceForm, WriteOptions) {
    let preset: Option<Preset> = about["profile"].as_str().and_then(|preset| preset.parse().ok());
    let preset = preset.unwrap_or_default();
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    preset.apply(&mut write);
    let format = about["format"].as_str().and_then(|format| TraceFormat::from_str(format, false).ok());
    let number = |key: &str, default| about[key].as_u64().unwrap_or(default);
    let form = TraceForm {
        format: format.unwrap_or(TraceFormat::Heap),
        resolution: number("clock", 1000),
        group_records: number("group", 1_000_000),
        plain: is_plain(preset),
    };
    (form, write)
}

/// Returns the data to store next to the spool, which consists of the settings and the path of the trace.
pub(crate) fn about(options: &Options, output: Option<&Path>) -> Value {
    let output = output.and_then(|output| std::path::absolute(output).ok()).filter(|_| output != Some(Path::new("-")));
    json!({
        "output": output.map(|output| path_to_json(&output)),
        "rotated": options.rotate.is_some(),
        "format": options.format.to_possible_value().map(|value| value.get_name().to_owned()),
        "clock": options.clock,
        "profile": options.preset.trace().to_string(),
        "group": group(options),
    })
}

/// Returns the approximate number of records per group. The number is smaller than requested if `ulimit -d` or a
/// container limit does not leave enough memory. Half of the remaining memory is reserved for the program.
pub(crate) fn group(options: &Options) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local variable that receives the result.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_DATA, &raw mut limit) } == 0;
    let own = if known { limit.rlim_cur } else { u64::MAX };
    let fitting = (own.min(hatf_host::record::memory_left() / 2) / GROUP_RECORD_BYTES).max(GROUP_LEAST);
    options.group.min(fitting)
}

/// Memory per record of a group in bytes, with some reserve.
const GROUP_RECORD_BYTES: u64 = 512;
/// Minimum number of records per group, regardless of the available memory.
const GROUP_LEAST: u64 = 1000;

/// Returns whether a preset writes traces uncompressed.
pub(crate) fn is_plain(preset: Preset) -> bool {
    preset == Preset::Fast
}

/// A writer for either DTD.
pub(crate) enum TraceWriter<'w> {
    Heap(HeapWriter<'w>),
    Hatf10(Hatf10Writer<'w>),
}

impl<'w> TraceWriter<'w> {
    /// Begins a trace.
    pub(crate) fn new(
        sink: &'w mut dyn Sink,
        TraceForm { format, resolution, group_records, plain }: TraceForm,
        write: &WriteOptions,
    ) -> Result<Self> {
        match format {
            TraceFormat::Heap => {
                let heap = HeapOptions { write: write.clone(), resolution, group_records, plain };
                HeapWriter::new(sink, &heap).map(Self::Heap)
            }
            TraceFormat::Hatf10 => Hatf10Writer::new(sink, write).map(Self::Hatf10),
        }
    }

    pub(crate) fn sink(&mut self) -> &mut dyn EventSink {
        match self {
            Self::Heap(writer) => writer,
            Self::Hatf10(writer) => writer,
        }
    }

    pub(crate) fn finish(self) -> Result<()> {
        match self {
            Self::Heap(writer) => writer.finish(),
            Self::Hatf10(writer) => writer.finish(),
        }
        .map(drop)
    }
}

/// Adds the trace's name to an error of the trace's writer.
pub(crate) fn about_output(name: &str, error: Error) -> Error {
    match error {
        Error::System(_, error) => Error::System(name.to_owned(), error),
        other => Error::Trace(format!("{name}: {other}").into()),
    }
}

/// Adds advice to an error about a full output.
pub(crate) fn full(error: Error) -> Error {
    let elsewhere = ", or choose a file elsewhere with -o";
    let (advice, elsewhere) = match &error {
        Error::System(_, cause) if cause.raw_os_error() == Some(libc::EMFILE) => ("raise the limit (ulimit -n)", ""),
        Error::System(_, cause) if cause.kind() == io::ErrorKind::FileTooLarge => ("raise the limit (ulimit -f)", ""),
        Error::System(_, cause)
            if matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) =>
        {
            ("free some space", elsewhere)
        }
        _ => return error,
    };
    Error::Trace(format!("{error}: {advice}{elsewhere}").into())
}

/// Returns an unused trace name, which is `STEM.mtf` or, if that file exists, a name with a number. Existing traces are
/// therefore overwritten only on request.
pub(crate) fn free_name(stem: &OsStr) -> PathBuf {
    let name = |middle: String| {
        let mut name = stem.to_owned();
        name.push(middle);
        name.push(".mtf");
        PathBuf::from(name)
    };
    let numbered = (1..).map(|number: u32| name(format!(".{number}")));
    let mut names = std::iter::once(name(String::new())).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_else(|| name(String::new()))
}
