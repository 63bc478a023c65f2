//! What a program's file claims, looked at before a library reads it: how long its sections are, and which files it names.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use object::{CompressionFormat, Object, ObjectSection, ReadCache};

use super::find::Files;

/// Bytes that sections may have when they are uncompressed, besides [`TIMES`] those of their file.
const SECTIONS: u64 = 256 << 20;

/// Compilers' tables become three to eight times smaller.
const TIMES: u64 = 16;

/// Returns how many bytes the sections of a file of so many bytes may have.
pub(super) fn most(bytes: u64) -> u64 {
    bytes.saturating_mul(TIMES).saturating_add(SECTIONS)
}

/// Checks a file, and those that it names for its debug information. Returns the bytes of all of them.
///
/// # Errors
/// Why none of them may be read.
pub(super) fn check(path: &Path, files: &Files) -> Result<u64, String> {
    let mut bytes = one(path)?.bytes;
    let mut package = path.as_os_str().to_owned();
    package.push(".dwp");
    if let Some(package) = usable(Path::new(&package))? {
        bytes = bytes.saturating_add(one(&package)?.bytes);
    }
    let Claims { link, build_id, .. } = one(path)?;
    let linked = match link {
        Some(link) => follow(path, &link, Some(&build_id), files)?,
        None => None,
    };
    let claims = match &linked {
        Some(linked) => one(linked)?,
        None => one(path)?,
    };
    if linked.is_some() {
        bytes = bytes.saturating_add(claims.bytes);
    }
    // The supplementary file that several share.
    if let Some((shared, build_id)) = claims.shared
        && let Some(shared) = follow(path, &shared, Some(&build_id), files)?
    {
        bytes = bytes.saturating_add(one(&shared)?.bytes);
    }
    Ok(bytes)
}

/// What a file says.
struct Claims {
    bytes: u64,
    build_id: Vec<u8>,
    /// The file that has its debug information.
    link: Option<OsString>,
    /// The file that has what the debug information of several has in common, and its build id.
    shared: Option<(OsString, Vec<u8>)>,
}

/// Reads what a file says; none of its sections claims more than it may have.
fn one(path: &Path) -> Result<Claims, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let bytes = file.metadata().map_err(|error| error.to_string())?.len();
    let cache = ReadCache::new(file);
    let file = object::File::parse(&cache).map_err(|error| error.to_string())?;
    let mut claimed = 0_u64;
    for section in file.sections() {
        let Ok(range) = section.compressed_file_range() else { continue };
        if range.format != CompressionFormat::None {
            claimed = claimed.saturating_add(range.uncompressed_size);
        }
        if claimed > most(bytes) {
            let name = section.name().unwrap_or("without a name");
            return Err(format!("section {name} claims {} bytes, too many for its file", range.uncompressed_size));
        }
    }
    let name = |name: &[u8]| OsStr::from_bytes(name).to_owned();
    let link = file.gnu_debuglink().ok().flatten().map(|(link, _)| name(link));
    let shared = file.gnu_debugaltlink().ok().flatten().map(|(link, id)| (name(link), id.to_vec()));
    // Version, whether this is the supplementary file, the name, and a checksum.
    let newer = || {
        let section = file.section_by_name(".debug_sup")?.data().ok()?;
        let text = section.get(3..)?;
        let end = text.iter().position(|byte| *byte == 0)?;
        (end > 0).then(|| (name(&text[..end]), Vec::new()))
    };
    let build_id = file.build_id().ok().flatten().map(<[u8]>::to_vec).unwrap_or_default();
    Ok(Claims { bytes, build_id, link, shared: shared.or_else(newer) })
}

/// Returns the file that a name in a program's file stands for, if there is one: in a folder of debug information, or in that of the
/// program.
///
/// # Errors
/// It is none to read, or lies outside of these folders.
fn follow(program: &Path, name: &OsStr, build_id: Option<&[u8]>, files: &Files) -> Result<Option<PathBuf>, String> {
    let program = program.canonicalize().map_err(|error| error.to_string())?;
    let folder = program.parent().unwrap_or(Path::new("/"));
    let folders = &files.debug_dirs;
    if let Some([first, rest @ ..]) = build_id.filter(|id| id.len() >= 8) {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let named = Path::new(".build-id").join(format!("{first:02x}")).join(format!("{rest}.debug"));
        for folder in folders {
            if let Some(found) = usable(&folder.join(&named))?.filter(|found| *found != program) {
                return Ok(Some(found));
            }
        }
    }
    // As blazesym looks: in each folder, beside the program, and where the program's folder is below each folder.
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let nested = folders.iter().flat_map(|root| below.ancestors().map(move |below| root.join(below)));
    let places = folders.iter().cloned().chain([folder.to_owned()]).chain(nested);
    for place in places {
        let Some(found) = usable(&place.join(name))? else { continue };
        if found == program {
            continue;
        }
        let lies_in = lexical(&found);
        let is_inside = folders.iter().chain([&folder.to_owned()]).any(|folder| lies_in.starts_with(lexical(folder)));
        if !is_inside {
            return Err(format!(
                "it names {} for its debug information, which lies in no folder of debug information",
                Path::new(name).display()
            ));
        }
        return Ok(Some(found));
    }
    Ok(None)
}

/// Returns a path if a file is there.
///
/// # Errors
/// It is a pipe, a device or such: opening it may wait for ever.
fn usable(path: &Path) -> Result<Option<PathBuf>, String> {
    match fs::metadata(path) {
        Ok(about) if about.is_file() => Ok(Some(path.to_owned())),
        Ok(_) => Err(format!("{} is not a file", path.display())),
        Err(_) => Ok(None),
    }
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
