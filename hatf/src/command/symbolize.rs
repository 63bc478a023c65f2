//! `hatf symbolize`

use std::path::{Path, PathBuf};

use hatf::event::EventSource as _;
use hatf::heap::HeapOptions;
use hatf::symbolize::{self, Files, Helper, Wanted, find};
use hatf::{Error, Result};
use metatf::container::{FlushEvery, WriteOptions};
use metatf_cli::{OutputFile, ProgressSink, shown};
use metatf_tools::recode::Preset;

use super::lab::{Source, warn_of_losses};
use super::{about, print_message};

/// Write into a trace which functions the frames of its stacks are in.
///
/// Functions, source files, lines and inlined functions are looked up in the programs and shared objects that the trace names, and in
/// their separate debug information, by build id. What follows needs no binaries: hatf sites and hatf flame read the trace alone.
/// It can be done on another machine that has the files.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf symbolize perl.mtf
  hatf symbolize perl.mtf -o perl.sym.mtf --debug-dir ~/debug
  hatf symbolize arm.mtf --sysroot /mnt/board

Files whose build id differs from the one in the trace are not used. Functions that a compiler made at
run time are looked up in /tmp/perf-PID.map, which node --perf-basic-prof, java and others write, if it
is a file of yours or of root.")]
pub(crate) struct Symbolize {
    #[command(flatten)]
    source: Source,

    /// The trace to write [default: TRACE with .sym.mtf for its ending].
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    /// A folder of separate debug information, searched before /usr/lib/debug. May be given several times.
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Vec<PathBuf>,

    /// Look for programs and shared objects below this folder, not below /.
    #[arg(long, value_name = "FOLDER")]
    sysroot: Option<PathBuf>,

    /// The functions that were made at run time [default: /tmp/perf-PID.map, if it is there].
    #[arg(long, value_name = "FILE")]
    perf_map: Option<PathBuf>,

    /// Trade size for speed: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,
}

/// Look frames up in one module, with limits of time and memory: the question is at standard input.
#[derive(clap::Args)]
pub(crate) struct SymbolizeHelper {}

pub(crate) fn help() -> Result<u8> {
    symbolize::help(&mut std::io::stdin().lock(), &mut metatf_cli::stdout(metatf_cli::Style::Data))?;
    Ok(0)
}

/// Returns where files are looked for; a process of its own reads them.
pub(super) fn files(debug_dirs: &[PathBuf], sysroot: Option<&PathBuf>) -> Result<Files> {
    let program = std::env::current_exe().map_err(Error::system("this program's path"))?;
    let helper = Some(Helper::new(program, vec!["__symbolize-helper".into()]));
    let mut files = Files { sysroot: sysroot.cloned(), helper, ..Files::default() };
    files.debug_dirs.splice(0..0, debug_dirs.iter().cloned());
    Ok(files)
}

pub(crate) fn run(options: &Symbolize) -> Result<u8> {
    let path = &options.source.trace;
    let output = options.output.clone().map_or_else(|| options.source.sibling("sym.mtf"), Ok)?;
    options.source.reread()?;
    let mut wanted = Wanted::new();
    options.source.read(&mut wanted)?;
    if wanted.count() == 0 {
        let text = format!("{}: the trace has no stacks; hatf record --stacks records them", path.display());
        return Err(Error::Trace(text.into()));
    }
    let perf_map = options.perf_map.clone();
    let files = Files { perf_map, ..files(&options.debug_dir, options.sysroot.as_ref())? };
    let found = find(&wanted, &files);
    found.problems.iter().for_each(|problem| print_message(&shown(&problem.to_string())));

    let name = output.display().to_string();
    let problem = || Error::system(name.clone());
    let (file, sink) = OutputFile::create(&output).map_err(problem())?;
    let mut sink = Box::new(ProgressSink::new(sink, output == Path::new("-")));
    let mut trace = options.source.open()?;
    let mut write = WriteOptions::default().flush_every(FlushEvery::NEVER);
    options.preset.apply(&mut write);
    let heap = HeapOptions { write, resolution: trace.resolution(), ..HeapOptions::default() };
    let written = symbolize::write(&mut trace, &found, &heap, &mut *sink);
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    let losses = written.map_err(|error| about(path, error))?;
    file.keep(sink).map_err(problem())?;
    warn_of_losses("heap", &losses);
    print_message(&format!("{} of {} frames have a function in {name}", found.named, wanted.count()));
    Ok(0)
}
