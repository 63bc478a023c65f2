//! Where the files of images and of their debug information lie.
//!
//! A file that another names is opened only if it is a file, and lies in a folder of debug information or in that of the image.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::panic::catch_unwind;
use std::path::{Component, Path, PathBuf};

use metatf_cli::ChildCommand;
use serde::{Deserialize, Serialize};

use super::answer::{Image, Missing};
use super::debuginfod::Debuginfod;
use super::elf::{Elf, Mapped, SharedId};

/// Where files are looked for.
#[derive(Clone, Debug)]
pub struct Files {
    /// A folder in which the recorded machine's files lie, instead of `/`.
    pub sysroot: Option<PathBuf>,
    /// Folders of separate debug information, by build id (`.build-id/ab/cdef.debug`) or name.
    pub debug_dirs: Vec<PathBuf>,
    /// The `perf-PID.map` of the process; otherwise that in `/tmp` is taken, if there is one and it is this user's or root's.
    pub perf_map: Option<PathBuf>,
    /// The program of child processes that look up by [`help`](super::help); `None`: this process does.
    /// Files come from anywhere: one of 1 MB may take 1 GB of memory, and a small one minutes. A child has limits, and fails without harm.
    pub helper: Option<ChildCommand>,
    /// The client of debuginfod, which has files of other machines.
    pub debuginfod: Option<Debuginfod>,
}

/// Files of an image that debuginfod gave.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fetched {
    pub(super) image: Option<PathBuf>,
    pub(super) debug_information: Option<PathBuf>,
}

impl Default for Files {
    fn default() -> Self {
        let debug_dirs = ["/usr/lib/debug", "/lib/debug"].map(PathBuf::from).into();
        Self { sysroot: None, debug_dirs, perf_map: None, helper: None, debuginfod: None }
    }
}

impl Files {
    /// Returns where a path of the recorded machine is on this one.
    pub(super) fn on_this_machine(&self, path: &Path) -> PathBuf {
        match (&self.sysroot, path.strip_prefix("/")) {
            (Some(root), Ok(relative)) => root.join(relative),
            _ => path.to_owned(),
        }
    }

