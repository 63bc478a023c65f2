//! Searches for the files of images and of their debug information.
//!
//! A file that another file refers to is opened only if it is a regular file in a debug information directory or in the
//! directory of the image.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::panic::catch_unwind;
use std::path::{Component, Path, PathBuf};

use metatf_cli::ChildCommand;
use serde::{Deserialize, Serialize};

use super::answer::{Image, Missing};
use super::debuginfod::Debuginfod;
use super::elf::{Elf, Mapped, SharedId};

/// The locations in which to search for files.
#[derive(Clone, Debug)]
pub struct Files {
    /// Directories that contain files of the recorded machine at their paths, or separate debug information. They are
    /// searched before this machine's own directories.
    pub folders: Vec<PathBuf>,
    /// This machine's directories with separate debug information, by build ID (`.build-id/ab/cdef.debug`) or by name.
    pub debug_dirs: Vec<PathBuf>,
    /// The `perf-PID.map` of the process. By default, the file in `/tmp` is used if it exists and belongs to this user
    /// or root.
    pub perf_map: Option<PathBuf>,
    /// The program of child processes that symbolize by calling [`help`](super::help), or `None` to symbolize in this
    /// process. Files are untrusted: decoding a 1 MB file may use 1 GB of memory, and even a small file may take
    /// minutes. A child process has limits, and its failure does no harm.
    pub helper: Option<ChildCommand>,
    /// The debuginfod client, which fetches files from other machines.
    pub debuginfod: Option<Debuginfod>,
}

/// Files of an image that debuginfod returned.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Fetched {
    pub(super) image: Option<PathBuf>,
    pub(super) debug_information: Option<PathBuf>,
}

impl Default for Files {
    fn default() -> Self {
        let debug_dirs = ["/usr/lib/debug", "/lib/debug"].map(PathBuf::from).into();
        Self { folders: Vec::new(), debug_dirs, perf_map: None, helper: None, debuginfod: None }
    }
}

impl Files {
    /// Returns the possible locations on this machine of a path on the recorded machine. The last one is the same path.
    pub(super) fn on_this_machine(&self, path: &Path) -> Vec<PathBuf> {
        let relative = path.strip_prefix("/").ok();
        let below = self.folders.iter().filter_map(|folder| Some(folder.join(relative?)));
        below.chain([path.to_owned()]).collect()
    }

    /// Returns the directories with separate debug information.
    fn of_debug_information(&self) -> impl Iterator<Item = PathBuf> {
        let folders = self.folders.iter().flat_map(|folder| [folder.clone(), folder.join("usr/lib/debug")]);
        folders.chain(self.debug_dirs.iter().cloned())
    }

