//! Symbolization of stack frames, with options for finding names and messages about frames without names.

use std::path::{Path, PathBuf};

use hatf_lab::sites::Counts;
use hatf_trace::stacks::{Location, Stacks};
use hatf_trace::{Error, Result};
use hatf_view::symbolize::{
    CLIENT, Debuginfod, Files, NamedLocations, Problem, find_locations, is_debuginfod_asked, name_stacks, of_shown,
    of_weight,
};
use metatf_cli::{ChildCommand, shown, stderr_is_terminal};

use super::lab::hint;
use super::{compose_after_answer, print_after_answer};

/// Maximum number of modules to name in messages about missing functions. In a trace from another machine, many modules
/// lack functions.
const MODULES: usize = 3;

/// The value of `--symbols` that disables lookups.
const NONE: &str = "none";

/// Options for looking up functions that a trace does not name.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Symbols {
    /// Also look up functions in DIR, which contains files of the recorded machine or separate debug information, or in
    /// MAP, a perf-PID.map of functions generated at run time. `none` prints only the names in the trace. Can be
    /// repeated.
    #[arg(long, value_name = "DIR|MAP|none", help_heading = "Symbols")]
    symbols: Vec<PathBuf>,
}

impl Symbols {
    /// Returns whether the option is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// Returns the locations to search for program files, or `None` if no function is looked up.
    pub(crate) fn files(&self) -> Result<Option<Files>> {
        let files = self.all_files()?;
        let is_off = self.symbols.iter().any(|path| path == Path::new(NONE));
        Ok((!is_off).then_some(files))
    }

    /// Returns the locations to search for program files, which a separate process reads.
    pub(crate) fn all_files(&self) -> Result<Files> {
        let paths: Vec<_> = self.symbols.iter().filter(|path| *path != Path::new(NONE)).collect();
        if !paths.is_empty() && paths.len() < self.symbols.len() {
            return Err(Error::Usage("--symbols none cannot be combined with other locations".to_owned()));
        }
        let helper = ChildCommand::of_this_program(vec!["__symbolize-helper".into()]);
        let helper = Some(helper.map_err(Error::system("this program's path"))?);
        let debuginfod = is_debuginfod_asked().then(Debuginfod::find).flatten();
        let debuginfod = debuginfod.map(|client| client.with_progress(stderr_is_terminal()));
        let mut files = Files { helper, debuginfod, ..Files::default() };
        for path in paths {
            let problem = || Error::system(format!("--symbols {}", path.display()));
            if std::fs::metadata(path).map_err(problem())?.is_dir() {
                files.folders.push(path.clone());
            } else if files.perf_map.replace(path.clone()).is_some() {
                return Err(Error::Usage(format!("--symbols {}: only one file can be a map", path.display())));
            }
        }
        Ok(files)
    }
}

/// The displayed stacks, as stack numbers and the number of frames shown per stack. `None` means all stacks.
pub(crate) type ShownStacks = Option<(Vec<u64>, usize)>;

impl Symbols {
    /// Symbolizes frames that the trace does not name. After the answer of the command, problems are printed if they
    /// affect more than 1% of the displayed stacks, measured by the weight of each stack.
    pub(crate) fn name(
        &self,
        trace: &Path,
        stacks: &mut Stacks,
        shown: ShownStacks,
        weight: impl Fn(u64) -> u64,
    ) -> Result<()> {
        hint(trace, stacks);
        let numbers = shown.as_ref().map(|(numbers, _)| numbers.clone());
        let problems = self.problems(stacks, 0, shown)?;
        let mut numbers = numbers.unwrap_or_else(|| (1..stacks.count()).collect());
        numbers.sort_unstable();
        numbers.dedup();
        print_problems(&of_weight(problems, stacks, numbers, weight));
        Ok(())
    }

    /// Symbolizes the locations from number `from` on, without printing anything.
    #[cfg(feature = "watch")]
    pub(crate) fn name_quietly(&self, stacks: &mut Stacks, from: usize) {
        let quiet = |mut files: Files| {
            files.debuginfod = files.debuginfod.map(|client| client.with_progress(false));
            files
        };
        if let Ok(Some(files)) = self.files() {
            name_stacks(stacks, from, &quiet(files));
        }
    }

    /// Symbolizes the locations from number `from` on, and returns the problems to print.
    pub(crate) fn problems(&self, stacks: &mut Stacks, from: usize, shown: ShownStacks) -> Result<Vec<Problem>> {
        let Some(files) = self.files()? else { return Ok(Vec::new()) };
        let problems = name_stacks(stacks, from, &files);
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
        let Some(files) = self.files()? else { return Ok(()) };
        let NamedLocations { functions, problems } = find_locations(locations, 0, &files);
        for (number, functions) in functions {
            if let Some(location) = locations.get_mut(number) {
                location.functions = functions;
            }
        }
        print_problems(&of_shown(problems, &*locations));
        Ok(())
    }
}

/// Returns a function that returns the allocated bytes of a stack.
pub(crate) fn allocated(counts: &[Counts]) -> impl Fn(u64) -> u64 {
    |stack| usize::try_from(stack).ok().and_then(|stack| counts.get(stack)).map_or(0, |counts| counts.allocated.bytes)
}

/// Prints the modules whose frames have no names, and the reasons, after the answer of the command.
pub(crate) fn print_problems(problems: &[Problem]) {
    let (first, others) = problems.split_at(MODULES.min(problems.len()));
    for problem in first {
        let problem = problem.clone();
        compose_after_answer(move || {
            let advice = problem.advice().map_or_else(String::new, |advice| format!("; {advice}"));
            shown(&format!("{problem}{advice}")).into_owned()
        });
    }
    if !others.is_empty() {
        let (modules, frames) = (others.len(), others.iter().map(|problem| problem.frames).sum::<usize>());
        print_after_answer(format!("{frames} frames in {modules} other modules have no names"));
    }
    if !problems.is_empty() && is_debuginfod_asked() && Debuginfod::find().is_none() {
        print_after_answer(format!(
            "DEBUGINFOD_URLS is set, but {CLIENT} is not installed: install the package debuginfod (elfutils-debuginfod-client on Fedora)"
        ));
    }
}
