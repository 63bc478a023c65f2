//! Recording without `hatf record`: the process creates the directory of its spool itself. No reader exists while the
//! process runs; `hatf recover` creates the trace afterwards.
//!
//! A process without `hatf record` finds the directory in the variable `HATF_OUTPUT`, or the program specifies it.
//! Programs started by the process find the directory the same way, and are recorded inside of it, as with `hatf
//! record`.
//!
//! Nobody makes chunks ready, so threads take chunks without memory and allocate the memory themselves.

use core::ffi::{CStr, c_int};
use core::sync::atomic::Ordering;

use super::origin;
use crate::clock::{Clock, nanoseconds};
use crate::layout::CHUNK_BYTES;
use crate::names;
use crate::preload::platform::path::Path;
use crate::preload::platform::{files, process};
use crate::preload::spool::create::{self, New};
use crate::preload::spool::mapping;
use crate::reasons::WhenFull;

/// The default maximum size of a spool in bytes.
const BYTES: u64 = 1 << 30;
/// The maximum number of processes recorded in addition to the first process.
const FOLLOW: u32 = 1000;

/// Finds or creates the directory named by the environment. Returns the path of its events. Errors are written to
/// standard error, because nobody else would report them.
pub(crate) fn of_environment() -> Option<Path> {
    let pattern = origin::environment(c"HATF_OUTPUT").filter(|pattern| !pattern.is_empty())?;
    let Some(folder) = expand(pattern) else {
        complain(pattern, b"the path is too long");
        return None;
    };
    let found = match make(&folder) {
        Err(libc::EEXIST) => join(&folder),
        made => made,
    };
    match found {
        Ok(events) => Some(events),
        Err(error) => {
            complain(folder.bytes(), reason(error));
            None
        }
    }
}

/// Creates a directory with the spool of this process. Returns the path of its events, or the system's error.
pub(crate) fn make(folder: &Path) -> Result<Path, c_int> {
    let inside = |name: &str| folder.with(b"/")?.with(name.as_bytes());
    let paths = (|| Some((inside(names::EVENTS)?, inside(names::EVENTS)?.with(b".new")?, inside(names::COMMAND)?)))();
    let (events, unfinished, command) = paths.ok_or(libc::ENAMETOOLONG)?;
    // SAFETY: C strings; a directory that was created is removed if the rest fails.
    unsafe {
        if libc::mkdir(folder.as_c().as_ptr(), 0o700) != 0 {
            return Err(errno());
        }
        let error = match make_spool(&unfinished) {
            Some(()) => {
                files::copy(c"/proc/self/cmdline", command.as_c());
                if libc::rename(unfinished.as_c().as_ptr(), events.as_c().as_ptr()) == 0 {
                    return Ok(events);
                }
                errno()
            }
            None => errno(),
        };
        for path in [&command, &unfinished] {
            libc::unlink(path.as_c().as_ptr());
        }
        libc::rmdir(folder.as_c().as_ptr());
        Err(error)
    }
}

/// Creates the spool file for this process.
fn make_spool(path: &Path) -> Option<()> {
    let bytes = number(c"HATF_OUTPUT_SIZE").unwrap_or(BYTES);
    let chunks = usize::try_from(bytes / CHUNK_BYTES as u64).unwrap_or(usize::MAX).max(1);
    let spool = create::make_file(path, New { chunks, ready: 0 })?;
    let header = spool.header();
    // Use the system's clock, so the trace can be created elsewhere without data for converting stamps.
    header.clock.store(Clock::Monotonic as u32, Ordering::Relaxed);
    header.when_full.store(WhenFull::Drop as u32, Ordering::Relaxed);
    header.sample.store(number(c"HATF_SAMPLE").unwrap_or(0), Ordering::Relaxed);
    header.start.store(nanoseconds(), Ordering::Relaxed);
    header.follow.store(FOLLOW, Ordering::Relaxed);
    header.follow_chunks.store(u32::try_from(spool.chunks()).unwrap_or(u32::MAX), Ordering::Relaxed);
    header.began.store(process::began(), Ordering::Relaxed);
    // SAFETY: cannot fail.
    header.process.store(unsafe { libc::getpid().cast_unsigned() }, Ordering::Release);
    spool.unmap();
    Some(())
}

