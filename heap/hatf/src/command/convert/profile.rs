//! Converts heap profiles to other profile formats, and creates profiles in these formats from traces.

use std::path::{Path, PathBuf};

use hatf_trace::forms::Input;
use hatf_trace::{Error, Result};
use hatf_view::profile::{HeapProfile, ProfileForm, ProfileOptions, is_profile, name_frames};
use metatf_cli::{OutputFile, shown};
use metatf_page::units::count;

use super::Convert;
use crate::command::lab::Source;
use crate::command::profile::{made_of, one, read_all};
use crate::command::symbols::Symbols;
use crate::command::{OPENING, about, print_message};

/// Options for heap profiles.
#[derive(clap::Args)]
#[command(next_help_heading = "Heap profiles")]
pub(super) struct ProfileArgs {
    /// Program or shared object in which to look up functions that the profile does not name. Can be repeated.
    #[arg(long, value_name = "FILE")]
    pub(super) binary: Vec<PathBuf>,

    #[command(flatten)]
    pub(super) symbols: Symbols,

    /// In memprof-yaml output, treat contexts with unknown accesses as never accessed, so that long-lived contexts are
    /// cold.
    #[arg(long)]
    pub(super) unknown_is_unused: bool,

    /// In memprof-yaml output, include frames in shared objects. LLVM's own profiles contain only frames of the program.
    #[arg(long)]
    pub(super) shared_objects: bool,
}

pub(super) fn run(options: &Convert, form: &'static ProfileForm, path: &Path, output: &Path) -> Result<u8> {
    let ProfileArgs { binary, symbols, unknown_is_unused, shared_objects } = &options.profiles;
    let only_read = || Error::Usage(format!("the format {} can only be read, not written", form.name));
    let create = form.create.ok_or_else(only_read)?;
    let files = symbols.all_files()?;
    let mut profiles = read(options, path)?;
    for profile in &mut profiles {
        binary.iter().try_for_each(|binary| name_frames(profile, binary, &files))?;
    }
    let profile = one(path, profiles)?.merged();
    if profile.about.contains_key("sampling") {
        print_message(&format!("{}: sampled profile; all figures cover the sampled blocks only", path.display()));
    }

    let problem = || Error::system(output.display().to_string());
    let (file, mut sink) = OutputFile::create(output).map_err(problem())?;
    let of = ProfileOptions { files, unknown_is_unused: *unknown_is_unused, shared_objects: *shared_objects };
    let written = create(&profile, &of, &mut |note| print_message(&shown(note)), &mut *sink);
    // If the output failed, report its error as the cause.
    if let Some(error) = file.error() {
        return Err(problem()(error));
    }
    let (contexts, all) = (written.map_err(|error| about(path, error))?, profile.infos.len());
    file.keep(sink).map_err(problem())?;
    print_message(&format!("{}: {} of {} contexts", output.display(), count(contexts as u64), count(all as u64)));
    Ok(u8::from(options.strict && contexts < all))
}

/// Returns the profiles in the input or, if the input is a trace, the profile of that trace.
fn read(options: &Convert, path: &Path) -> Result<Vec<HeapProfile>> {
    if options.from.is_none() {
        let mut input = Input::open(path)?.opening(OPENING);
        if is_profile(&mut input)? {
            return read_all(path, input);
        }
        // Data that was read from a pipe to detect a profile cannot be read again as a trace.
        if !path.is_file() && input.folder().is_none() {
            let advice = "to create a profile from a trace in a pipe, specify the format of the trace with --from";
            return Err(Error::Trace(format!("{}: not a heap profile; {advice}", input.name()).into()));
        }
    }
    let source = Source::new(path.to_owned(), options.from, None);
    Ok(vec![made_of(&source, &options.profiles.symbols)?])
}
