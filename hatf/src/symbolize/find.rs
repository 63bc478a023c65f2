//! Looking frames up in the files of their modules.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolizer};

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
    /// The `perf-PID.map` of the process; otherwise that in `/tmp` is taken, if there is one.
    pub perf_map: Option<PathBuf>,
}

impl Default for Files {
    fn default() -> Self {
        let debug_dirs = ["/usr/lib/debug", "/lib/debug"].map(PathBuf::from).into();
        Self { sysroot: None, debug_dirs, perf_map: None }
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
    let path = file_of(module, files)?;
    // The call is before the address that it returns to.
    let offsets: Vec<u64> = frames.iter().map(|frame| frame.wrapping_sub(module.bias).wrapping_sub(1)).collect();
    let look_up = || {
        let symbolizer = Symbolizer::builder()
            // It takes names of one letter for types of C++: they are demangled below.
            .enable_demangling(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .set_debug_dirs(Some(&files.debug_dirs));
        let symbolizer = symbolizer.build();
        let source = Source::Elf(Elf::new(&path));
        let symbolized =
            symbolizer.symbolize(&source, Input::VirtOffset(&offsets)).map_err(|error| error.to_string())?;
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

/// Returns a name as its language has it: C++ and Rust mangle theirs. Of C++ without parameters and the type that it returns.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten();
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let cpp = cpp.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    cpp.map_or_else(|| name.to_owned(), |name| shortened(&name))
}

/// Shortens names of the C++ library as people write them: `std::string`, and no allocator that is the default.
fn shortened(name: &str) -> String {
    let name = name.replace("std::__cxx11::", "std::");
    let mut rest =
        &*name.replace("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
    let mut short = String::with_capacity(rest.len());
    while let Some((before, from)) = rest.split_once(", std::allocator<") {
        short.push_str(before);
        let Some(end) = end_of_arguments(from) else {
            short.push_str(", std::allocator<");
            rest = from;
            continue;
        };
        // `vector<int >` is `vector<int>`.
        rest = from
            .get(end..)
            .map_or("", |rest| rest.strip_prefix(' ').filter(|rest| rest.starts_with('>')).unwrap_or(rest));
    }
    short.push_str(rest);
    short
}

/// Returns where the angle bracket that stands before a text is closed, behind it.
fn end_of_arguments(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => open += 1,
            b'>' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

fn functions(symbol: &Sym<'_>) -> Vec<Function> {
    let function = |name: &str, code: Option<&CodeInfo<'_>>| {
        let file = code.map(|code| code.to_path().display().to_string()).unwrap_or_default();
        let line = code.and_then(|code| code.line).map_or(0, u64::from);
        Function { name: demangled(name), file, line }
    };
    let inlined = symbol.inlined.iter().rev();
    let inlined = inlined.map(|inlined| function(&inlined.name, inlined.code_info.as_ref()));
    inlined.chain([function(&symbol.name, symbol.code_info.as_deref())]).collect()
}

/// Looks frames up in the map that the process's compiler wrote; `None` if there is no map.
fn in_perf_map(process: Option<u64>, frames: &[u64], files: &Files) -> Option<Result<Vec<Vec<Function>>, Problem>> {
    let path = files.perf_map.clone();
    let path =
        path.or_else(|| Some(PathBuf::from(format!("/tmp/perf-{}.map", process?))).filter(|path| path.is_file()))?;
    let map = File::open(&path).and_then(PerfMap::read);
    let function = |name: &str| Function { name: name.to_owned(), file: String::new(), line: 0 };
    let named =
        |map: PerfMap| frames.iter().map(|frame| map.find(*frame).map(function).into_iter().collect()).collect();
    let problem =
        |why: std::io::Error| Problem { path: path.display().to_string(), frames: frames.len(), why: why.to_string() };
    Some(map.map(named).map_err(problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages() {
        let names = ["a", "main", "_ZN3foo3barEv", "_ZN4core3fmt5write17h0123456789abcdefE", "_RNvC1a1f", "_Z", ""];
        let wanted = ["a", "main", "foo::bar", "core::fmt::write", "a::f", "_Z", ""];
        assert_eq!(names.map(demangled), wanted);
    }

    #[test]
    fn names_of_the_cpp_library() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        for (long, short) in [
            (format!("{string}::_M_create"), "std::string::_M_create"),
            (
                format!("std::deque<{string}, std::allocator<{string} > >::push_back"),
                "std::deque<std::string>::push_back",
            ),
            ("std::vector<int, std::allocator<int> >::at".to_owned(), "std::vector<int>::at"),
            (
                "f<std::vector<std::set<A<1>, std::less<A<1> >, std::allocator<A<1> > >, std::allocator<B> >, int>"
                    .to_owned(),
                "f<std::vector<std::set<A<1>, std::less<A<1> >>>, int>",
            ),
            ("operator new".to_owned(), "operator new"),
            ("odd<int, std::allocator<int".to_owned(), "odd<int, std::allocator<int"),
            ("x>, std::allocator<>>".to_owned(), "x>>"),
        ] {
            assert_eq!(shortened(&long), short);
        }
    }
}
