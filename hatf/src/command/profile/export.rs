//! `hatf profile export`

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use hatf::profile::{CompilerFrames, Memprof};
use hatf::{Error, Result};
use metatf_cli::{OutputFile, shown};
use metatf_page::units::count;

use super::super::symbolize::files;
use super::super::{about, print_message};
use super::read;

/// Write a profile as a memory profile of LLVM, by which clang marks allocations as hot or cold.
///
/// LLVM knows a frame by its function's name for the linker, the line from the function's first one, and the column. They are looked
/// up in the program's file, which must have debug information (-g). Frames without are left out, and so are those of shared objects. The form is the YAML that llvm-profdata merge reads from LLVM 21 on.
///
/// LLVM takes what is not there for 0. So contexts whose accesses are not all known are written without lifetimes: they are neither
/// hot nor cold then. hatf cc builds a program whose accesses are known.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf profile export app.prof.mtf
  llvm-profdata merge app.prof.memprof.yaml -o app.memprofdata
  clang++ -O2 -g -fmemory-profile-use=app.memprofdata app.cpp")]
pub(super) struct Export {
    /// The profile; `-` is standard input.
    profile: PathBuf,

    /// The file to write; `-` is standard output [default: PROFILE with .memprof.yaml for its ending].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// What to write.
    #[arg(long, value_enum, default_value_t = Form::MemprofYaml)]
    format: Form,

    /// Take contexts whose accesses are not known for such as have none: long-lived ones are cold then.
    #[arg(long)]
    unknown_is_unused: bool,

    /// Write frames of shared objects, too. LLVM's own profiles have those of the program alone.
    #[arg(long)]
    shared_objects: bool,

    /// A folder of separate debug information, searched before /usr/lib/debug. May be given several times.
    #[arg(long, value_name = "FOLDER")]
    debug_dir: Vec<PathBuf>,

    /// Look for programs and shared objects below this folder, not below /.
    #[arg(long, value_name = "FOLDER")]
    sysroot: Option<PathBuf>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// LLVM's memory profile as YAML
    MemprofYaml,
}

pub(super) fn run(options: &Export) -> Result<u8> {
    let path = &options.profile;
    let profile = read(path)?.merged();
    let files = files(&options.debug_dir, options.sysroot.as_ref())?;
    let frames = CompilerFrames::find(&profile, options.shared_objects, &files);
    frames.problems.iter().for_each(|problem| print_message(&shown(&problem.to_string())));
    let memprof = Memprof::new(&profile, &frames, options.unknown_is_unused);
    if memprof.contexts() == 0 {
        let why =
            "no context has a frame with debug information; compile the program with -g, and record it with --stacks";
        return Err(about(path, Error::Trace(why.into())));
    }

    let Form::MemprofYaml = options.format;
    let output = options.output.clone().unwrap_or_else(|| path.with_extension("memprof.yaml"));
    let problem = || Error::system(output.display().to_string());
    let (file, sink) = OutputFile::create(&output).map_err(problem())?;
    let mut out = BufWriter::new(sink);
    memprof.yaml(&mut out).and_then(|()| out.flush()).map_err(problem())?;
    file.keep(out.into_inner().map_err(|error| problem()(error.into_error()))?).map_err(problem())?;

    let name = output.display();
    let (contexts, all) = (count(memprof.contexts() as u64), count(profile.infos.len() as u64));
    print_message(&format!("{name}: {contexts} contexts of {all} in {}", path.display()));
    if !frames.without.is_empty() {
        let names: Vec<_> = frames.without.iter().map(|path| path.rsplit('/').next().unwrap_or_default()).collect();
        print_message(&format!("without debug information, so their frames are left out: {}", names.join(", ")));
    }
    if memprof.unplaced > 0 {
        print_message(&format!("{} contexts have no other frames", count(memprof.unplaced as u64)));
    }
    if memprof.unknown > 0 {
        let taken =
            if options.unknown_is_unused { "taken for such as have none" } else { "neither hot nor cold to LLVM" };
        print_message(&format!("accesses of {} contexts are not all known: {taken}", count(memprof.unknown as u64)));
    }
    Ok(0)
}
