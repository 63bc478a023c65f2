//! Symbolization of stack frames, with options for finding names and messages about frames without names.

use std::path::{Path, PathBuf};

use hatf_trace::stacks::{Location, Stacks};
use hatf_trace::{Error, Result};
use hatf_view::symbolize::{
    CLIENT, Debuginfod, Files, NamedLocations, Problem, find_locations, is_debuginfod_asked, name_stacks, of_shown,
};
use metatf_cli::{ChildCommand, shown, stderr_is_terminal};

use super::lab::hint;
use super::print_message;

/// Maximum number of modules to name in messages about missing functions. In a trace from another machine, many modules
/// lack functions.
const MODULES: usize = 3;

/// Options that select where to look up functions.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SymbolFiles {
    /// Directory with separate debug information, searched before /usr/lib/debug. Can be repeated.
    #[arg(long, value_name = "DIR", help_heading = "Symbols")]
    debug_dir: Vec<PathBuf>,

    /// Look for programs and shared objects below this directory instead of /.
    #[arg(long, value_name = "DIR", help_heading = "Symbols")]
    sysroot: Option<PathBuf>,

    /// Map of functions generated at run time [default: /tmp/perf-PID.map, if it exists].
    #[arg(long, value_name = "FILE", help_heading = "Symbols")]
    perf_map: Option<PathBuf>,
}

/// Options for looking up functions that a trace does not name.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Symbols {
    #[command(flatten)]
    pub(crate) files: SymbolFiles,

    /// Do not look up function names; print only those in the trace.
    #[arg(long, help_heading = "Symbols", conflicts_with_all = ["debug_dir", "sysroot", "perf_map"])]
    pub(crate) no_symbols: bool,
}

impl SymbolFiles {
    /// Returns whether an option selects a file or a directory.
    pub(crate) fn is_given(&self) -> bool {
        !self.debug_dir.is_empty() || self.sysroot.is_some() || self.perf_map.is_some()
    }

    /// Returns the locations to search for program files, which a separate process reads.
    pub(crate) fn files(&self) -> Result<Files> {
        let Self { debug_dir, sysroot, perf_map } = self;
        let helper = ChildCommand::of_this_program(vec!["__symbolize-helper".into()]);
        let helper = Some(helper.map_err(Error::system("this program's path"))?);
        let debuginfod = is_debuginfod_asked().then(Debuginfod::find).flatten();
        let debuginfod = debuginfod.map(|client| client.with_progress(stderr_is_terminal()));
        let mut files =
            Files { perf_map: perf_map.clone(), sysroot: sysroot.clone(), helper, debuginfod, ..Files::default() };
        files.debug_dirs.splice(0..0, debug_dir.iter().cloned());
        Ok(files)
    }
}

/// The displayed stacks, as stack numbers and the number of frames shown per stack. `None` means all stacks.
pub(crate) type ShownStacks = Option<(Vec<u64>, usize)>;

impl Symbols {
    /// Symbolizes frames that the trace does not name, and prints the problems that affect the displayed stacks.
    pub(crate) fn name(&self, trace: &Path, stacks: &mut Stacks, shown: ShownStacks) -> Result<()> {
        hint(trace, stacks);
        print_problems(&self.problems(stacks, 0, shown)?);
        Ok(())
    }

    /// Symbolizes the locations from number `from` on, without printing anything.
    #[cfg(feature = "watch")]
    pub(crate) fn name_quietly(&self, stacks: &mut Stacks, from: usize) {
        let quiet = |mut files: Files| {
            files.debuginfod = files.debuginfod.map(|client| client.with_progress(false));
            files
        };
        if let (false, Ok(files)) = (self.no_symbols, self.files.files().map(quiet)) {
            name_stacks(stacks, from, &files);
        }
    }

    /// Symbolizes the locations from number `from` on, and returns the problems to print.
    pub(crate) fn problems(&self, stacks: &mut Stacks, from: usize, shown: ShownStacks) -> Result<Vec<Problem>> {
        if self.no_symbols {
            return Ok(Vec::new());
        }
        let problems = name_stacks(stacks, from, &self.files.files()?);
        Ok(match shown {
            None => of_shown(problems, stacks.locations()),
            Some((sites, depth)) => {
                let frames = sites.iter().flat_map(|site| stacks.frames(*site).iter().take(depth));
                let mut places: Vec<u32> = frames.copied().collect();
                places.sort_unstable();
                places.dedup();
                let locations = places.iter().filter_map(|place| stacks.locations().get(*place as usize));
                of_shown(problems, locations)
            }
        })
    }

    /// Symbolizes the locations of a profile that have no names.
    pub(crate) fn name_locations(&self, locations: &mut [Location]) -> Result<()> {
        if self.no_symbols {
            return Ok(());
        }
        let NamedLocations { functions, problems } = find_locations(locations, 0, &self.files.files()?);
        for (number, functions) in functions {
            if let Some(location) = locations.get_mut(number) {
                location.functions = functions;
            }
        }
        print_problems(&of_shown(problems, &*locations));
        Ok(())
    }
}

/// Prints the modules whose frames have no names, and the reasons.
pub(crate) fn print_problems(problems: &[Problem]) {
    let (first, others) = problems.split_at(MODULES.min(problems.len()));
    first.iter().for_each(|problem| print_message(&shown(&problem.to_string())));
    if !others.is_empty() {
        let (modules, frames) = (others.len(), others.iter().map(|problem| problem.frames).sum::<usize>());
        print_message(&format!("{frames} frames in {modules} other modules have no names"));
    }
    if !problems.is_empty() && is_debuginfod_asked() && Debuginfod::find().is_none() {
        print_message(&format!(
            "DEBUGINFOD_URLS is set, but {CLIENT} is not installed: install the package debuginfod (elfutils-debuginfod-client on Fedora)"
        ));
    }
}
