//! Detects, before a program runs, that it will not load the recorder.

use std::ffi::{CString, OsStr};
use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::executable::{find, has_recorder, open};
use super::sanitizer::Sanitizer;

/// A program that does not load the recorder, with the reason. Programs that it starts may load the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRecorded {
    /// The program, or its interpreter if it is a script.
    pub program: PathBuf,
    /// The reason.
    pub reason: NotRecordedReason,
}

/// The reason why a program does not load the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotRecordedReason {
    /// The program is statically linked, without the recorder.
    Static,
    /// The program runs as another user or group, or has additional capabilities.
    Privileged,
    /// The program is built for a different architecture than this program.
    OtherMachine,
    /// The allocator of AddressSanitizer is statically linked and called directly.
    AddressSanitizer,
    /// ThreadSanitizer does not start if the recorder is loaded, so the program would end immediately.
    ThreadSanitizer,
}

impl NotRecordedReason {
    /// Returns a phrase that continues a sentence about the program, such as "is statically linked".
    #[must_use]
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Static => "is statically linked",
            Self::Privileged => "is set-user-ID, set-group-ID or has file capabilities",
            Self::OtherMachine => "is built for a different CPU architecture",
            Self::AddressSanitizer => "is statically linked with the AddressSanitizer allocator",
            Self::ThreadSanitizer => "is built with ThreadSanitizer",
        }
    }
}

impl fmt::Display for NotRecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program.display();
        let why = self.reason.phrase();
        match self.reason {
            NotRecordedReason::AddressSanitizer => {
                let how = "link the AddressSanitizer runtime as a shared library (the default in GCC; Clang requires \
                           -shared-libasan)";
                write!(f, "{program} {why}, which is not recorded: {how}")
            }
            NotRecordedReason::ThreadSanitizer => {
                write!(f, "{program} {why}, which cannot be recorded: record a build without it")
            }
            _ => write!(
                f,
                "{program} {why}, so it does not load the recorder; only programs that it starts are recorded"
            ),
        }
    }
}

/// Examines a program, located in the same way as by the system. Returns `None` if the program will load the recorder
/// or if this is unknown.
#[must_use]
pub fn not_recorded(program: &OsStr) -> Option<NotRecorded> {
    let (path, file) = open(program)?;
    let reason = if is_privileged(&path, &file) { Some(NotRecordedReason::Privileged) } else { of_elf(&file) };
    let reason = reason.or_else(|| match Sanitizer::of(&file)? {
        Sanitizer::Address { shared: true } => None,
        Sanitizer::Address { shared: false } => Some(NotRecordedReason::AddressSanitizer),
        Sanitizer::Thread => Some(NotRecordedReason::ThreadSanitizer),
    });
    reason.map(|reason| NotRecorded { program: path, reason })
}

/// Returns whether a program, located in the same way as by the system, uses AddressSanitizer as a shared library.
pub(crate) fn has_address_sanitizer(program: &OsStr) -> bool {
    let file = find(program).and_then(|path| File::open(path).ok());
    file.and_then(|file| Sanitizer::of(&file)) == Some(Sanitizer::Address { shared: true })
}

/// Returns whether the dynamic linker will not trust the environment.
fn is_privileged(path: &Path, file: &File) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: these calls cannot fail, the strings are C strings, and all zeros is a valid value of the struct, which
    // the call fills.
    let (user, group, held, capable) = unsafe {
        let mut mount: libc::statvfs = std::mem::zeroed();
        let mounted = libc::statvfs(name.as_ptr(), &raw mut mount) == 0;
        let held =
            mounted && mount.f_flag & libc::ST_NOSUID != 0 || libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
        let capable = libc::getxattr(name.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0;
        (libc::getuid(), libc::getgid(), held, capable)
    };
    let becomes = |bits: u32, owner: u32, is: u32| metadata.mode() & bits == bits && owner != is;
    // File capabilities add nothing for the superuser.
    let other = becomes(libc::S_ISUID, metadata.uid(), user)
        || becomes(libc::S_ISGID | libc::S_IXGRP, metadata.gid(), group)
        || capable && user != 0;
    other && !held
}

/// Size in bytes of an ELF header.
const HEAD: usize = 64;
/// Size in bytes of a program header table entry.
const ENTRY: usize = 56;
/// Maximum number of program header table entries.
const ENTRIES: usize = 1024;

/// Examines an ELF executable. Also returns `None` if the file is not an ELF executable.
fn of_elf(file: &File) -> Option<NotRecordedReason> {
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    let mut own = [0; HEAD];
    File::open("/proc/self/exe").ok()?.read_exact_at(&mut own, 0).ok()?;
    // Compare the class and byte order, and the machine.
    if head.get(4..6) != own.get(4..6) || head.get(18..20) != own.get(18..20) {
        return Some(NotRecordedReason::OtherMachine);
    }
    // The recorder supports only 64-bit machines.
    let word = |at: usize| Some(u16::from_ne_bytes(head.get(at..at + 2)?.try_into().ok()?));
    let table = u64::from_ne_bytes(head.get(32..40)?.try_into().ok()?);
    let (bytes, entries) = (usize::from(word(54)?), usize::from(word(56)?));
    if bytes != ENTRY || entries > ENTRIES {
        return None;
    }
    let mut entry = [0; ENTRY];
    for number in 0..entries as u64 {
        file.read_exact_at(&mut entry, table.checked_add(number * ENTRY as u64)?).ok()?;
        let kind = u32::from_ne_bytes(entry.get(..4)?.try_into().ok()?);
        if kind == libc::PT_INTERP {
            return None;
        }
    }
    (!has_recorder(file)).then_some(NotRecordedReason::Static)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_no_program() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(not_recorded(own.as_os_str()), None);
        for nothing in ["/dev/null", "/nowhere", "no such program", "/"] {
            assert_eq!(not_recorded(OsStr::new(nothing)), None);
        }
    }

    /// Arbitrary bytes after the beginning of an executable.
    #[test]
    fn damaged_executables() {
        let own = fs::read("/proc/self/exe").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let head = own.get(..4096).unwrap();
        for length in [4, 17, 19, 63, 64, 70, 4096] {
            fs::write(&path, &head[..length]).unwrap();
            let _ = not_recorded(path.as_os_str());
        }
        let mut random = 1_u64;
        for _ in 0..500 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut bytes = head.to_vec();
            bytes[usize::try_from(random >> 40).unwrap() % 64] = random.to_le_bytes()[3];
            fs::write(&path, &bytes).unwrap();
            let _ = not_recorded(path.as_os_str());
        }
    }

    #[test]
    fn scripts_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, format!("#! {}\n", path.display())).unwrap();
        assert_eq!(not_recorded(path.as_os_str()), None);
    }
}
