//! Where the commands open traces: how a file is read, and what is said of it at its end.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use metatf::Result;
use metatf::container::{Class, MAGIC, Order, Reader, Warning};

use crate::print_message;

/// Whether a trace was read whose records are not all there.
static LOST: AtomicBool = AtomicBool::new(false);

/// What was said: a trace that is read twice says it once.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Opens a trace; `-` is standard input. A file that another user could cut while it is mapped, which would end the command by a signal,
/// is read chunk by chunk.
///
/// # Errors
/// What [`Reader::open`] reports.
pub fn open_trace(path: &Path, salvage: bool) -> Result<Reader<'static>> {
    if path == Path::new("-") {
        let input = io::stdin();
        return if salvage { Reader::salvage_read(input) } else { Reader::from_read(input) };
    }
    match (is_mapped(path), salvage) {
        (true, false) => Reader::open(path),
        (true, true) => Reader::salvage(path),
        (false, false) => Reader::read(path),
        (false, true) => Reader::salvage_read(std::fs::File::open(path)?),
    }
}

/// Opens a file without a header (spec 5.4), as [`open_trace`] does.
///
/// # Errors
/// Reading failed.
pub fn open_raw_trace(path: &Path, class: Class, order: Order, section: u8) -> Result<Reader<'static>> {
    if path == Path::new("-") {
        return Reader::raw_from_read(io::stdin(), class, order, section);
    }
    if is_mapped(path) {
        return Reader::open_raw(path, class, order, section);
    }
    Reader::raw_from_read(std::fs::File::open(path)?, class, order, section)
}

/// What a file is, by its first bytes.
pub enum Opened {
    /// A trace.
    Trace(Reader<'static>),
    /// A file without a header: the caller says what of it is of which section.
    Raw(Reader<'static>),
}

/// Bytes of a file that have to tell what it is.
const HEAD: usize = 64 << 10;

/// Reads as many bytes as tell whether a file is one without a header that is known, and gives whether it is. `is_raw` says that of the
/// first bytes, or `None` where they are too few.
///
/// # Errors
/// Reading failed.
pub fn read_head(input: &mut dyn io::Read, is_raw: &dyn Fn(&[u8]) -> Option<bool>) -> io::Result<(Vec<u8>, bool)> {
    // A trace that is being written to a pipe is read as it comes.
    let (mut head, mut wanted) = (Vec::new(), MAGIC.len());
    loop {
        let before = head.len();
        (&mut *input).take((wanted - before) as u64).read_to_end(&mut head)?;
        if head == MAGIC {
            return Ok((head, false));
        }
        match is_raw(&head) {
            Some(is_raw) => return Ok((head, is_raw)),
            None if head.len() < wanted || wanted >= HEAD => return Ok((head, false)),
            None => wanted *= 2,
        }
    }
}

/// Opens a trace as [`open_trace`] does, or a file that does not begin as one, and whose first bytes `is_raw` knows.
///
/// # Errors
/// What [`Reader::open`] reports of a trace, or of a file that is neither; reading failed.
pub fn open_any(path: &Path, salvage: bool, is_raw: &dyn Fn(&[u8]) -> Option<bool>) -> Result<Opened> {
    let file = if path == Path::new("-") { None } else { Some(std::fs::File::open(path)?) };
    let is_regular = file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()));
    let mut input: Box<dyn io::Read + Send> = match file {
        Some(file) => Box::new(file),
        None => Box::new(io::stdin()),
    };
    let (head, is_raw) = read_head(&mut input, is_raw)?;
    if is_regular {
        return if is_raw {
            open_raw_trace(path, Class::Bits64, Order::Little, 0).map(Opened::Raw)
        } else {
            open_trace(path, salvage).map(Opened::Trace)
        };
    }
    let input = io::Cursor::new(head).chain(input);
    match (is_raw, salvage) {
        (true, _) => Reader::raw_from_read(input, Class::Bits64, Order::Little, 0).map(Opened::Raw),
        (false, false) => Reader::from_read(input).map(Opened::Trace),
        (false, true) => Reader::salvage_read(input).map(Opened::Trace),
    }
}

/// Has what is odd about a trace printed once it is known, by its name. Missing records make the command [end with 1](lost_records).
pub fn watch_trace(reader: &mut Reader<'_>, command: &'static str, name: &str) {
    let name = name.to_owned();
    reader.on_warning(move |warning| warn(command, &name, warning));
}

fn warn(command: &str, name: &str, warning: Warning) {
    let is_loss = warning.is_loss();
    if is_loss {
        LOST.store(true, Ordering::Relaxed);
    }
    let message = format!("{name}: {}{warning}", if is_loss { "" } else { "warning: " });
    let is_new = SAID.lock().is_ok_and(|mut said| said.insert(message.clone()));
    if is_new {
        print_message(command, &message);
    }
}

/// Returns whether a trace was read whose records are not all there: a command that did its work ends with 1 then.
#[must_use]
pub fn lost_records() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Returns whether a file is mapped where it is opened: a plain one that no other user can cut.
#[must_use]
pub fn is_mapped(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && is_ours(&metadata))
}

/// Returns whether nobody but this user and root can write to a file. A group of the user's own counts as the user.
#[cfg(unix)]
fn is_ours(metadata: &Metadata) -> bool {
    use rustix::process::{getegid, geteuid};
    use std::os::unix::fs::MetadataExt as _;
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let mode = metadata.mode();
    matches!(metadata.uid(), owner if owner == user || owner == 0)
        && mode & 0o002 == 0
        && (mode & 0o020 == 0 || metadata.gid() == group)
}

#[cfg(not(unix))]
fn is_ours(_: &Metadata) -> bool {
    true
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_others_may_cut_is_not_mapped() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (mode, ours) in [(0o600, true), (0o644, true), (0o646, false), (0o666, false)] {
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(is_ours(&file.as_file().metadata().unwrap()), ours, "{mode:o}");
        }
    }
}
