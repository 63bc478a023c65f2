//! Checks whether a process can safely be attached to, and finds the functions of its C library.

use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use super::maps::{Mapping, mappings, mappings_of};
use super::unsafe_code::UnsafeCode;
use hatf_trace::{Error, Result};

/// A process that can be recorded while it runs.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) process: u32,
    /// The difference between the address of a C library function in the process and its address here.
    shift: u64,
    /// The address in the process of the code by which a thread returns from a signal handler.
    sigreturn: u64,
    unsafe_code: UnsafeCode,
}

/// Parses arbitrary bytes as the kernel's data about a process, for the fuzz targets.
pub(in crate::record) fn read_any(bytes: &[u8]) {
    let _ = mappings_of(bytes);
    let text = String::from_utf8_lossy(bytes);
    for name in ["Tgid", "State", "Seccomp_filters"] {
        let _ = field(&text, name);
    }
}

/// Returns the address of a C library function in this process.
fn own_function(name: &CStr) -> Option<u64> {
    // SAFETY: the argument is a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address as u64)
}

/// Returns the address in this process of the code by which a thread returns from a signal handler. The C library
/// passes it to the kernel with each handler.
fn own_sigreturn() -> Option<u64> {
    const CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];
    // The kernel's data about a signal: the handler, the flags, the address of that code, and the blocked signals.
    let mut known = [0_u64; 4];
    // Rust's standard library installs a handler for this signal.
    // SAFETY: the pointer is to a large enough buffer, and 8 is the length of its last member.
    let asked = unsafe { libc::syscall(libc::SYS_rt_sigaction, libc::SIGSEGV, 0, known.as_mut_ptr(), 8) };
    let [.., code, _] = known;
    // SAFETY: this is code of this process to which the kernel jumps.
    let is_it = asked == 0 && code != 0 && unsafe { *(code as *const [u8; CODE.len()]) } == CODE;
    is_it.then_some(code)
}

/// Returns a field of `/proc/N/status`.
pub(super) fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

pub(super) fn refused(process: u32, why: &str) -> Error {
    Error::Trace(format!("process {process} {why}").into())
}

impl Target {
    /// Examines a process.
    ///
    /// # Errors
    /// Returns an error if the process does not exist or cannot be recorded.
    pub(super) fn find(process: u32) -> Result<Self> {
        let refuse = |why: &str| Err(refused(process, why));
        if process == std::process::id() {
            return refuse("is hatf itself");
        }
        // The name of a process may contain any bytes.
        let Ok(status) = fs::read(format!("/proc/{process}/status")) else {
            return Err(Error::Trace(format!("there is no process {process}").into()));
        };
        let own = fs::read("/proc/self/status").map_err(Error::system("/proc/self/status"))?;
        let [status, own] = [&status, &own].map(|text| String::from_utf8_lossy(text));
        if field(&status, "Tgid").is_some_and(|leader| leader != process.to_string()) {
            return refuse(&format!("is a thread of process {}", field(&status, "Tgid").unwrap_or("?")));
        }
        match field(&status, "State").and_then(|state| state.chars().next()) {
            Some('Z' | 'X') => return refuse("has ended"),
            Some('T' | 't') => return refuse("is stopped: let it continue first"),
            _ => {}
        }
        if field(&status, "Uid") != field(&own, "Uid") {
            return refuse("runs as another user: record it as that user");
        }
        let tracer = field(&status, "TracerPid").unwrap_or("0");
        if tracer != "0" {
            return refuse(&format!("is traced by process {tracer}, such as a debugger"));
        }
        for (name, what) in [("pid", "PID"), ("mnt", "mount")] {
            let of = |process: &str| fs::metadata(format!("/proc/{process}/ns/{name}")).map(|file| file.ino()).ok();
            if of("self") != of(&process.to_string()) {
                return refuse(&format!("is in a different {what} namespace from hatf: run hatf inside its container"));
            }
        }
        let root =
            |process: &str| fs::metadata(format!("/proc/{process}/root")).map(|root| (root.dev(), root.ino())).ok();
        if root("self") != root(&process.to_string()) {
            return refuse("has a different root directory from hatf");
        }
        if field(&status, "x86_Thread_features").is_some_and(|features| features.contains("shstk")) {
            return refuse("has a shadow stack, so hatf cannot call functions in it");
        }
        let filters =
            |status: &str| field(status, "Seccomp_filters").and_then(|number| number.parse().ok()).unwrap_or(0_u32);
        if field(&status, "Seccomp") == Some("1") || filters(&status) > filters(&own) {
            return refuse("has a seccomp filter that may block system calls needed for recording");
        }
        Self::of_maps(process)
    }

