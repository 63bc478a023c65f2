//! `hatf profile import`: converts other tools' profiles.

use std::path::PathBuf;

use hatf_trace::Result;
use hatf_view::profile::name_frames;
use metatf_page::units::count;

use super::super::print_message;
use super::super::symbols::files;
use super::{one, read_all, write};

/// Convert another tool's profile: a raw LLVM memory profile (.memprofraw), versions 3 to 5; a pprof heap profile
/// (.pb.gz); or a jemalloc heap profile in text form (heap_v2).
///
/// Programs built by clang with -fmemory-profile write LLVM profiles. Their stacks are addresses in modules that have
/// build IDs but no names: name the files with --binary. Such a profile has no utilization and no timestamps of a
/// context's first block. If a file contains several profiles, they are merged. Profiles from pprof and jemalloc
/// contain totals: memory in use counts as live both at the peak and at the end, and each block is given the average
/// size of its stack.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile import memprof.profraw.1234 --binary ./app -o app.prof.mtf
  hatf profile import heap.pb.gz -o app.prof.mtf
  hatf profile show app.prof.mtf --advice")]
pub(super) struct Import {
    /// Profile to convert.
    #[arg(value_name = "FILE")]
    raw: PathBuf,

    /// Profile to write [default: FILE with the extension .prof.mtf].
    #[arg(short, long, value_name = "PROFILE")]
    output: Option<PathBuf>,

    /// Program or shared object in which to look up functions. Can be repeated.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,

    /// Directory with separate debug information, searched before /usr/lib/debug. Can be repeated.
    #[arg(long, value_name = "DIR", requires = "binary")]
    debug_dir: Vec<PathBuf>,
}

pub(super) fn run(options: &Import) -> Result<u8> {
    let path = &options.raw;
    let mut profiles = read_all(path)?;
    let several = profiles.len();
    let files = files(&options.debug_dir, None)?;
    for profile in &mut profiles {
        for binary in &options.binary {
            name_frames(profile, binary, &files)?;
        }
    }
    let profile = one(path, profiles)?;
    let output = options.output.clone().unwrap_or_else(|| path.with_extension("prof.mtf"));
    write(&output, &profile)?;
    let (infos, contexts) = (count(profile.infos.len() as u64), count(profile.contexts.len() as u64));
    let of = if several > 1 { format!(" of {} profiles", count(several as u64)) } else { String::new() };
    print_message(&format!("{}: {infos} heap info blocks of {contexts} contexts{of}", output.display()));
    Ok(0)
}
