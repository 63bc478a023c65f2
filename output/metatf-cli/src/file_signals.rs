//! Signals caused by files. The commands report them with the name of the file, rather than being killed silently.

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::OnceLock;

static COMMAND: OnceLock<&'static str> = OnceLock::new();

/// Handles the two signals that the kernel sends for files:
///
/// - `SIGXFSZ`: a file has reached the size limit (`ulimit -f`). The write fails, which is reported like any other
///   failed write. Programs started by the command do not inherit the handler, as `exec` resets it.
/// - `SIGBUS`: a page of a mapped input no longer exists. On Linux, the command names the file and exits with status 1,
///   like a command that [uses too much memory](crate::limit_memory).
///
/// An ignored signal stays ignored. Any `SIGBUS` that does not concern a mapped input is passed to the Rust runtime's
/// handler.
pub fn report_file_signals(command: &'static str) {
    let _ = COMMAND.set(command);
    handle(libc::SIGXFSZ, on_file_size as extern "C" fn(c_int) as usize, libc::SA_RESTART);
    #[cfg(target_os = "linux")]
    if let Some(before) = handle(
        libc::SIGBUS,
        bus::on_bus_error as extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) as usize,
        libc::SA_SIGINFO,
    ) {
        let _ = bus::BEFORE.set(before);
    }
}

/// Sets the handler of a signal unless the signal is ignored. Returns the previous action.
fn handle(signal: c_int, handler: usize, flags: c_int) -> Option<libc::sigaction> {
    // SAFETY: zero is a valid value of this structure, and the calls only read or fill it. The handlers have the
    // signature that the flags specify, and call nothing but async-signal-safe functions.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, null_mut(), &raw mut before) != 0 || before.sa_sigaction == libc::SIG_IGN {
            return None;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        (libc::sigaction(signal, &raw const action, null_mut()) == 0).then_some(before)
    }
}

/// Does nothing; the write that caused the signal fails.
extern "C" fn on_file_size(_: c_int) {}

/// The handler of `SIGBUS`. A signal handler must not allocate or lock.
#[cfg(target_os = "linux")]
mod bus {
    use std::ffi::c_int;
    use std::io::Write as _;
    use std::ops::Range;
    use std::ptr::null_mut;
    use std::sync::OnceLock;

    use rustix::fs::{Mode, OFlags};

    use super::COMMAND;

    /// The maximum length of a line in `/proc/self/maps`, which consists of numbers and a path.
    const LINE: usize = 4096 + 128;

    /// The previous action of the signal.
    pub(super) static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// A mapping, described by a line of `/proc/self/maps`.
    struct Mapping<'l> {
        addresses: Range<usize>,
        /// Whether the mapping is read-only and shared, as `memmap2` maps inputs.
        is_input: bool,
        offset: u64,
        path: &'l [u8],
    }

    pub(super) extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the kernel's description of this signal, which is valid during the handler.
        let address = unsafe { (*info).si_addr() } as usize;
        report(address);
        // SAFETY: the action is the one returned by the system, or the default one. It takes effect when the
        // instruction runs again.
        unsafe {
            match BEFORE.get() {
                Some(before) => libc::sigaction(signal, before, null_mut()),
                None => c_int::from(libc::signal(signal, libc::SIG_DFL) == libc::SIG_ERR),
            };
        }
    }

    /// If the address is in a mapped input, reports the file and ends the process.
    fn report(address: usize) {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(maps) = rustix::fs::open(c"/proc/self/maps", flags, Mode::empty()) else { return };
        let mut buffer = [0; LINE];
        let mut filled = 0;
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty())
            && let Ok(more @ 1..) = rustix::io::read(&maps, room)
        {
            filled += more;
            while let Some(end) = buffer.get(..filled).and_then(|lines| lines.iter().position(|byte| *byte == b'\n')) {
                if let Some(mapping) = buffer.get(..end).and_then(parse)
                    && mapping.is_input
                    && mapping.addresses.contains(&address)
                {
                    end_process(&mapping, address);
                }
                buffer.copy_within(end + 1..filled, 0);
                filled -= end + 1;
            }
        }
    }

    fn end_process(mapping: &Mapping<'_>, address: usize) -> ! {
        let mut message = [0; LINE + 128];
        let room = message.len();
        let mut rest = &mut message[..];
        let place = mapping.offset + (address - mapping.addresses.start) as u64;
        let why: &[u8] = match length(mapping.path) {
            // The page is within the file, so the disk failed to read it.
            Some(length) if place < length => b": Input/output error\n",
            _ => b" was truncated while it was being read\n",
        };
        for part in [COMMAND.get().map_or("", |command| command).as_bytes(), b": ", mapping.path, why] {
            let _ = rest.write_all(part);
        }
        let written = room - rest.len();
        // There is nothing else to do if the message cannot be printed.
        let _ = message.get(..written).map(|message| rustix::io::write(rustix::stdio::stderr(), message));
        // SAFETY: this ends the process immediately.
        unsafe { libc::_exit(1) }
    }

    /// Returns the length of a file.
    fn length(path: &[u8]) -> Option<u64> {
        let mut name = [0; LINE];
        name.get_mut(..path.len())?.copy_from_slice(path);
        let name = std::ffi::CStr::from_bytes_until_nul(&name).ok()?;
        u64::try_from(rustix::fs::stat(name).ok()?.st_size).ok()
    }

    /// Parses a line such as `7f0000000000-7f0000001000 r--s 00000000 00:2a 1234    /path`.
    fn parse(line: &[u8]) -> Option<Mapping<'_>> {
        let (addresses, rest) = split(line)?;
        let (access, rest) = split(rest)?;
        let (offset, rest) = split(rest)?;
        let dash = addresses.iter().position(|byte| *byte == b'-')?;
        let address = |text: &[u8]| usize::try_from(hex(text)?).ok();
        let path = rest.iter().position(|byte| *byte == b'/').and_then(|at| rest.get(at..))?;
        Some(Mapping {
            addresses: address(addresses.get(..dash)?)?..address(addresses.get(dash + 1..)?)?,
            is_input: access == b"r--s",
            offset: hex(offset)?,
            path,
        })
    }

    fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
        let end = text.iter().position(|byte| *byte == b' ')?;
        Some((text.get(..end)?, text.get(end + 1..)?))
    }

    fn hex(text: &[u8]) -> Option<u64> {
        u64::from_str_radix(str::from_utf8(text).ok()?, 16).ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn lines_of_maps() {
            let line = b"7f1000-7f3000 r--s 00002000 00:2a 1234                       /tmp/a trace.mtf";
            let mapping = parse(line).unwrap();
            assert_eq!((mapping.addresses, mapping.offset, mapping.is_input), (0x7f_1000..0x7f_3000, 0x2000, true));
            assert_eq!(mapping.path, b"/tmp/a trace.mtf");
            let program = b"55e000-55f000 r-xp 00000000 fe:00 77 /usr/bin/true";
            assert!(!parse(program).unwrap().is_input);
            for none in [
                &b""[..],
                b"7f1000-7f3000 rw-p 00000000 00:00 0 ",
                b"7ffd-7ffe r--p 0 0 0 [vvar]",
                b"x-y r--s 0 0 0 /a",
            ] {
                assert!(parse(none).is_none());
            }
        }
    }
}