    /// Finds the C library of the process, which must be the same as this process's C library.
    fn of_maps(process: u32) -> Result<Self> {
        let refuse = |why: &str| Err(refused(process, why));
        let (own, maps) = (mappings("self")?, mappings(&process.to_string())?);
        let (Some(loads), Some(maps_memory)) = (own_function(c"dlopen"), own_function(c"mmap")) else {
            return refuse("cannot be recorded by this build of hatf, which is statically linked");
        };
        let at = |address: u64| own.iter().find(|mapping| (mapping.start..mapping.end).contains(&address));
        let Some(library) = at(loads).filter(|library| at(maps_memory).is_some_and(|other| other.file == library.file))
        else {
            return refuse("cannot be recorded: this requires glibc 2.34");
        };
        let base =
            |maps: &[Mapping]| maps.iter().find(|mapping| mapping.file == library.file).map(|mapping| mapping.start);
        let (Some(here), Some(there)) = (base(&own), base(&maps)) else {
            let has = |name: &str| maps.iter().any(|mapping| mapping.path.contains(name));
            return refuse(match () {
                () if has("/ld-musl") => "uses musl: start it with `hatf record`",
                () if has("/libc.so") || has("/libc-") => "has a different C library from hatf",
                () => "is statically linked and cannot load the recorder",
            });
        };
        let shift = there.wrapping_sub(here);
        let Some(unsafe_code) = UnsafeCode::of(&maps, library) else {
            return refuse("cannot be recorded: the symbols of the C library cannot be read");
        };
        let Some(sigreturn) =
            own_sigreturn().filter(|at_| at(*at_).is_some_and(|mapping| mapping.file == library.file))
        else {
            return refuse("cannot be recorded: the C library lacks the required code");
        };
        Ok(Self { process, shift, sigreturn: sigreturn.wrapping_add(shift), unsafe_code })
    }

    /// Returns the address of a C library function in the process.
    pub(super) fn function(&self, name: &CStr) -> Result<u64> {
        let own = own_function(name)
            .ok_or_else(|| Error::Trace(format!("the C library has no {}", name.to_string_lossy()).into()))?;
        Ok(own.wrapping_add(self.shift))
    }

    /// Returns the address of `mov $15, %rax; syscall` in the process.
    pub(super) fn sigreturn(&self) -> u64 {
        self.sigreturn
    }

    /// Returns the code of the process that must not be interrupted.
    pub(super) fn unsafe_code(&self) -> &UnsafeCode {
        &self.unsafe_code
    }

    /// Returns whether the entire address range can belong to a stack. The main thread's stack grows when it is written
    /// to.
    pub(super) fn is_stack(&self, from: u64, to: u64) -> bool {
        let maps = mappings(&self.process.to_string()).unwrap_or_default();
        let mapping = maps.iter().find(|mapping| mapping.start < to && to <= mapping.end);
        mapping.is_some_and(|mapping| mapping.start <= from || mapping.path == "[stack]")
    }

