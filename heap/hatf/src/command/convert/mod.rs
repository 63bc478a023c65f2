//! `hatf convert`: converts heap traces and heap profiles between formats, writes tables, and merges traces.

mod merge;
mod profile;
#[cfg(feature = "export")]
mod tables;
mod trace;

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hatf_trace::forms::{FORMS, Form, HEAP, Segments};
use hatf_trace::{Error, Result};
use hatf_view::profile::{PROFILES, ProfileForm};
use metatf_cli::number;
use metatf_tools::recode::Preset;
use profile::ProfileArgs;

use super::written::check_is_no_input;
use super::{clock, form};

/// Convert traces to other formats or to heap profiles, export tables, or merge the traces of several processes.
///
/// The name of the output determines its format; --to overrides it. For each kind of value that the format cannot
/// represent, a message on standard error reports the loss. Input compressed with zstd or gzip is decompressed. A
/// directory among the inputs is read as the traces (*.mtf) in it, such as the process traces of a recording.
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
///
/// The tables are objects (one row per object), sites (one row per stack, with its allocations), stacks (the frames of
/// each stack), lifetimes (a histogram of object lifetimes per stack, in powers of two), timeline (live bytes over
/// time, and the peak), marks, processes and traces. The output is a new or empty directory: each table is written to
/// DIR/TABLE.FORMAT and contains the rows of all traces, with the path of the trace in the column `trace`. With
/// --partition, each trace gets its own file, DIR/TABLE/build=BUILD-ID/day=YYYY-MM-DD/NAME.FORMAT; query engines read
/// these files as one table with the columns `build` and `day`. An SQLite database is a single file with all tables.
///
/// Several traces are merged into one, ordered by time. The merged trace shows how much memory all processes used at
/// any point in time, and which process used it: names of threads, marks and phases are prefixed with the number of the
/// trace and the name of the program. When a process ends, its blocks and pages are removed from the totals, so the
/// totals show the memory that the system had to provide. The last process to end keeps its blocks and pages. Traces
/// from one recording share a clock; other traces are aligned by their start dates, to the second.
#[derive(clap::Args)]
#[command(
    override_usage = "hatf convert [OPTIONS] <INPUT>... [OUTPUT]",
    after_help = "\
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
  clang++ -O2 -g -fmemory-profile-use=app.memprofdata app.cpp
  hatf convert perl.mtf perl.sqlite                     tables for SQL
  hatf convert perl.mtf tables --to csv --tables sites,stacks --resolve
  hatf convert *.mtf fleet --to parquet --tables sites,stacks --partition
  duckdb -c \"select sum(leaked_bytes) from 'fleet/sites/*/*/*.parquet'\"
  hatf convert gc.mtf gc.processes all.mtf              one trace of all processes
  hatf cut all.mtf --process 2 -o second.mtf
  hatf convert one.mtf two.mtf both.mtf --as-is

A heap trace describes one process, so in a merged trace, addresses of process N (starting at 1) get
N - 1 in bits 48 and up, and threads are renumbered. The sizes, times, order, sites, threads and
pages of each process are exact. If exec replaces a program, frees are written for its blocks.
Changes of the program break are written as page calls. The kernel's memory statistics are summed,
so pages shared by several processes are counted once per process."
)]
pub(crate) struct Convert {
    /// Input traces or an input profile, then the output [default: standard output]. `-` is standard input or output.
    /// Specify --from to make a profile of a trace from a pipe. If there are several inputs, the output must be new.
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Format of the input traces [default: detected from their first bytes or their names].
    #[arg(long, value_name = "FORMAT", value_parser = form())]
    from: Option<&'static Form>,

    /// Format of the output [default: derived from its name; .mtf means heap].
    #[arg(long, value_name = "FORMAT", value_parser = written())]
    to: Option<Target>,

    /// Trade size for speed in Meta-TF output: fast, default, archive or columns [default: default].
    #[arg(long, alias = "profile", value_name = "PRESET")]
    preset: Option<Preset>,

    /// Clock resolution of a heap trace, from 1ns to 1ms, or off [default: the finest resolution of the inputs].
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

    /// Use the times of several traces unchanged, without aligning their clocks.
    #[arg(long)]
    as_is: bool,

    /// Exit with status 1 if anything was lost, including contexts omitted from a profile.
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    profiles: ProfileArgs,

    #[cfg(feature = "export")]
    #[command(flatten)]
    tables: tables::TableArgs,
}