/// Returns the events in an existing directory if they belong to this process, or to a running process that started
/// this one.
fn join(folder: &Path) -> Result<Path, c_int> {
    let events = (|| folder.with(b"/")?.with(names::EVENTS.as_bytes()))().ok_or(libc::ENAMETOOLONG)?;
    let spool = mapping::open(events.as_c()).ok_or(libc::EEXIST)?;
    let header = spool.header();
    let first = header.process.load(Ordering::Acquire);
    // SAFETY: calls that change nothing but `errno`.
    let (own, runs) = unsafe {
        let is_there = first != 0 && libc::kill(first.cast_signed(), 0) == 0 || errno() == libc::EPERM;
        (libc::getpid().cast_unsigned() == first, is_there)
    };
    // A process of an earlier run may have had the same process ID.
    let wanted = if own { header.began.load(Ordering::Relaxed) == process::began() } else { runs };
    spool.unmap();
    if wanted { Ok(events) } else { Err(libc::EEXIST) }
}

/// Returns an absolute path, with each `%p` replaced by the process ID.
pub(crate) fn expand(pattern: &[u8]) -> Option<Path> {
    let mut path = Path::new();
    if !pattern.starts_with(b"/") {
        let mut bytes = [0_u8; 4096];
        // SAFETY: a buffer and its length; a C string in it if the call does not fail.
        let here = unsafe {
            if libc::getcwd(bytes.as_mut_ptr().cast(), bytes.len()).is_null() {
                return None;
            }
            CStr::from_bytes_until_nul(&bytes).ok()?
        };
        path = path.with(here.to_bytes())?.with(b"/")?;
    }
    let mut rest = pattern;
    while let Some(at) = rest.windows(2).position(|two| two == b"%p") {
        // SAFETY: cannot fail.
        let process = unsafe { libc::getpid().cast_unsigned() };
        path = path.with(rest.get(..at)?)?.with_number(process.into())?;
        rest = rest.get(at + 2..)?;
    }
    path.with(rest)
}

/// Returns the number in a variable, in bytes or with the suffix `KiB`, `MiB` or `GiB`. Reports an invalid number on
/// standard error.
fn number(variable: &CStr) -> Option<u64> {
    let text = origin::environment(variable)?;
    let parsed = parse(text);
    if parsed.is_none() {
        complain(text, b"expected a number of bytes, such as 512KiB");
    }
    parsed
}

fn parse(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, unit) = text.split_at_checked(digits).filter(|(digits, _)| !digits.is_empty())?;
    let unit = match unit {
        b"" | b"B" => 1,
        b"KiB" => 1 << 10,
        b"MiB" => 1 << 20,
        b"GiB" => 1 << 30,
        _ => return None,
    };
    let digit = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
    digits.iter().try_fold(0, digit)?.checked_mul(unit)
}

fn errno() -> c_int {
    // SAFETY: `errno` of this thread.
    unsafe { *libc::__errno_location() }
}

/// Returns the description of an error for the user.
fn reason(error: c_int) -> &'static [u8] {
    match error {
        libc::EEXIST => {
            b"already exists; run `hatf recover` to create the trace of the earlier run, or use %p (the process ID) in \
              the name"
        }
        libc::ENOENT => b"its parent directory does not exist",
        libc::EACCES | libc::EPERM | libc::EROFS => b"no permission to create it",
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => b"not enough space for it",
        libc::ENOTDIR => b"its parent is not a directory",
        _ => b"cannot be created",
    }
}

/// Writes a line to standard error.
fn complain(about: &[u8], what: &[u8]) {
    let parts: [&[u8]; 5] = [b"hatf: not recorded: ", about, b": ", what, b"\n"];
    let line = parts.into_iter().try_fold(Path::new(), Path::with);
    let line = line.as_ref().map_or(&b"hatf: not recorded\n"[..], Path::bytes);
    // SAFETY: bytes and their number.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes() {
        assert_eq!([parse(b"4096"), parse(b"512KiB"), parse(b"3GiB")], [Some(4096), Some(512 << 10), Some(3 << 30)]);
        for wrong in [&b""[..], b"KiB", b"1kb", b"-1", b"99999999999999999999", b"99999999999999GiB"] {
            assert_eq!(parse(wrong), None);
        }
    }

    #[test]
    fn names_of_folders() {
        let process = std::process::id();
        let path = expand(b"/a/%p-b%p/%").unwrap();
        assert_eq!(path.bytes(), format!("/a/{process}-b{process}/%").as_bytes());
        let here = std::env::current_dir().unwrap().join("x");
        assert_eq!(expand(b"x").unwrap().bytes(), here.to_str().unwrap().as_bytes());
        assert!(expand(&[b'a'; 5000]).is_none());
    }
}