    /// Returns the reason why a thread cannot be stopped: it has ended, or it is in an uninterruptible wait in the
    /// kernel. Returns `None` if it can be stopped.
    pub(super) fn obstacle(&self, thread: i32) -> Option<String> {
        let folder = format!("/proc/{}/task/{thread}", self.process);
        let status = fs::read(format!("{folder}/status")).ok()?;
        match field(&String::from_utf8_lossy(&status), "State")?.chars().next()? {
            'D' => {}
            // The main thread can end while other threads continue.
            'Z' | 'X' => return Some(format!("thread {thread} has ended")),
            _ => return None,
        }
        let call = fs::read_to_string(format!("{folder}/syscall")).unwrap_or_default();
        if !matches!(call.split(' ').next()?.parse(), Ok(libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3)) {
            return Some(format!("thread {thread} is in an uninterruptible wait in the kernel"));
        }
        let children = fs::read_to_string(format!("{folder}/children")).unwrap_or_default();
        let child = children.split_whitespace().next_back();
        let child = child.map_or("its child".to_owned(), |child| format!("process {child}"));
        Some(format!(
            "thread {thread} is in vfork or posix_spawn and cannot be stopped before {child} ends or calls exec"
        ))
    }

    /// Returns the threads of the process, the main thread first.
    pub(super) fn threads(&self) -> Vec<i32> {
        threads(self.process)
    }

    /// Returns an error that says why the process cannot be recorded.
    pub(super) fn refused(&self, why: &str) -> Error {
        refused(self.process, why)
    }
}

/// Returns the threads of a process, the main thread first.
pub(super) fn threads(process: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    threads.sort_by_key(|thread| (thread.unsigned_abs() != process, *thread));
    threads
}

/// Returns the arguments of a process, or its name if it has no arguments.
pub(super) fn command(process: u32) -> Vec<std::ffi::OsString> {
    use std::os::unix::ffi::OsStringExt as _;
    let bytes = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|byte| *byte == 0);
    words.map(|word| std::ffi::OsString::from_vec(word.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names may contain any bytes, and invalid lines are skipped.
    #[test]
    fn hostile_maps() {
        let line = b"1000-2000 r-xp 0 fe:00 7   /x/\xff\xfe\\012 libc.so.6\n";
        let found = mappings_of(&[&line[..], b"1000\n\xff\n-- r 0 0 0\n1-\n", line].concat());
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((first, first.path.as_str()), (second, "/x/\u{fffd}\u{fffd}\\012 libc.so.6"));
        // Tests the line with any byte replaced, and any prefix of the line.
        for at in 0..line.len() {
            for byte in [0, b' ', b'-', b'9', b'\n', 0xff] {
                let mut damaged = line.to_vec();
                damaged[at] = byte;
                read_any(&damaged);
            }
            read_any(&line[..at]);
        }
        assert_eq!(field("Tgid", "Tgid"), None);
        assert_eq!(field("Tgid:\t 7 \n", "Tgid"), Some("7"));
    }

    /// A stack ends at inaccessible memory.
    #[test]
    fn stacks_end_where_their_memory_does() {
        const PAGE: u64 = 4096;
        let target = Target { process: std::process::id(), shift: 0, sigreturn: 0, unsafe_code: UnsafeCode::default() };
        let memory = memmap2::MmapMut::map_anon(4 * 4096).unwrap();
        let from = memory.as_ptr() as u64;
        // SAFETY: this is an unused page of memory.
        assert_eq!(unsafe { libc::mprotect(memory.as_ptr().cast_mut().cast(), 4096, libc::PROT_NONE) }, 0);
        for (lowest, pointer, expected) in
            [(PAGE, 4 * PAGE, true), (PAGE, PAGE + 8, true), (PAGE - 8, 4 * PAGE, false), (0, PAGE + 8, false)]
        {
            assert_eq!(target.is_stack(from + lowest, from + pointer), expected, "{lowest} to {pointer}");
        }
        assert!(!target.is_stack(0, 8));
    }

    #[test]
    fn what_cannot_be_recorded() {
        assert!(Target::find(std::process::id()).unwrap_err().to_string().contains("is hatf itself"));
        assert!(Target::find(u32::MAX).unwrap_err().to_string().contains("no process"));
    }
}
