//! The command that starts the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use hatf_record::SPOOL_VARIABLE;

use super::file_limit::FileLimit;
use super::shared_file::SharedFile;
use super::signals;
use crate::record::spool::SpoolFile;

/// Makes the command that starts the program with the recorder.
pub(super) fn prepare(command: &[OsString], file: &SpoolFile, library: &SharedFile, files: &FileLimit) -> Command {
    let (program, arguments) = command.split_first().map_or((OsStr::new(""), command), |(p, a)| (p, a));
    let mut child = Command::new(program);
    child.args(arguments);
    child.env(SPOOL_VARIABLE, file.path());
    child.env(LIBRARY_VARIABLE, library.path());
    child.env("LD_PRELOAD", preload(library.path()));
    signals::restore_actions(&mut child);
    files.restore_in(&mut child);
    child
}

/// The environment variable that holds the path of the recorder's library.
const LIBRARY_VARIABLE: &str = "HATF_LIBRARY";

/// Our library first: what the user preloads (an allocator, say) is then behind it. Not that of a recording that we are in:
/// it would record each call once more.
fn preload(library: &OsStr) -> OsString {
    let outer = std::env::var_os(LIBRARY_VARIABLE).unwrap_or_default();
    let theirs = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let theirs = theirs.as_bytes().split(|byte| b": ".contains(byte));
    let mut list = library.to_owned();
    for name in theirs.filter(|name| !name.is_empty() && *name != outer.as_bytes()) {
        list.push(":");
        list.push(OsStr::from_bytes(name));
    }
    list
}
