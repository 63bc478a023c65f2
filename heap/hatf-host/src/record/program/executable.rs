//! The file of a program. Searches for the file as the system would, and checks whether the recorder is linked into it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// Maximum number of nested script interpreters, which is also the kernel's limit.
const SCRIPTS: usize = 4;
/// Maximum length of a script's first line that the kernel reads.
const FIRST_LINE: usize = 256;

/// Opens a program, located in the same way as by the system. For a script, opens its interpreter.
pub(super) fn open(program: &OsStr) -> Option<(PathBuf, File)> {
    let mut path = find(program)?;
    for _ in 0..=SCRIPTS {
        let file = File::open(&path).ok()?;
        let mut line = Vec::new();
        (&file).take(FIRST_LINE as u64).read_to_end(&mut line).ok()?;
        let Some(line) = line.strip_prefix(b"#!") else { return Some((path, file)) };
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let interpreter = line.split(u8::is_ascii_whitespace).find(|word| !word.is_empty())?;
        path = PathBuf::from(OsString::from_vec(interpreter.to_vec()));
    }
    None
}

/// Finds a program by its path, or by its name in the directories of `PATH`.
pub(super) fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(program.into());
    }
    let runs =
        |path: &PathBuf| path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.mode() & 0o111 != 0);
    std::env::split_paths(&std::env::var_os("PATH")?).map(|folder| folder.join(program)).find(runs)
}

/// Returns whether the recorder of the crate `hatf-record` is linked into a program. The recorder is detected by the
/// name of its environment variable.
pub(super) fn has_recorder(file: &File) -> bool {
    let name = hatf_record::SPOOL_VARIABLE.as_bytes();
    // SAFETY: the file is only read. A concurrent writer can only change the result.
    let Ok(bytes) = (unsafe { memmap2::Mmap::map(file) }) else { return false };
    let is_name = |at: &usize| bytes.get(*at..).is_some_and(|rest| rest.starts_with(name));
    let first = name.first().copied().unwrap_or_default();
    bytes.iter().enumerate().filter(|(_, byte)| **byte == first).map(|(at, _)| at).any(|at| is_name(&at))
}
