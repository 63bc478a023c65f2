//! `hatf profile merge`: merges profiles.

use std::path::PathBuf;

use hatf_trace::Result;
use hatf_view::profile::merge;
use metatf_page::units::count;

use super::super::print_message;
use super::{read, write};

/// Merge the heap info blocks of each context, within one profile or across several.
///
/// The heap info blocks of one profile come from one run, and merging them is exact. Different profiles come from
/// different runs: the last block of one and the first block of the next are not compared. Contexts of different
/// profiles are the same if their stacks have the same modules and file offsets.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile merge perl.prof.mtf -o perl.merged.mtf
  hatf profile merge monday.prof.mtf tuesday.prof.mtf -o both.prof.mtf")]
pub(super) struct Merge {
    /// Profiles, in the order of the runs.
    #[arg(required = true, value_name = "PROFILE")]
    profiles: Vec<PathBuf>,

    /// Profile to write.
    #[arg(short, long, value_name = "PROFILE")]
    output: PathBuf,
}

pub(super) fn run(options: &Merge) -> Result<u8> {
    let profiles = options.profiles.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;
    let before: usize = profiles.iter().map(|profile| profile.infos.len()).sum();
    let merged = merge(profiles)?;
    write(&options.output, &merged)?;
    let (name, after) = (options.output.display(), merged.infos.len());
    print_message(&format!("{name}: {} heap info blocks of {}", count(after as u64), count(before as u64)));
    Ok(0)
}
