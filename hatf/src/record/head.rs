//! The comments at the head of a trace: where it comes from.

use std::ffi::{CStr, OsString};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{EventSink, Result};

/// When a recording began, and of what.
#[derive(Debug)]
pub(super) struct Head {
    /// `CLOCK_MONOTONIC` in nanoseconds: the trace's time 0.
    pub(super) clock: u64,
    wall: Duration,
    command: String,
}

impl Head {
    pub(super) fn now(command: &[OsString]) -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a place for the answer; this clock always exists.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        let clock = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let words: Vec<String> = command.iter().map(|word| quoted(&word.to_string_lossy())).collect();
        Self { clock, wall, command: words.join(" ") }
    }

    pub(super) fn write(&self, sink: &mut dyn EventSink) -> Result<()> {
        sink.comment(&format!("command: {}", self.command))?;
        sink.comment(&format!("host: {}", host()))?;
        sink.comment(&format!("start: {}", utc(self.wall.as_secs())))?;
        sink.comment(&format!("recorder: hatf {}", env!("CARGO_PKG_VERSION")))?;
        sink.comment("time: nanoseconds of CLOCK_MONOTONIC since the start")
    }
}

/// A word as a shell would take it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn host() -> String {
    // SAFETY: zero is a value of this structure of bytes; the call fills it with C strings.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        name
    };
    let text = |field: &[libc::c_char]| {
        // SAFETY: the kernel ends each field with a zero, within it.
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_string_lossy().into_owned()
    };
    let fields = [&name.nodename, &name.sysname, &name.release, &name.machine];
    fields.map(|field| text(field)).join(" ")
}

/// Seconds since 1970 as `2000-02-29T12:00:00Z`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Count in years that begin in March, so that the day that comes and goes is the last one.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn words() {
        assert_eq!(quoted("a-b/c.d"), "a-b/c.d");
        assert_eq!(quoted("print 'x'"), "'print '\\''x'\\'''");
        assert_eq!(quoted(""), "''");
    }
}
