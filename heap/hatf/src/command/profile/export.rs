//! `hatf profile export`: writes profiles in other formats.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use hatf_trace::{Error, Result};
use hatf_view::profile::{PROFILES, ProfileForm, ProfileOptions};
use metatf_cli::{OutputFile, shown};
use metatf_page::units::count;

use super::super::symbols::files;
use super::super::{about, print_message, row};
use super::read;

/// Write a profile in another format: as a memory profile for LLVM, which clang uses to mark allocations as hot or
/// cold, or for another tool.
///
/// LLVM identifies a frame by the function's linkage name, the line relative to the function's first line, and the
/// column. These are looked up in the program file, which must contain debug information (-g). Frames without debug
/// information and frames in shared objects are omitted. The format is the YAML that llvm-profdata merge reads from
/// LLVM 21 on.
///
/// LLVM treats missing values as 0. Contexts whose accesses are not fully known are therefore written without
/// lifetimes, so that they are neither hot nor cold. Build the program with `hatf cc` to record its accesses.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile export app.prof.mtf
  hatf profile export app.prof.mtf --format pprof
  hatf profile export app.prof.mtf --format folded -o - | less
  llvm-profdata merge app.prof.memprof.yaml -o app.memprofdata
  clang++ -O2 -g -fmemory-profile-use=app.memprofdata app.cpp")]
pub(super) struct Export {
    /// Profile to read; `-` is standard input.
    profile: PathBuf,

    /// File to write; `-` is standard output [default: PROFILE with the file extension of the format, such as
    /// .memprof.yaml].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Format to write.
    #[arg(long, value_name = "FORMAT", default_value = "memprof-yaml", value_parser = form())]
    format: &'static ProfileForm,

    /// Treat contexts with unknown accesses as never accessed: long-lived ones are then cold.
    #[arg(long)]
    unknown_is_unused: bool,

    /// Include frames in shared objects. LLVM's own profiles contain only frames of the program.
    #[arg(long)]
    shared_objects: bool,

    /// Directory with separate debug information, searched before /usr/lib/debug. Can be repeated.
    #[arg(long, value_name = "DIR")]
    debug_dir: Vec<PathBuf>,

    /// Look for programs and shared objects below this directory instead of /.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
}

/// Returns a parser for the name of an output format.
fn form() -> impl TypedValueParser<Value = &'static ProfileForm> {
    let written = PROFILES.into_iter().filter(|form| form.create.is_some());
    row(written.map(|form| (form.name, form.about))).try_map(|name| ProfileForm::of(&name).ok_or("unknown format"))
}

pub(super) fn run(options: &Export) -> Result<u8> {
    let path = &options.profile;
    let form = options.format;
    let only_read = || Error::Usage(format!("{} can only be read, not written", form.name));
    let create = form.create.ok_or_else(only_read)?;
    let profile = read(path)?.merged();
    if profile.about.contains_key("sampling") {
        print_message(&format!("{}: sampled profile; all figures cover the sampled blocks only", path.display()));
    }
    let files = files(&options.debug_dir, options.sysroot.as_ref())?;
    let Export { unknown_is_unused, shared_objects, .. } = *options;

    let output = options.output.clone().unwrap_or_else(|| path.with_extension(form.ending));
    let problem = || Error::system(output.display().to_string());
    let (file, mut sink) = OutputFile::create(&output).map_err(problem())?;
    let of = ProfileOptions { files, unknown_is_unused, shared_objects };
    let written = create(&profile, &of, &mut |note| print_message(&shown(note)), &mut *sink);
    // If the output failed, report its error as the cause.
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    let contexts = written.map_err(|error| about(path, error))?;
    file.keep(sink).map_err(problem())?;
    let (name, contexts, all) = (output.display(), count(contexts as u64), count(profile.infos.len() as u64));
    print_message(&format!("{name}: {contexts} contexts of {all} in {}", path.display()));
    Ok(0)
}
