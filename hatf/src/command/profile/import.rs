//! `hatf profile import`

use std::path::PathBuf;

use hatf::Result;
use hatf::profile::name_frames;
use metatf_page::units::count;

use super::super::print_message;
use super::super::symbols::files;
use super::{one, read_all, write};

/// Read a profile of another tool: a raw memory profile of LLVM (.memprofraw), versions 3 to 5; a heap profile of pprof (.pb.gz); one of
/// jemalloc as text (heap_v2).
///
/// A program that clang built with -fmemory-profile writes one of LLVM. Its stacks are addresses in modules that have build ids and no
/// names: --binary gives the files. It has no utilization, and no stamps of the first block of a context. Several profiles in one file
/// are merged. Profiles of pprof and jemalloc have sums: what is in use counts as live both at the peak and at the end, and each block has
/// the average size of its stack.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile import memprof.profraw.1234 --binary ./app -o app.prof.mtf
  hatf profile import heap.pb.gz -o app.prof.mtf
  hatf profile show app.prof.mtf --advice")]
pub(super) struct Import {
    /// The profile of the other tool.
    #[arg(value_name = "FILE")]
    raw: PathBuf,

    /// The profile to write [default: FILE with .prof.mtf for its ending].
    #[arg(short, long, value_name = "PROFILE")]
    output: Option<PathBuf>,

    /// The program, or a shared object of it: functions of its frames are looked up in it. May be given several times.
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,

    /// A folder of separate debug information, searched before /usr/lib/debug. May be given several times.
    #[arg(long, value_name = "FOLDER", requires = "binary")]
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
