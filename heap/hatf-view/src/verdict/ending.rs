//! The sentence about the end of the program.

use metatf_page::Value;

use crate::analysis::Ending;

/// Describes how the program ended. `duration` is the time of the end in nanoseconds, or 0 if the trace has no times,
/// and `live` is the number of bytes that were live then, if known. Returns `None` if nothing is known about the end.
///
/// # Examples
///
/// ```
/// use hatf_view::analysis::Ending;
/// use hatf_view::verdict::ending;
///
/// let text = ending(Ending::Killed { signal: 11 }, 3_100_000_000, Some(11_429_478));
/// assert_eq!(text.as_deref(), Some("Killed by SIGSEGV after 3.10 s, with 10.9 MiB live."));
/// ```
#[must_use]
pub fn ending(ending: Ending, duration: u64, live: Option<u64>) -> Option<String> {
    let after = if duration == 0 { String::new() } else { format!(" after {}", Value::Time(duration)) };
    let with = live.map_or_else(String::new, |live| format!(", with {} live", Value::Bytes(live)));
    Some(match ending {
        Ending::Unknown => return None,
        Ending::Snapshot => {
            format!("A snapshot of a running process{with}; it does not contain the history of the blocks.")
        }
        Ending::Continued => format!("The segment ends{after}{with}; the recording continues in the next segment."),
        Ending::NotRecorded => format!("The trace ends{after}{with}; it does not show how the program ended."),
        Ending::Exited { status: 0 } => format!("Exited with status 0{after}."),
        Ending::Exited { status } => format!("Exited with status {status}{after}{with}."),
        Ending::OutOfMemory { limit } => {
            let limit =
                limit.map_or_else(String::new, |limit| format!("; its cgroup is limited to {}", Value::Bytes(limit)));
            format!("Killed by the kernel's OOM killer{after}{with}{limit}.")
        }
        Ending::Killed { signal } => format!("Killed by {}{after}{with}.", signal_name(signal)),
    })
}

/// Returns the name of a signal on Linux.
#[must_use]
pub fn signal_name(signal: u64) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_has_its_words() {
        let text = |end, duration, live| ending(end, duration, live).unwrap_or_default();
        assert_eq!(text(Ending::Unknown, 1, Some(1)), "");
        assert_eq!(text(Ending::Exited { status: 0 }, 1_500_000, Some(1)), "Exited with status 0 after 1.50 ms.");
        assert_eq!(text(Ending::Exited { status: 3 }, 0, Some(2048)), "Exited with status 3, with 2.00 KiB live.");
        assert_eq!(text(Ending::Killed { signal: 9 }, 0, None), "Killed by SIGKILL.");
        assert_eq!(text(Ending::Killed { signal: 31 }, 0, None), "Killed by SIGSYS.");
        assert_eq!(text(Ending::Killed { signal: 34 }, 0, None), "Killed by signal 34.");
        assert_eq!(text(Ending::Killed { signal: 0 }, 0, None), "Killed by signal 0.");
        let limit = Some(96 << 20);
        assert_eq!(
            text(Ending::OutOfMemory { limit }, 2_000_000_000, Some(1)),
            "Killed by the kernel's OOM killer after 2.00 s, with 1 B live; its cgroup is limited to 96.0 MiB."
        );
        assert_eq!(text(Ending::OutOfMemory { limit: None }, 0, None), "Killed by the kernel's OOM killer.");
        let snapshot = "A snapshot of a running process, with 1 B live; it does not contain the history of the blocks.";
        assert_eq!(text(Ending::Snapshot, 0, Some(1)), snapshot);
        let part = "The segment ends after 2.00 s, with 1 B live; the recording continues in the next segment.";
        assert_eq!(text(Ending::Continued, 2_000_000_000, Some(1)), part);
        let cut = "The trace ends after 2.00 s, with 1 B live; it does not show how the program ended.";
        assert_eq!(text(Ending::NotRecorded, 2_000_000_000, Some(1)), cut);
    }
}
