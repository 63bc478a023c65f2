//! `hatf profile`: heap profiles.

mod make;
mod merge;
mod show;

pub(super) use make::made_of;

use std::path::Path;

use hatf_trace::forms::Input;
use hatf_trace::{Error, Result};
use hatf_view::profile::{HeapProfile, merge, open_profiles, write_profile};
use metatf_cli::{OutputFile, Progress};

use super::lab::Source;
use super::{OPENING, about};

/// Create a heap profile from a trace: the number, sizes and lifetimes of the blocks that each call stack allocated.
///
/// The profile consists of heap info blocks, as defined by LLVM's sanitizer-based heap profiler: counts, sizes,
/// lifetimes and overlaps of the blocks of one context. A context is a call stack, or a size class and a thread if the
/// trace has no stacks. Freed blocks are merged in a table of fixed size. An entry evicted from the table is written
/// immediately; `hatf profile merge` and `hatf profile show` merge such entries later. The command also counts lookups
/// in tables of several other sizes.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  hatf profile perl.mtf -o perl.prof.mtf
  hatf profile show perl.prof.mtf --by total_lifetime
  hatf profile perl.mtf --tick 1us --sets 251 --ways 2 --tables 61x4,251x4
  hatf profile merge monday.prof.mtf tuesday.prof.mtf -o both.prof.mtf
  hatf convert app.memprofraw app.prof.mtf"
)]
pub(crate) struct Profile {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    source: Option<Source>,

    #[command(flatten)]
    make: make::Make,
}

#[derive(clap::Subcommand)]
enum Command {
    Merge(merge::Merge),
    Show(show::Show),
}

pub(crate) fn run(options: &Profile) -> Result<u8> {
    match (&options.command, &options.source) {
        (Some(Command::Merge(options)), _) => merge::run(options),
        (Some(Command::Show(options)), _) => show::run(options),
        (None, Some(source)) => make::run(source, &options.make),
        (None, None) => Err(Error::Usage("no trace given; see hatf profile --help".to_owned())),
    }
}

/// Reads a profile in any supported format. `-` is standard input. Several profiles in a file are merged.
fn read(path: &Path) -> Result<HeapProfile> {
    one(path, read_all(path, Input::open(path)?.opening(OPENING))?)
}

/// Reads the profiles of a file.
pub(super) fn read_all(path: &Path, input: Input) -> Result<Vec<HeapProfile>> {
    let mut progress = Progress::new("records");
    open_profiles(input, &mut || progress.step()).map_err(|error| about(path, error))
}

/// Merges the profiles of a file.
pub(super) fn one(path: &Path, mut profiles: Vec<HeapProfile>) -> Result<HeapProfile> {
    match profiles.pop() {
        Some(profile) if profiles.is_empty() => Ok(profile),
        last => merge(profiles.into_iter().chain(last)).map_err(|error| about(path, error)),
    }
}

/// Writes a profile.
fn write(path: &Path, profile: &HeapProfile) -> Result<()> {
    let problem = || Error::system(path.display().to_string());
    let (file, mut sink) = OutputFile::create(path).map_err(problem())?;
    let written = write_profile(profile, &mut *sink);
    // If the output failed, report its error as the cause.
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    written.map_err(|error| about(path, error))?;
    file.keep(sink).map_err(problem())
}