    /// Returns the paths at which a file of a build id may lie.
    fn of_build_id(&self, id: &str) -> Vec<PathBuf> {
        match id.split_at_checked(2) {
            // A shorter one is a mistake.
            Some((first, rest)) if rest.len() >= 14 => {
                let name = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
                self.debug_dirs.iter().map(|folder| folder.join(&name)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the build id of a program or shared object in hexadecimal digits; `None`: it has none, or is not such a file.
#[must_use]
pub fn build_id(path: &Path) -> Option<String> {
    build_id_of(path).ok().filter(|id| !id.is_empty())
}

/// Returns the build id of a program or shared object; empty: it has none, or is not such a file.
///
/// # Errors
/// It cannot be read.
fn build_id_of(path: &Path) -> Result<String, String> {
    let read = || {
        let file = Mapped::open(path)?;
        Ok(Elf::parse(&file).map_or_else(|_| String::new(), |elf| hexadecimal(elf.build_id())))
    };
    catch_unwind(read).unwrap_or_else(|_| Err(format!("{} is damaged", path.display())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file that may be an image's.
pub(super) struct Candidate {
    path: PathBuf,
    /// The build id that it must have; `None`: the path is enough.
    build_id: Option<String>,
}

/// Returns the files that may be the one that an image was loaded from, or that of its debug information. Nothing is read.
///
/// # Errors
/// The file does not exist.
pub(super) fn candidates_of(image: &Image, files: &Files, fetched: &Fetched) -> Result<Vec<Candidate>, Missing> {
    let wanted = &image.build_id;
    if image.path.trim_start_matches('/').is_empty() {
        return Err(Missing::File("it has no path".to_owned()));
    }
    let own = files.on_this_machine(Path::new(&image.path));
    let is_there = is_file(&own);
    let wanted = (!wanted.is_empty()).then(|| wanted.clone());
    let separate = wanted.iter().flat_map(|id| files.of_build_id(id)).find(|path| is_file(path) == Ok(true));
    let fetched = fetched.image.clone().filter(|_| separate.is_none());
    let is_own_there = is_there == Ok(true);
    let candidates = is_own_there.then(|| Candidate { path: own.clone(), build_id: wanted.clone() }).into_iter();
    let candidates = candidates.chain(separate.map(|path| Candidate { path, build_id: None }));
    let candidates: Vec<_> = candidates.chain(fetched.map(|path| Candidate { path, build_id: wanted })).collect();
    match is_there {
        _ if !candidates.is_empty() => Ok(candidates),
        Err(why) => Err(Missing::Image(why)),
        Ok(_) if own.exists() => Err(Missing::File(format!("{} is not a file", own.display()))),
        Ok(_) => Err(Missing::File(format!("{} is not there", own.display()))),
    }
}

/// Returns whether there is a file.
///
/// # Errors
/// The system does not say.
fn is_file(path: &Path) -> Result<bool, String> {
    match path.metadata() {
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Opens the file that an image was loaded from, or that of its debug information.
///
/// # Errors
/// The reason for a missing file.
pub(super) fn open_image(image: &Image, files: &Files, fetched: &Fetched) -> Result<Mapped, Missing> {
    let mut missing = None;
    for Candidate { path, build_id } in candidates_of(image, files, fetched)? {
        let id = build_id.as_ref().map_or(Ok(String::new()), |_| build_id_of(&path));
        let why = match (build_id, id) {
            (Some(wanted), Ok(id)) if id != wanted => {
                Missing::File(format!("{} is another version: its build id is not {wanted}", path.display()))
            }
            (_, Err(why)) => Missing::Image(why),
            (_, Ok(_)) => match Mapped::open(&path) {
                Ok(file) => return Ok(file),
                Err(why) => Missing::Image(why),
            },
        };
        missing.get_or_insert(why);
    }
    Err(missing.unwrap_or_else(|| Missing::File(format!("{} is not there", image.path))))
}

/// Opens the separate file of an image's debug information, if it has none itself. Returns also why one that is there is not used.
///
/// # Errors
/// What the image names may not be opened.
pub(super) fn open_debug(
    own: &Elf<'_>,
    files: &Files,
    fetched: &Fetched,
) -> Result<(Option<Mapped>, Option<String>), String> {
    if own.has_debug_information() {
        return Ok((None, None));
    }
    let id = own.build_id();
    let named = own.debug_link();
    let link = named.as_ref().map(|(name, _)| &**name);
    let mut unused = None;
    for path in fetched.debug_information.clone().into_iter().chain(candidates(own, &hexadecimal(id), link, files)) {
        let is_fetched = fetched.debug_information.as_ref() == Some(&path);
        let file = if is_fetched { Some(Mapped::open(&path)?) } else { usable(&path, own, files)? };
        let Some(file) = file else { continue };
        let is_it = Elf::parse(&file).map(|debug| {
            // Reading all of a file for its checksum takes a while.
            let same_id = !id.is_empty() && debug.build_id() == id;
            same_id || named.as_ref().is_some_and(|(_, checksum)| debug.checksum() == *checksum)
        });
        match is_it {
            Ok(true) => return Ok((Some(file), None)),
            Ok(false) => unused = Some(format!("{} is of another version", path.display())),
            Err(why) => return Err(format!("{}: {why}", path.display())),
        }
    }
    Ok((None, unused))
}

/// Opens the file that has what the debug information of several has in common.
///
/// # Errors
/// What the file names may not be opened.
pub(super) fn open_shared(debug: &Elf<'_>, files: &Files) -> Result<Option<Mapped>, String> {
    let Some((name, id)) = debug.shared_link() else { return Ok(None) };
    let build_id = if let SharedId::BuildId(id) = id { hexadecimal(id) } else { String::new() };
    for path in candidates(debug, &build_id, Some(&name), files) {
        let Some(file) = usable(&path, debug, files)? else { continue };
        if Elf::parse(&file).map_err(|why| format!("{}: {why}", path.display()))?.is_shared(&id) {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Opens the package of debug information that was split off as the program was compiled: beside the program, or beside the separate
/// file of its debug information.
///
/// # Errors
/// It may not be opened.
pub(super) fn open_package(own: &Elf<'_>, debug: &Elf<'_>) -> Result<Option<Mapped>, String> {
    for elf in [own, debug] {
        let mut path = elf.path.as_os_str().to_owned();
        path.push(".dwp");
        if Path::new(&path).exists() {
            return Mapped::open(Path::new(&path)).map(Some);
        }
    }
    Ok(None)
}

/// Returns the paths at which a file of a build id, or one that an image names, may lie: as GDB looks for them.
fn candidates(elf: &Elf<'_>, build_id: &str, name: Option<&OsStr>, files: &Files) -> Vec<PathBuf> {
    let own = elf.path.canonicalize().unwrap_or_else(|_| elf.path.to_owned());
    let folder = own.parent().unwrap_or(Path::new("/"));
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let named = name.into_iter().flat_map(|name| {
        let nested = files.debug_dirs.iter().flat_map(|root| below.ancestors().map(|below| root.join(below)));
        let folders = [folder.to_owned(), folder.join(".debug")].into_iter().chain(nested);
        folders.map(move |folder| folder.join(name))
    });
    files.of_build_id(build_id).into_iter().chain(named).filter(|path| *path != own).collect()
}

/// Opens a file that `elf` names, if it is there.
///
/// # Errors
/// It is not a file to read, or lies outside of the folders of debug information and that of `elf`.
fn usable(path: &Path, elf: &Elf<'_>, files: &Files) -> Result<Option<Mapped>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let own = elf.path.canonicalize().map_err(|error| error.to_string())?;
    let mut folders = own.parent().into_iter().chain(files.debug_dirs.iter().map(PathBuf::as_path));
    let lies_in = lexical(path);
    if !folders.any(|folder| lies_in.starts_with(lexical(folder))) {
        let path = path.display();
        return Err(format!("it names {path} for its debug information, which lies in no folder of debug information"));
    }
    Mapped::open(path).map(Some)
}

/// Returns a path without `.` and `..`, as its text says: links in folders of debug information are the user's.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}
