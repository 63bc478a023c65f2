//! The command that starts the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use hatf_record::SPOOL_VARIABLE;

use super::set_up::SetUp;
use super::signals;
use crate::record::options::RecordOptions;
use crate::record::program::{ADDRESS_OPTIONS, behind_another, has_address_sanitizer};

/// Builds the command that starts the program with the recorder.
pub(super) fn prepare(command: &[OsString], set_up: &SetUp, options: &RecordOptions<'_>) -> Command {
    let SetUp { file, library, files, .. } = set_up;
    let (program, arguments) = command.split_first().map_or((OsStr::new(""), command), |(p, a)| (p, a));
    let mut child = Command::new(program);
    child.args(arguments);
    child.env(SPOOL_VARIABLE, file.path());
    child.env(LIBRARY_VARIABLE, library.path());
    child.env("LD_PRELOAD", preload(library.path()));
    if options.python_objects && std::env::var_os(PYTHON_ALLOCATOR).is_none() {
        child.env(PYTHON_ALLOCATOR, "malloc");
    }
    if has_address_sanitizer(program) {
        let given = std::env::var_os(ADDRESS_OPTIONS);
        child.env(ADDRESS_OPTIONS, behind_another(given.as_deref()));
    }
    if options.output_to_error {
        #[expect(clippy::disallowed_methods, reason = "the program receives the path; nothing is printed")]
        child.stdout(std::io::stderr());
    }
    signals::restore_pipe_action(&mut child);
    files.restore_in(&mut child);
    child
}

/// The environment variable that selects Python's object allocator.
const PYTHON_ALLOCATOR: &str = "PYTHONMALLOC";

/// The environment variable that contains the path of the recorder's library.
const LIBRARY_VARIABLE: &str = "HATF_LIBRARY";

/// Returns the preload list. Our library comes first, before libraries that the user preloads, such as an allocator.
/// The library of an enclosing recording is removed, because it would record each call again.
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
