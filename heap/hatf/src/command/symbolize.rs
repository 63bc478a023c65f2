//! `hatf symbolize`: writes function names into traces.

use std::io;
use std::path::{Path, PathBuf};

use hatf_trace::event::EventSource as _;
use hatf_trace::heap::HeapOptions;
use hatf_trace::loss::Losses;
use hatf_trace::{Error, Result};
use hatf_view::symbolize::{self, Found, Wanted, find};
use metatf::container::{FlushEvery, Sink, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink};
use metatf_tools::recode::Preset;

use super::lab::{Source, warn_of_losses};
use super::symbols::{Symbols, print_problems};
use super::{about, print_message};

/// Write function names for the frames of stacks into a trace.
///
/// Functions, source files, lines and inlined functions are looked up, by build ID, in the programs and shared objects
/// that the trace names and in their separate debug information. Commands that print stacks do this lookup themselves,
/// without changing the trace. Use this command for traces that you send to others or archive: reading the output
/// requires no binaries. It can also run on a different machine that has the files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf symbolize perl.mtf
  hatf symbolize perl.mtf -o perl.sym.mtf --symbols ~/debug
  hatf symbolize arm.mtf --symbols /mnt/board

Files whose build ID differs from the one in the trace are ignored. JIT-compiled functions are
looked up in /tmp/perf-PID.map, which node --perf-basic-prof, java and other programs write, if you
or root own that file. If DEBUGINFOD_URLS is set, debuginfod-find downloads debug information that
is missing on this machine.

Exit status: 1 if a file could not be read or decoded, or if no frame has a function. The trace is
written in both cases.")]
pub(crate) struct Symbolize {
    #[command(flatten)]
    source: Source,

    /// Trace to write [default: TRACE with the extension .sym.mtf].
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    symbols: Symbols,

    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,
}

/// Look up frames in modules, with limits of time and memory, on behalf of another hatf command.
#[derive(clap::Args)]
pub(crate) struct SymbolizeHelper {}

pub(crate) fn help() -> Result<u8> {
    symbolize::help()?;
    Ok(0)
}

pub(crate) fn run(options: &Symbolize) -> Result<u8> {
    let path = &options.source.trace;
    let output = options.output.clone().map_or_else(|| options.source.sibling("sym.mtf"), Ok)?;
    options.source.reread()?;
    let mut wanted = Wanted::new();
    options.source.read(&mut wanted)?;
    if wanted.count() == 0 {
        let text = format!("{}: the trace has no stacks; record it with hatf record --stacks", path.display());
        return Err(Error::Trace(text.into()));
    }
    let found = options.symbols.files()?.map_or_else(Found::default, |files| find(&wanted, &files));
    print_problems(&found.problems);
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.preset.apply(&mut write);
    let resolution = options.source.open()?.resolution();
    let heap = HeapOptions { write, resolution, ..HeapOptions::default() };
    warn_of_losses("heap", &self::write(&options.source, &output, OutputFile::create(&output), &found, &heap)?);
    print_message(&format!(
        "{} of {} frames have a function name in {}",
        found.named,
        wanted.count(),
        output.display()
    ));
    let is_failure =
        found.problems.iter().any(|problem| problem.is_failure) || (found.named == 0 && !wanted.has_symbols());
    Ok(u8::from(is_failure))
}

/// Writes function names into a trace. The old file is kept until the new file is complete.
pub(crate) fn write_symbols(
    trace: &Path,
    create: impl FnOnce() -> io::Result<(OutputFile, Box<dyn Sink + Send>)>,
    heap: &HeapOptions,
) -> Result<()> {
    let (source, mut wanted) = (Source::new(trace.to_owned(), None, None), Wanted::new());
    source.read(&mut wanted)?;
    if wanted.count() == 0 {
        return Ok(());
    }
    let found = Symbols::default().files()?.map_or_else(Found::default, |files| find(&wanted, &files));
    print_problems(&found.problems);
    write(&source, trace, create(), &found, heap).map(drop)
}

/// Writes the trace with the names found. Returns the values that the new trace cannot represent.
fn write(
    source: &Source,
    output: &Path,
    created: io::Result<(OutputFile, Box<dyn Sink + Send>)>,
    found: &Found,
    heap: &HeapOptions,
) -> Result<Losses> {
    let problem = || Error::system(output.display().to_string());
    let (file, sink) = created.map_err(problem())?;
    let mut sink = Box::new(ProgressSink::new(sink, output == Path::new("-")));
    let mut trace = source.open()?;
    let written = symbolize::write(&mut trace, found, heap, &mut *sink);
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    let losses = written.map_err(|error| about(&source.trace, error))?;
    file.keep(sink).map_err(problem())?;
    Ok(losses)
}
