//! Looking frames up in the files of their modules.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};

use super::checked::check;
use super::helper::Helper;
use super::names::{cut, demangled};
use super::perf_map::PerfMap;
use super::{Place, Wanted};
use crate::stacks::{Function, Module};

/// Where files are looked for.
#[derive(Clone, Debug)]
pub struct Files {
    /// A folder in which the recorded machine's files lie, instead of `/`.
    pub sysroot: Option<PathBuf>,
    /// Folders of separate debug information, by build id (`.build-id/ab/cdef.debug`) or name.
    pub debug_dirs: Vec<PathBuf>,
    /// The `perf-PID.map` of the process; otherwise that in `/tmp` is taken, if there is one and it is this user's or root's.
    pub perf_map: Option<PathBuf>,
    /// The program that looks up; otherwise this process does. What is in files comes from anywhere: a file of 1 MB may take
    /// 1 GB of memory, and a small one minutes. A helper has limits, and may fail without harm.
    pub helper: Option<Helper>,
}

impl Default for Files {
    fn default() -> Self {
        let debug_dirs = ["/usr/lib/debug", "/lib/debug"].map(PathBuf::from).into();
        Self { sysroot: None, debug_dirs, perf_map: None, helper: None }
    }
}

/// Why the frames of a module have no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The module's path.
    pub path: String,
    /// How many frames lie in it.
    pub frames: usize,
    /// Why.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({} frames have no names)", self.path, self.why, self.frames)
    }
}

/// The functions of frames.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub(super) symbols: BTreeMap<Place, BTreeMap<u64, Vec<Function>>>,
    /// Modules whose file could not be used.
    pub problems: Vec<Problem>,
    /// Frames with a function.
    pub named: usize,
}

/// Looks frames up in files.
#[must_use]
pub fn find(wanted: &Wanted, files: &Files) -> Found {
    let mut found = Found::default();
    for (place, frames) in &wanted.frames {
        let frames: Vec<u64> = frames.iter().copied().collect();
        let functions = match *place {
            Place::Module(number) => wanted.loaded.iter().find(|module| module.number == number).map(|module| {
                let functions = in_module(module, &frames, files);
                functions.map_err(|why| Problem { path: module.path.clone(), frames: frames.len(), why })
            }),
            Place::Image(image) => in_perf_map(wanted.processes.get(&image).copied(), &frames, files),
        };
        match functions {
            None => {}
            Some(Err(problem)) => found.problems.push(problem),
            Some(Ok(functions)) => {
                let pairs = frames.into_iter().zip(functions).filter(|(_, functions)| !functions.is_empty());
                let named: BTreeMap<_, _> = pairs.collect();
                found.named += named.len();
                if !named.is_empty() {
                    found.symbols.insert(*place, named);
                }
            }
        }
    }
    found
}

/// Returns the build id of a program or shared object in hexadecimal digits; `None`: it has none, or is no such file.
#[must_use]
pub fn build_id(path: &Path) -> Option<String> {
    let id = catch_unwind(|| read_elf_build_id(path)).ok()?.ok()??;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the functions of each frame in a module, inlined ones first.
///
/// # Errors
/// Why the module's file cannot be used.
pub fn in_module(module: &Module, frames: &[u64], files: &Files) -> Result<Vec<Vec<Function>>, String> {
    match &files.helper {
        Some(helper) => helper.functions(module, frames, files),
        None => in_module_here(module, frames, files, |_| ()),
    }
}

/// Does the same in this process; `found` is called with the bytes of the files before they are read.
pub(super) fn in_module_here(
    module: &Module,
    frames: &[u64],
    files: &Files,
    found: impl FnOnce(u64),
) -> Result<Vec<Vec<Function>>, String> {
    let path = file_of(module, files)?;
    // The call is before the address that it returns to.
    let offsets: Vec<u64> = frames.iter().map(|frame| frame.wrapping_sub(module.bias).wrapping_sub(1)).collect();
    let look_up = || {
        found(check(&path, files)?);
        let symbolizer = Symbolizer::builder()
            // It takes names of one letter for types of C++: they are demangled below.
            .enable_demangling(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .set_debug_dirs(Some(&files.debug_dirs));
        let symbolizer = symbolizer.build();
        let source = Source::Elf(Elf::new(&path));
        let symbolized =
            symbolizer.symbolize(&source, Input::VirtOffset(&offsets)).map_err(|error| format!("{error:#}"))?;
        Ok(symbolized.iter().map(|frame| frame.as_sym().map(functions).unwrap_or_default()).collect())
    };
    // What is in the file comes from anywhere.
    catch_unwind(AssertUnwindSafe(look_up)).unwrap_or_else(|_| Err("its debug information is damaged".to_owned()))
}

/// Returns the file that a module was loaded from, or its debug information.
pub(super) fn file_of(module: &Module, files: &Files) -> Result<PathBuf, String> {
    let relative = module.path.trim_start_matches('/');
    if module.path.is_empty() || relative.is_empty() {
        return Err("it has no path".to_owned());
    }
    let root = files.sysroot.as_deref().unwrap_or(Path::new("/"));
    let path = if module.path.starts_with('/') { root.join(relative) } else { PathBuf::from(&module.path) };
    let wanted = &module.build_id;
    if path.is_file() && (wanted.is_empty() || build_id(&path).as_ref() == Some(wanted)) {
        return Ok(path);
    }
    separate(module, files).ok_or_else(|| match path.is_file() {
        true => format!("{} is another version: its build id is not {wanted}", path.display()),
        false => format!("{} is not there", path.display()),
    })
}

/// Returns the separate file of a module's debug information.
pub(super) fn separate(module: &Module, files: &Files) -> Option<PathBuf> {
    let (first, rest) = module.build_id.split_at_checked(2)?;
    let name = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
    files.debug_dirs.iter().map(|folder| folder.join(&name)).find(|file| file.is_file())
}

fn functions(symbol: &Sym<'_>) -> Vec<Function> {
    let function = |name: &str, code: Option<&CodeInfo<'_>>| {
        let file = code.map(|code| cut(&code.to_path().display().to_string())).unwrap_or_default();
        let line = code.and_then(|code| code.line).map_or(0, u64::from);
        Function { name: demangled(name), file, line }
    };
    let inlined = symbol.inlined.iter().rev();
    let inlined = inlined.map(|inlined| function(&inlined.name, inlined.code_info.as_ref()));
    inlined.chain([function(&symbol.name, symbol.code_info.as_deref())]).collect()
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
