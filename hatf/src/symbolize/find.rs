//! Looking frames up in the files of their modules.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::answer::{Answer, Frame, Image, Missing};
use super::files::Files;
use super::names::cut;
use super::perf_map::PerfMap;
use super::symbolizer::Symbolizer;
use super::{Place, Wanted};
use crate::stacks::{Function, Module};

/// Why frames of a module have no names or no lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The module's path.
    pub path: String,
    /// How many of its frames have none.
    pub frames: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frames {
            0 => write!(f, "{}: {}", self.path, self.why),
            frames => write!(f, "{}: {} ({frames} frames have no names)", self.path, self.why),
        }
    }
}

/// The functions of frames.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub(super) symbols: BTreeMap<Place, BTreeMap<u64, Vec<Function>>>,
    /// Modules of which something was missing.
    pub problems: Vec<Problem>,
    /// Frames with a function.
    pub named: usize,
}

/// Looks frames up in files.
#[must_use]
pub fn find(wanted: &Wanted, files: &Files) -> Found {
    let mut found = Found::default();
    let symbolizer = Symbolizer::new(files.clone());
    for (place, frames) in &wanted.frames {
        let frames: Vec<u64> = frames.iter().copied().collect();
        let (functions, problem) = match *place {
            Place::Module(number) => match wanted.loaded.iter().find(|module| module.number == number) {
                Some(module) => in_module(module, &frames, &symbolizer),
                None => continue,
            },
            Place::Image(image) => match in_perf_map(wanted.processes.get(&image).copied(), &frames, files) {
                None => continue,
                Some(Ok(functions)) => (functions, None),
                Some(Err(problem)) => (Vec::new(), Some(problem)),
            },
        };
        found.problems.extend(problem);
        let pairs = frames.into_iter().zip(functions).filter(|(_, functions)| !functions.is_empty());
        let named: BTreeMap<_, _> = pairs.collect();
        found.named += named.len();
        if !named.is_empty() {
            found.symbols.insert(*place, named);
        }
    }
    found
}

/// Looks frames up in the file of their module.
fn in_module(module: &Module, frames: &[u64], symbolizer: &Symbolizer) -> (Vec<Vec<Function>>, Option<Problem>) {
    let image = Image { path: module.path.clone(), build_id: module.build_id.clone() };
    let addresses: Vec<u64> = frames.iter().map(|frame| frame.wrapping_sub(module.bias)).collect();
    let Answer { frames, missing } = symbolizer.symbolize(&image, &addresses);
    let functions: Vec<Vec<Function>> = frames.into_iter().map(functions).collect();
    let nameless = functions.iter().filter(|functions| functions.is_empty()).count();
    let problem = |missing: Missing| Problem { path: image.path, frames: nameless, why: missing.to_string() };
    let is_told = |missing: &Missing| nameless > 0 || *missing != Missing::DebugInformation;
    (functions, missing.filter(is_told).map(problem))
}

/// Returns the functions of frames that have names.
pub(crate) fn functions(frames: Vec<Frame>) -> Vec<Function> {
    let function = |Frame { function: name, file, line, .. }| Function { name, file, line: line.into() };
    frames.into_iter().filter(|frame| !frame.function.is_empty()).map(function).collect()
}

/// Looks frames up in the map that the process's compiler wrote; `None` if there is no map.
fn in_perf_map(process: Option<u64>, frames: &[u64], files: &Files) -> Option<Result<Vec<Vec<Function>>, Problem>> {
    let (path, map) = match &files.perf_map {
        Some(path) => (path.clone(), File::open(path)),
        None => {
            let path = PathBuf::from(format!("/tmp/perf-{}.map", process?));
            path.symlink_metadata().ok()?;
            let map = of_this_user(&path);
            (path, map)
        }
    };
    let map = map.and_then(PerfMap::read);
    let function = |name: &str| Function { name: cut(name), file: String::new(), line: 0 };
    let named =
        |map: PerfMap| frames.iter().map(|frame| map.find(*frame).map(function).into_iter().collect()).collect();
    let problem =
        |why: io::Error| Problem { path: path.display().to_string(), frames: frames.len(), why: why.to_string() };
    Some(map.map(named).map_err(problem))
}

/// Opens a file of a folder in which anybody may write: one of this user or of root, and no link.
fn of_this_user(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // A pipe is opened without waiting for who writes.
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    // SAFETY: it reads a number.
    let user = unsafe { libc::geteuid() };
    if !about.is_file() || (about.uid() != user && about.uid() != 0) {
        return Err(io::Error::other("it is no file of this user or of root; --perf-map takes it all the same"));
    }
    Ok(file)
}
