//! Symbolizes frames with the files of their modules.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism};

use metatf_cli::output_of;

use super::answer::{Answer, Frame, Image, Missing};
use super::debuginfod::is_debuginfod_asked;
use super::files::Files;
use super::names::cut;
use super::perf_map::PerfMap;
use super::symbolizer::Symbolizer;
use super::{Place, Wanted};
use hatf_trace::stacks::{Function, Module};

/// The reason why frames of a module have no names or no lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path of the module.
    pub path: String,
    /// The number of frames without names.
    pub frames: usize,
    /// The reason.
    pub why: String,
    /// Whether the problem concerns a process's map of generated functions rather than a module.
    pub is_map: bool,
    /// Whether symbolization failed because an existing file could not be read or decoded.
    pub is_failure: bool,
    /// Whether the only reason is that debug information is missing.
    pub needs_debug_information: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.frames {
            0 => write!(f, "{}: {}", self.path, self.why),
            1 => write!(f, "{}: a frame has no name: {}", self.path, self.why),
            frames => write!(f, "{}: {frames} frames have no names: {}", self.path, self.why),
        }
    }
}

impl Problem {
    /// Returns advice on how to obtain missing debug information. The package manager of this machine is asked for the
    /// package of the module.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        if !self.needs_debug_information {
            return None;
        }
        // Packages do not install files in /usr/local.
        let is_installed = ["/usr/", "/lib", "/opt/"].iter().any(|folder| self.path.starts_with(folder));
        if !is_installed || self.path.starts_with("/usr/local/") {
            return Some("compile it with -g and do not strip it".to_owned());
        }
        let or = if is_debuginfod_asked() { "" } else { ", or set DEBUGINFOD_URLS" };
        let what = match package(&self.path) {
            Some(package) => format!("its debug symbols, usually in the package {package}"),
            None => "its debug symbols".to_owned(),
        };
        Some(format!("install {what}{or}"))
    }
}

/// Returns the name of the package that contains the debug symbols of a file, according to the package manager.
fn package(path: &str) -> Option<String> {
    // In a merged file system, the package manager may know only one of the paths.
    let other = path.strip_prefix("/usr").map_or_else(|| format!("/usr{path}"), str::to_owned);
    // The path is a pattern for dpkg.
    if path.contains(['*', '?', '[', '\\']) {
        return None;
    }
    let ask = |program: &str, arguments: &[&str], paths: &[&str]| {
        let output = output_of(Command::new(program).args(arguments).args(paths).stderr(Stdio::null())).ok()?;
        Some((output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    let paths = [path, &other];
    // dpkg-query takes long to start, and answers for each path that it knows.
    let of_dpkg = ask("/usr/bin/dpkg-query", &["-S", "--"], &paths).and_then(|(_, text)| {
        let (package, _) = text.lines().find(|line| !line.starts_with("diversion "))?.split_once(':')?;
        Some(if package == "libc6" { "libc6-dbg".to_owned() } else { format!("{package}-dbgsym") })
    });
    let of_rpm = |path: &&str| {
        let (is_known, text) = ask("/usr/bin/rpm", &["-qf", "--qf", "%{NAME}-debuginfo\n", "--"], &[path])?;
        text.lines().next().filter(|_| is_known).map(str::to_owned)
    };
    let name = of_dpkg.or_else(|| paths.iter().find_map(of_rpm))?;
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte)).then_some(name)
}

/// The functions of frames.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub(super) symbols: BTreeMap<Place, BTreeMap<u64, Vec<Function>>>,
    /// Problems of modules.
    pub problems: Vec<Problem>,
    /// The number of frames with a function.
    pub named: usize,
}

/// Symbolizes frames. An image that was loaded several times is read once.
#[must_use]
pub fn find(wanted: &Wanted, files: &Files) -> Found {
    let (mut found, mut questions, mut asked) = (Found::default(), Vec::<Question>::new(), Vec::new());
    let modules: HashMap<usize, &Module> = wanted.loaded.iter().map(|module| (module.number, module)).collect();
    let mut numbers = HashMap::<Image, usize>::new();
    for (place, frames) in &wanted.frames {
        let frames: Vec<u64> = frames.iter().copied().collect();
        match *place {
            Place::Module(number) => {
                let Some(module) = modules.get(&number) else { continue };
                let image = Image { path: module.path.clone(), build_id: module.build_id.clone() };
                let number = *numbers.entry(image.clone()).or_insert_with(|| {
                    questions.push(Question { image, addresses: Vec::new() });
                    questions.len() - 1
                });
                let Some(question) = questions.get_mut(number) else { continue };
                let from = question.addresses.len();
                question.addresses.extend(frames.iter().map(|frame| frame.wrapping_sub(module.bias)));
                asked.push((*place, frames, number, from));
            }
            Place::Image(image) => match in_perf_map(wanted.processes.get(&image).copied(), &frames, files) {
                None => {}
                Some(Ok(functions)) => found.add(*place, frames, functions),
                Some(Err(problem)) => found.problems.push(problem),
            },
        }
    }
    let mut answers: Vec<Vec<Vec<Function>>> = Vec::new();
    for (functions, problem) in in_images(&questions, files) {
        found.problems.extend(problem);
        answers.push(functions);
    }
    for (place, frames, number, from) in asked {
        let functions = answers.get_mut(number).and_then(|answer| answer.get_mut(from..from + frames.len()));
        let functions = functions.into_iter().flatten().map(std::mem::take).collect();
        found.add(place, frames, functions);
    }
    found
}

