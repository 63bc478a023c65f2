//! A recorded process, which was started by this process or created by the program.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hatf_record::{EXITED, Header};

use hatf_trace::event::EventKind;
use hatf_trace::{Error, Result};

/// The interval at which the kernel is queried about a process that is not a child.
const ASK: Duration = Duration::from_millis(2);

/// A recorded process.
pub(crate) enum Process<'a> {
    /// A child of this process.
    Started(Child),
    /// A process created by the program, or one that was already running.
    Other(OtherProcess<'a>),
}

/// A process that is not a child of this process.
pub(crate) struct OtherProcess<'a> {
    pub(crate) id: u32,
    /// The start time of the process in kernel ticks since boot.
    pub(crate) began: u64,
    /// Whether the process is no longer to be recorded.
    pub(crate) stop: &'a AtomicBool,
    pub(crate) header: &'a Header,
    pub(crate) asked: Instant,
}

/// The way a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The complete exit status of a child.
    Status(ExitStatus),
    /// The process announced this exit status and ended.
    Exit(u8),
    /// The process was killed or ended in a way that the recorder does not observe, or it is still running.
    Unknown,
}

impl End {
    /// Returns the end that the process announced.
    pub(crate) fn of_exit(header: &Header) -> Self {
        let [status, flags, ..] = header.exit.load(Ordering::Relaxed).to_le_bytes();
        if u32::from(flags) << 8 == EXITED { Self::Exit(status) } else { Self::Unknown }
    }

    /// Returns whether the process was killed by `SIGKILL`, which the OOM killer uses.
    pub(crate) fn is_sigkill(self) -> bool {
        matches!(self, Self::Status(status) if status.signal() == Some(libc::SIGKILL))
    }

    /// Returns the event at the end of the trace.
    pub(crate) fn event(self) -> Option<EventKind<'static>> {
        match self {
            Self::Status(status) => Some(match (status.code(), status.signal()) {
                (None, Some(signal)) => EventKind::Killed { signal: signal.unsigned_abs().into() },
                (code, _) => EventKind::Exit { status: code.unwrap_or(0).unsigned_abs().into() },
            }),
            Self::Exit(status) => Some(EventKind::Exit { status: status.into() }),
            Self::Unknown => None,
        }
    }
}

impl Process<'_> {
    /// Returns the process ID.
    pub(crate) fn id(&self) -> u32 {
        match self {
            Self::Started(child) => child.id(),
            Self::Other(other) => other.id,
        }
    }

    /// Returns the end of the process if it has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<End>> {
        match self {
            Self::Started(child) => Ok(child.try_wait().map_err(Error::system("wait"))?.map(End::Status)),
            Self::Other(other) => Ok(other.ended()),
        }
    }
}

impl OtherProcess<'_> {
    fn ended(&mut self) -> Option<End> {
        if self.stop.load(Ordering::Relaxed) {
            return Some(End::Unknown);
        }
        if self.asked.elapsed() < ASK {
            return None;
        }
        self.asked = Instant::now();
        if is_alive(self.id, self.began) {
            return None;
        }
        Some(End::of_exit(self.header))
    }
}

/// Returns whether a process with this start time is running.
pub(crate) fn is_alive(process: u32, began: u64) -> bool {
    let Some((state, at)) = state(process) else { return false };
    (began == 0 || at == began) && !matches!(state, 'Z' | 'X' | 'x')
}

/// Returns the start time of a process in kernel ticks since boot, or 0 if the process does not exist. Used for
/// processes that are already running.
#[cfg(target_arch = "x86_64")]
pub(crate) fn began(process: u32) -> u64 {
    state(process).map_or(0, |(_, began)| began)
}

/// Returns the state and the start time of a process.
pub(super) fn state(process: u32) -> Option<(char, u64)> {
    let text = std::fs::read(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in parentheses, which may contain any character.
    let behind = text.iter().rposition(|byte| *byte == b')').map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(text.get(behind..).unwrap_or_default()).into_owned();
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// Returns the program that a process executes.
pub(super) fn program_of(process: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/exe")).ok()
}

/// Returns the peak of a process's resident memory in bytes.
pub(super) fn peak_of(process: u32) -> Option<u64> {
    peak_in(&std::fs::read_to_string(format!("/proc/{process}/status")).ok()?)
}

/// Returns the peak of resident memory in bytes that `/proc/PID/status` states.
fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// A wait for a process to end, or for a short time.
pub(crate) struct ProcessEnd(Option<OwnedFd>);

impl ProcessEnd {
    pub(crate) fn of(process: u32) -> Self {
        // SAFETY: the arguments are numbers. Kernels before 5.3 return an error.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0);
        // SAFETY: the descriptor was just created and has no other owner.
        Self(fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the descriptor that becomes readable when the process ends.
    pub(super) fn fd(&self) -> Option<&OwnedFd> {
        self.0.as_ref()
    }

    pub(crate) fn wait(&self, milliseconds: libc::c_int) {
        let fd = self.0.as_ref().map_or(-1, |fd| fd.as_raw_fd());
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer is to one valid struct. A negative descriptor is ignored, so that only the timeout
        // applies.
        unsafe { libc::poll(&raw mut poll, 1, milliseconds) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_states_the_peak() {
        assert_eq!(peak_in("Name:\tx\nVmHWM:\t  152 kB\n"), Some(152 * 1024));
        for status in ["", "VmHWM:", "VmHWM:\t1", "VmHWM:\t-1 kB", "VmHWM:\t18446744073709551615 kB"] {
            assert_eq!(peak_in(status), None, "{status}");
        }
    }
}