    /// Returns the possible paths of a file with this build ID.
    fn of_build_id(&self, id: &str) -> Vec<PathBuf> {
        match id.split_at_checked(2) {
            // A shorter build ID must be invalid.
            Some((first, rest)) if rest.len() >= 14 => {
                let name = Path::new(".build-id").join(first).join(format!("{rest}.debug"));
                self.of_debug_information().map(|folder| folder.join(&name)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the build ID of a program or shared object in hexadecimal digits. Returns `None` if the file has no build ID
/// or is of another kind.
#[must_use]
pub fn build_id(path: &Path) -> Option<String> {
    build_id_of(path).ok().filter(|id| !id.is_empty())
}

/// Returns the build ID of a program or shared object. Returns an empty string if the file has no build ID or is of
/// another kind.
///
/// # Errors
/// The file cannot be read.
fn build_id_of(path: &Path) -> Result<String, String> {
    let read = || {
        let file = Mapped::open(path)?;
        Ok(Elf::parse(&file).map_or_else(|_| String::new(), |elf| hexadecimal(elf.build_id())))
    };
    catch_unwind(read).unwrap_or_else(|_| Err(format!("{} is corrupt", path.display())))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file that may belong to an image.
pub(super) struct Candidate {
    path: PathBuf,
    /// The required build ID, or `None` if the path is sufficient.
    build_id: Option<String>,
}

/// Returns the files from which an image may have been loaded, and those that may contain its debug information. Does
/// not read the files.
///
/// # Errors
/// No such file exists.
pub(super) fn candidates_of(image: &Image, files: &Files, fetched: &Fetched) -> Result<Vec<Candidate>, Missing> {
    let wanted = &image.build_id;
    if image.path.trim_start_matches('/').is_empty() {
        return Err(Missing::File("it has no path".to_owned()));
    }
    let mut own = files.on_this_machine(Path::new(&image.path));
    if wanted.is_empty() && own.len() > 1 {
        // Without a build ID, nothing tells whether this machine's file is that of the recorded machine.
        own.pop();
    }
    let own: Vec<_> = own.into_iter().map(|path| (is_file(&path), path)).collect();
    let wanted = (!wanted.is_empty()).then(|| wanted.clone());
    let separate = wanted.iter().flat_map(|id| files.of_build_id(id)).find(|path| is_file(path) == Ok(true));
    let fetched = fetched.image.clone().filter(|_| separate.is_none());
    let is_there = own.iter().filter(|(is_file, _)| *is_file == Ok(true));
    let is_it = |path: PathBuf| Candidate { path, build_id: wanted.clone() };
    let mut candidates: Vec<_> = is_there.map(|(_, path)| is_it(path.clone())).collect();
    candidates.extend(separate.map(|path| Candidate { path, build_id: None }));
    candidates.extend(fetched.map(is_it));
    match own.into_iter().next_back() {
        _ if !candidates.is_empty() => Ok(candidates),
        Some((Err(why), _)) => Err(Missing::Image(why)),
        Some((Ok(_), own)) if own.exists() => Err(Missing::File(format!("{} is not a file", own.display()))),
        own => {
            let own = own.map_or_else(|| image.path.clone(), |(_, own)| own.display().to_string());
            Err(Missing::File(format!("{own} does not exist")))
        }
    }
}

/// Returns whether a file exists.
///
/// # Errors
/// The system could not determine this.
fn is_file(path: &Path) -> Result<bool, String> {
    match path.metadata() {
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Opens the file from which an image was loaded, or else the file with its debug information.
///
/// # Errors
/// The reason that no file can be used.
pub(super) fn open_image(image: &Image, files: &Files, fetched: &Fetched) -> Result<Mapped, Missing> {
    let mut missing = None;
    for Candidate { path, build_id } in candidates_of(image, files, fetched)? {
        let id = build_id.as_ref().map_or(Ok(String::new()), |_| build_id_of(&path));
        let why = match (build_id, id) {
            (Some(wanted), Ok(id)) if id != wanted => {
                Missing::File(format!("{} is a different version: its build ID is not {wanted}", path.display()))
            }
            (_, Err(why)) => Missing::Image(why),
            (_, Ok(_)) => match Mapped::open(&path) {
                Ok(file) => return Ok(file),
                Err(why) => Missing::Image(why),
            },
        };
        missing.get_or_insert(why);
    }
    Err(missing.unwrap_or_else(|| Missing::File(format!("{} does not exist", image.path))))
}

/// Opens the separate debug information file of an image, unless the image itself contains debug information. Also
/// returns the reason if an existing file is not used.
///
/// # Errors
/// A file that the image refers to could not be opened.
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
            // Computing the checksum reads the entire file and takes a while.
            let same_id = !id.is_empty() && debug.build_id() == id;
            same_id || named.as_ref().is_some_and(|(_, checksum)| debug.checksum() == *checksum)
        });
        match is_it {
            Ok(true) => return Ok((Some(file), None)),
            Ok(false) => unused = Some(format!("{} is debug information for a different build", path.display())),
            Err(why) => return Err(format!("{}: {why}", path.display())),
        }
    }
    Ok((None, unused))
}

/// Opens the supplementary debug file (`.gnu_debugaltlink`).
///
/// # Errors
/// The file could not be opened.
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

/// Opens the package of split debug information, which is next to the program or its separate debug information file.
///
/// # Errors
/// The package could not be opened.
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

/// Returns the possible paths of a file with this build ID or with the name by which `elf` refers to it, in GDB's
/// order.
fn candidates(elf: &Elf<'_>, build_id: &str, name: Option<&OsStr>, files: &Files) -> Vec<PathBuf> {
    let own = elf.path.canonicalize().unwrap_or_else(|_| elf.path.to_owned());
    let folder = own.parent().unwrap_or(Path::new("/"));
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let named = name.into_iter().flat_map(|name| {
        let nested = files.of_debug_information();
        let nested = nested.flat_map(|root| below.ancestors().map(move |below| root.join(below)));
        let folders = [folder.to_owned(), folder.join(".debug")].into_iter().chain(nested);
        folders.map(move |folder| folder.join(name))
    });
    files.of_build_id(build_id).into_iter().chain(named).filter(|path| *path != own).collect()
}

/// Opens a file that `elf` refers to, if it exists.
///
/// # Errors
/// The file is not a readable regular file, or it is outside the debug information directories and the directory of
/// `elf`.
fn usable(path: &Path, elf: &Elf<'_>, files: &Files) -> Result<Option<Mapped>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let own = elf.path.canonicalize().map_err(|error| error.to_string())?;
    let mut folders = own.parent().map(Path::to_owned).into_iter().chain(files.of_debug_information());
    let lies_in = lexical(path);
    if !folders.any(|folder| lies_in.starts_with(lexical(&folder))) {
        let path = path.display();
        return Err(format!(
            "it refers to {path} for its debug information, but this file is outside the directories for debug \
             information; to use it, add its directory with --symbols"
        ));
    }
    Mapped::open(path).map(Some)
}

/// Removes `.` and `..` from a path lexically. Symbolic links need no resolution, because the user controls the debug
/// information directories.
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
