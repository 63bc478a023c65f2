//! `hatf convert`: converts heap traces and heap profiles between formats.

mod profile;
mod trace;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatf_trace::forms::{FORMS, Form, HEAP};
use hatf_trace::{Error, Result};
use hatf_view::profile::{PROFILES, ProfileForm};
use metatf_cli::number;
use metatf_tools::recode::Preset;
use profile::ProfileArgs;

use super::{clock, form};

/// Convert a trace or a heap profile to another format.
///
/// For each kind of value that the output format cannot represent, a message on standard error reports the loss. Input
/// compressed with zstd or gzip is decompressed.
///
/// A heap profile contains the number, sizes and lifetimes of the blocks that each call stack allocated. A profile
/// format can be written from a trace, with the default settings of `hatf profile`, or from another profile. The
/// command reads profiles in these formats: heapprof, raw LLVM memory profiles (.memprofraw, versions 3 to 5), pprof,
/// and jemalloc's text format (heap_v2). If a file contains several profiles, they are merged. Profiles from pprof and
/// jemalloc contain only totals. Memory in use therefore counts as live both at the peak and at the end, and each block
/// is assigned the average block size of its stack.
///
/// LLVM identifies a frame by the function's linkage name, the line relative to the function's first line, and the
/// column. For memprof-yaml, these are looked up in the program file, which must contain debug information (-g). Frames
/// without debug information are omitted. LLVM treats missing values as 0, so contexts whose accesses are not fully
/// known are written without lifetimes, and LLVM treats them as neither hot nor cold. Build the program with `hatf cc`
/// to record its accesses. llvm-profdata merge reads this format from LLVM 21 on.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf convert perl.mtf perl.jsonl
  hatf convert --to hatf1 perl.mtf perl.hatf
  hatf convert gawk.raw32.zst gawk.mtf
  hatf convert --from malloclab --to heap - - < short1.rep > short1.mtf
  hatf convert perl.mtf perl.pb.gz                      for pprof
  hatf convert --to folded app.prof.mtf - | less
  hatf convert memprof.profraw.1234 --binary ./app app.prof.mtf
  hatf convert app.prof.mtf app.memprof.yaml
  llvm-profdata merge app.memprof.yaml -o app.memprofdata
  clang++ -O2 -g -fmemory-profile-use=app.memprofdata app.cpp")]
pub(crate) struct Convert {
    /// Format of the input trace [default: detected from its first bytes or its name].
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    from: Option<&'static Form>,

    /// Format of the output [default: derived from its name; .mtf means heap]. For CSV, see `metatfc dump --format
    /// csv`.
    #[arg(long, value_name = "FORMAT", value_parser = written())]
    to: Option<Target>,

    /// Trade size for speed in Meta-TF output: fast, default or archive.
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    preset: Preset,

    /// Clock resolution of a heap trace, from 1ns to 1ms, or off [default: the input's resolution].
    #[arg(long, value_name = "TICK", value_parser = clock)]
    clock: Option<u64>,

    /// Approximate number of records per group in a heap trace [default: a million]. Groups can be read independently
    /// and in parallel; small groups make the trace larger.
    #[arg(long, value_name = "RECORDS", allow_negative_numbers = true, value_parser = number(1..=u64::MAX))]
    group: Option<u64>,

    /// In hatf1 output, write records of the inner malloc and free before each realloc, as in Table 1 of the paper.
    #[arg(long)]
    inner_records: bool,

    /// End the lifetime of each block at its last access instead of its free. Requires a heap trace of a program built
    /// with `hatf cc`. The trace is read twice.
    #[arg(long)]
    free_at_last_access: bool,

    /// Exit with status 1 if anything was lost, including contexts omitted from a profile.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    profiles: ProfileArgs,

    /// Input trace or profile; `-` is standard input. Specify --from to make a profile of a trace from a pipe.
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// Output file [default: standard output, as with `-`].
    #[arg(value_name = "OUT")]
    output: Option<PathBuf>,
}

/// An output format.
#[derive(Clone, Copy)]
enum Target {
    Trace(&'static Form),
    Profile(&'static ProfileForm),
}

/// Error message for requests to write CSV.
const CSV: &str = "CSV is written by another command: \
    metatfc dump --format csv --thread-column --record malloc TRACE > malloc.csv";

/// Returns all output formats.
fn targets() -> impl Iterator<Item = Target> {
    // Profiles come first, because the extension `.prof.mtf` of a profile also ends with the extension `.mtf` of a
    // trace.
    let profiles = PROFILES.into_iter().filter(|form| form.create.is_some()).map(Target::Profile);
    profiles.chain(FORMS.into_iter().filter(|form| form.create.is_some()).map(Target::Trace))
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Trace(form) => form.name,
            Self::Profile(form) => form.name,
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Trace(form) => form.about,
            Self::Profile(form) => form.about,
        }
    }

    /// Returns whether a file name ends with an extension of this format.
    fn is_of(&self, name: &str) -> bool {
        match self {
            Self::Trace(form) => form.suffixes.iter().any(|suffix| name.ends_with(suffix)),
            Self::Profile(form) => name.strip_suffix(form.ending).is_some_and(|stem| stem.ends_with('.')),
        }
    }
}

/// Returns a parser for the name of an output format. Another command writes CSV, so the error for `csv` names that
/// command.
fn written() -> impl TypedValueParser<Value = Target> {
    let names = targets().map(|target| PossibleValue::new(target.name()).help(target.about()));
    let names = names.chain([PossibleValue::new("csv").hide(true)]);
    PossibleValuesParser::new(names).try_map(|name| targets().find(|target| target.name() == name).ok_or(CSV))
}

/// Derives the format of an output from its name.
fn of_name(output: Option<&Path>) -> Result<Target> {
    let name = output.map(|path| path.display().to_string()).unwrap_or_default();
    if name.ends_with(".csv") {
        return Err(Error::Usage(CSV.to_owned()));
    }
    let found = targets().find(|target| target.is_of(&name));
    found.ok_or_else(|| Error::Usage("cannot derive the format from the output name: specify it with --to".to_owned()))
}

pub(crate) fn run(options: &Convert) -> Result<u8> {
    let to = options.to.map_or_else(|| of_name(options.output.as_deref()), Ok)?;
    if options.free_at_last_access && to.name() != HEAP.name {
        let wrong = "--free-at-last-access requires heap output: use --to heap or an output name that ends in .mtf";
        return Err(Error::Usage(wrong.to_owned()));
    }
    match to {
        Target::Trace(form) => trace::run(options, form),
        Target::Profile(form) => profile::run(options, form),
    }
}