/// An output format.
#[derive(Clone, Copy)]
enum Target {
    Trace(&'static Form),
    Profile(&'static ProfileForm),
    /// A table format, by name.
    Tables(&'static str),
}

/// The table format that stores all tables in one file, and the extension of the file.
const DATABASE: &str = "sqlite";

/// The table formats, whether or not this build can write them, and their descriptions.
const TABLES: [(&str, &str); 4] = [
    ("parquet", "Tables as Parquet files in a directory"),
    ("arrow", "Tables as Arrow files in a directory"),
    ("csv", "Tables as CSV files in a directory"),
    (DATABASE, "Tables in an SQLite database"),
];

/// Error message for a table format that this build cannot write.
const NOT_BUILT: &str = "this build of hatf cannot write this format: use `cargo install hatf --features tables`";

/// Returns all output formats of this build.
fn targets() -> impl Iterator<Item = Target> {
    // Profiles come first, because the extension `.prof.mtf` of a profile also ends with the extension `.mtf` of a
    // trace.
    let profiles = PROFILES.into_iter().filter(|form| form.create.is_some()).map(Target::Profile);
    let traces = FORMS.into_iter().filter(|form| form.create.is_some()).map(Target::Trace);
    #[cfg(feature = "export")]
    let is_built = tables::is_built;
    #[cfg(not(feature = "export"))]
    let is_built = |_: &str| false;
    let tables = TABLES.into_iter().map(|(form, _)| form).filter(move |form| is_built(form)).map(Target::Tables);
    profiles.chain(traces).chain(tables)
}

impl Target {
    fn name(&self) -> &'static str {
        match self {
            Self::Trace(form) => form.name,
            Self::Profile(form) => form.name,
            Self::Tables(form) => form,
        }
    }

    fn about(&self) -> &'static str {
        match self {
            Self::Trace(form) => form.about,
            Self::Profile(form) => form.about,
            Self::Tables(name) => TABLES.iter().find(|(form, _)| form == name).map_or("", |(_, about)| about),
        }
    }

    /// Returns whether a file name ends with an extension of this format. A directory of tables has no extension.
    fn is_of(&self, name: &str) -> bool {
        let ends = |ending| name.strip_suffix(ending).is_some_and(|stem: &str| stem.ends_with('.'));
        match self {
            Self::Trace(form) => form.suffixes.iter().any(|suffix| name.ends_with(suffix)),
            Self::Profile(form) => ends(form.ending),
            Self::Tables(form) => *form == DATABASE && ends(form),
        }
    }
}

/// Returns a parser for the name of an output format. Formats that this build lacks are not listed.
fn written() -> impl TypedValueParser<Value = Target> {
    let names = targets().map(|target| PossibleValue::new(target.name()).help(target.about()));
    let is_missing = |form: &&str| targets().all(|target| target.name() != *form);
    let missing = TABLES.into_iter().map(|(form, _)| form).filter(is_missing);
    let names = names.chain(missing.map(|form| PossibleValue::new(form).hide(true)));
    PossibleValuesParser::new(names).try_map(|name| targets().find(|target| target.name() == name).ok_or(NOT_BUILT))
}

/// Derives the format of an output from its name.
fn of_name(output: &Path) -> Result<Target> {
    let name = output.display().to_string();
    if let Some(found) = targets().find(|target| target.is_of(&name)) {
        return Ok(found);
    }
    let extension = output.extension().unwrap_or_default();
    let table = TABLES.into_iter().map(|(form, _)| form).find(|form| extension == *form);
    Err(Error::Usage(match table {
        Some(DATABASE) => format!("{name}: {NOT_BUILT}"),
        Some(form) => format!(
            "{name}: tables are written to a directory: hatf convert TRACE DIR --to {form}; for the records of a \
             trace, use metatfc convert --record malloc TRACE malloc.{form}"
        ),
        None => "cannot derive the format from the output name: specify it with --to".to_owned(),
    }))
}

/// Replaces each directory with the traces in it, sorted by name. A directory of segments is one trace.
fn traces(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut traces = Vec::new();
    for path in paths {
        if !path.is_dir() || Segments::list(path).is_ok_and(|segments| !segments.is_empty()) {
            traces.push(path.clone());
            continue;
        }
        let problem = || Error::system(path.display().to_string());
        let entries = std::fs::read_dir(path).map_err(problem())?;
        let mut found = entries.map(|entry| Ok(entry.map_err(problem())?.path())).collect::<Result<Vec<_>>>()?;
        found.retain(|path| path.extension().is_some_and(|extension| extension == "mtf"));
        found.sort();
        if found.is_empty() {
            return Err(Error::Trace(format!("{}: the directory contains no traces (*.mtf)", path.display()).into()));
        }
        traces.extend(found);
    }
    Ok(traces)
}

pub(crate) fn run(options: &Convert) -> Result<u8> {
    let (inputs, output) = match &*options.paths {
        [inputs @ .., output] if !inputs.is_empty() => (inputs, &**output),
        inputs => (inputs, Path::new("-")),
    };
    let to = options.to.map_or_else(|| of_name(output), Ok)?;
    let inputs = traces(inputs)?;
    options.check(to, inputs.len() > 1)?;
    check_paths(to, &inputs, output)?;
    match (to, &*inputs) {
        (Target::Trace(form), inputs) => trace::run(options, form, inputs, output),
        (Target::Profile(form), [input]) => profile::run(options, form, input, output),
        (Target::Profile(_), _) => Err(Error::Usage(
            "a profile is written from one input; to merge profiles, use `hatf profile merge`".to_owned(),
        )),
        #[cfg(feature = "export")]
        (Target::Tables(form), inputs) => tables::run(options, form, inputs, output),
        #[cfg(not(feature = "export"))]
        (Target::Tables(_), _) => Err(Error::Usage(NOT_BUILT.to_owned())),
    }
}

/// Checks the inputs and the output of tables and of a merged trace.
fn check_paths(to: Target, inputs: &[PathBuf], output: &Path) -> Result<()> {
    let (is_tables, are_several) = (matches!(to, Target::Tables(_)), inputs.len() > 1);
    let wrong = if is_tables && output == Path::new("-") {
        format!("expected an output for the tables: hatf convert TRACE OUTPUT --to {}", to.name())
    } else if are_several && inputs.iter().any(|input| input == Path::new("-")) {
        "several input traces must be files, not standard input".to_owned()
    } else if is_tables || are_several {
        check_is_no_input(output, inputs.iter().map(PathBuf::as_path))?;
        if !(are_several || is_tables && to.name() != DATABASE) || !output.is_file() {
            return Ok(());
        }
        // The user may have forgotten the output, so that the file would be an input.
        let why = "of several paths, the last is the output, which must be new: add an output, or remove the file";
        format!("{} already exists; {why}", output.display())
    } else {
        return Ok(());
    };
    Err(Error::Usage(wrong))
}

impl Convert {
    /// Fails if an option has no effect on the conversion.
    fn check(&self, to: Target, are_several: bool) -> Result<()> {
        let ProfileArgs { binary, symbols, unknown_is_unused, shared_objects } = &self.profiles;
        let (is_trace, is_profile) = (matches!(to, Target::Trace(_)), matches!(to, Target::Profile(_)));
        let (name, is_tables) = (to.name(), matches!(to, Target::Tables(_)));
        let is_heap = name == HEAP.name;
        #[cfg(feature = "export")]
        let tables::TableArgs { tables, resolve, partition } = &self.tables;
        #[cfg(not(feature = "export"))]
        let (tables, resolve, partition) = ([(); 0], &false, &false);
        let finds_names = is_profile || *resolve;
        // Each row contains options, whether one is given, whether they have an effect, and what they require.
        let options = [
            ("--from or --strict", self.from.is_some() || self.strict, !is_tables, "trace or profile output"),
            ("--preset", self.preset.is_some(), is_heap || name == "hatf10", "heap or hatf10 output"),
            ("--clock or --group", self.clock.or(self.group).is_some(), is_heap, "heap output"),
            ("--inner-records", self.inner_records, name == "hatf1", "hatf1 output"),
            ("--free-at-last-access", self.free_at_last_access, is_heap && !are_several, "one input and heap output"),
            ("--as-is", self.as_is, is_trace && are_several, "several inputs and trace output"),
            ("--binary", !binary.is_empty(), is_profile, "profile output"),
            ("--unknown-is-unused", *unknown_is_unused, name == "memprof-yaml", "memprof-yaml output"),
            ("--shared-objects", *shared_objects, name == "memprof-yaml", "memprof-yaml output"),
            ("--symbols", symbols.is_given(), finds_names, "profile output or --resolve"),
            ("--tables or --resolve", !tables.is_empty() || *resolve, is_tables, "table output"),
            ("--partition", *partition, is_tables && name != DATABASE, "table output in a directory"),
        ];
        let inputs = if are_several { "several inputs" } else { "one input" };
        match options.iter().find(|(_, is_given, has_effect, _)| *is_given && !*has_effect) {
            Some((option, .., need)) => {
                Err(Error::Usage(format!("{option} requires {need}; this command converts {inputs} to {name}")))
            }
            None => Ok(()),
        }
    }
}