impl Found {
    fn add(&mut self, place: Place, frames: Vec<u64>, functions: Vec<Vec<Function>>) {
        let pairs = frames.into_iter().zip(functions).filter(|(_, functions)| !functions.is_empty());
        let named: BTreeMap<_, _> = pairs.collect();
        self.named += named.len();
        if !named.is_empty() {
            self.symbols.insert(place, named);
        }
    }
}

/// Addresses to look up in the file of an image.
pub(super) struct Question {
    pub(super) image: Image,
    pub(super) addresses: Vec<u64>,
}

/// Maximum number of images to read at a time. Each may require as much memory as its debug information.
const AT_ONCE: usize = 4;

/// The functions of each address, and the problem, if any.
pub(super) type Functions = (Vec<Vec<Function>>, Option<Problem>);

/// Symbolizes addresses in the files of several images in parallel. With a helper, each thread uses one child process
/// for all of its images.
pub(super) fn in_images(questions: &[Question], files: &Files) -> Vec<Functions> {
    let answers: Vec<OnceLock<Functions>> = questions.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let mut symbolizer = Symbolizer::new(files.clone());
        while let Some((question, answer)) = {
            let number = next.fetch_add(1, Ordering::Relaxed);
            questions.get(number).zip(answers.get(number))
        } {
            let _ = answer.set(in_image(question, &mut symbolizer));
        }
    };
    // Without a helper, the files are decoded in this process's memory, so only one at a time.
    let threads = if files.helper.is_some() { available_parallelism().map_or(1, usize::from).min(AT_ONCE) } else { 1 };
    std::thread::scope(|scope| {
        // If the system cannot start a thread, this thread does all the work.
        (1..threads.min(questions.len())).for_each(|_| drop(Builder::new().spawn_scoped(scope, work)));
        work();
    });
    answers.into_iter().map(|answer| answer.into_inner().unwrap_or_default()).collect()
}

/// Symbolizes addresses in the file of an image.
fn in_image(Question { image, addresses }: &Question, symbolizer: &mut Symbolizer) -> Functions {
    let Answer { frames, missing } = symbolizer.symbolize(image, addresses);
    let functions: Vec<Vec<Function>> = frames.into_iter().map(functions).collect();
    let nameless = functions.iter().filter(|functions| functions.is_empty()).count();
    let problem = |missing: Missing| Problem {
        path: image.path.clone(),
        frames: nameless,
        is_failure: matches!(missing, Missing::Image(_)),
        needs_debug_information: missing == Missing::DebugInformation,
        why: missing.to_string(),
        is_map: false,
    };
    let is_told = |missing: &Missing| nameless > 0 || *missing != Missing::DebugInformation;
    (functions, missing.filter(is_told).map(problem))
}

/// Returns the functions of frames that have names.
pub(crate) fn functions(frames: Vec<Frame>) -> Vec<Function> {
    let function = |Frame { function: name, file, line, .. }| Function { name, file, line: line.into() };
    frames.into_iter().filter(|frame| !frame.function.is_empty()).map(function).collect()
}

/// Symbolizes frames with the map that the process's run-time compiler wrote. Returns `None` if there is no map.
pub(super) fn in_perf_map(
    process: Option<u64>,
    frames: &[u64],
    files: &Files,
) -> Option<Result<Vec<Vec<Function>>, Problem>> {
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
    let problem = |why: io::Error| Problem {
        path: path.display().to_string(),
        frames: frames.len(),
        why: why.to_string(),
        is_map: true,
        is_failure: files.perf_map.is_some(),
        needs_debug_information: false,
    };
    Some(map.map(named).map_err(problem))
}

/// Opens a file in a world-writable directory. The file must belong to this user or root and must not be a symbolic
/// link.
fn of_this_user(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // `O_NONBLOCK` avoids waiting for the writer of a pipe.
    let file = options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let about = file.metadata()?;
    // SAFETY: the call only reads a number.
    let user = unsafe { libc::geteuid() };
    if !about.is_file() || (about.uid() != user && about.uid() != 0) {
        return Err(io::Error::other(
            "it is not a regular file of this user or root; to use it anyway, pass it to --symbols",
        ));
    }
    Ok(file)
}
