//! The running processes, as `/proc` describes them.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

/// Maximum number of bytes of a command line that rules can match.
const COMMAND_MAX: u64 = 64 << 10;

/// A running process.
pub(super) struct Found {
    pub(super) process: u32,
    /// Start time in clock ticks since the machine started, which distinguishes processes with the same number.
    pub(super) started: u64,
    pub(super) uid: u32,
    pub(super) user: String,
    /// File name of the executable.
    pub(super) name: String,
    pub(super) command: String,
    pub(super) cgroup: String,
}

/// Returns all processes whose executable this user may inspect, except `hatf` itself and kernel threads.
pub(super) fn processes() -> Vec<Found> {
    let users = users();
    let own = fs::metadata("/proc/self/exe").ok().map(|of| (of.dev(), of.ino()));
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<_> = numbers.filter_map(|process| found(process, own, &users)).collect();
    all.sort_by_key(|found| found.process);
    all
}

fn found(process: u32, own: Option<(u64, u64)>, users: &HashMap<u32, String>) -> Option<Found> {
    let place = format!("/proc/{process}");
    let started = Stat::of(process)?.started;
    let exe = format!("{place}/exe");
    let executable = fs::metadata(&exe).ok().map(|of| (of.dev(), of.ino()));
    let link = fs::read_link(exe).ok()?;
    if executable.is_some() && executable == own {
        return None;
    }
    let name = link.file_name()?.to_string_lossy();
    let name = name.strip_suffix(" (deleted)").unwrap_or(&name).to_owned();
    let command = head(&format!("{place}/cmdline"))?.trim_end_matches('\0').replace('\0', " ");
    let cgroup = head(&format!("{place}/cgroup")).unwrap_or_default();
    let cgroup = cgroup.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned();
    let uid = fs::metadata(place).ok()?.uid();
    let user = users.get(&uid).cloned().unwrap_or_else(|| uid.to_string());
    Some(Found { process, started, uid, user, name, command, cgroup })
}

fn head(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(COMMAND_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn users() -> HashMap<u32, String> {
    let all = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    all.lines().filter_map(user).collect()
}

/// CPU time and start time of a process.
pub(super) struct Stat {
    pub(super) ticks: u64,
    started: u64,
}

impl Stat {
    /// Returns `None` if the process has ended.
    pub(super) fn of(process: u32) -> Option<Self> {
        let text = head(&format!("/proc/{process}/stat"))?;
        // The name in parentheses may contain spaces and parentheses.
        let fields: Vec<_> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
        let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
        Some(Self { ticks: number(11)?.saturating_add(number(12)?), started: number(19)? })
    }
}
