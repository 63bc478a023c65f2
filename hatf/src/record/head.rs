//! The user metadata of a recording: where it comes from.

use std::ffi::{CStr, OsString};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::Result;
use crate::event::EventSink;

/// When a recording began, and of what.
#[derive(Debug)]
pub(super) struct Head {
    /// `CLOCK_MONOTONIC` in nanoseconds: the trace's time 0.
    pub(super) clock: u64,
    wall: Duration,
    command: Vec<String>,
}

impl Head {
    pub(super) fn now(command: &[OsString]) -> Self {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a place for the answer; this clock always exists.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        let clock = time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self { clock, wall, command }
    }

    /// Writes where the trace comes from; the keys are those that `dtds/heap.dtd` names.
    pub(super) fn write(&self, sink: &mut dyn EventSink) -> Result<()> {
        let user_metadata = json!({
            "program": self.command.first(),
            "command": self.command,
            "host": host(),
            "start": utc(self.wall.as_secs()),
            "clock": {"name": "CLOCK_MONOTONIC", "resolution_ns": 1},
            "libc": libc_version(),
            "sampling": null,
            "recorder": format!("hatf {}", env!("CARGO_PKG_VERSION")),
        });
        user_metadata.as_object().map_or(Ok(()), |user_metadata| sink.user_metadata(user_metadata))
    }
}

/// The C library that `hatf` runs on, which is the program's, too, unless that brings its own.
fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: a constant C string.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(target_env = "gnu"))]
    None
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
}
