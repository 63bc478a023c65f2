//! A memory limit for commands. A small trace may expand to very many records, and the data kept for each record adds
//! up. A command that exceeds the limit exits with an error message; without the limit, the system might kill this or
//! another program with a signal.
//!
//! Memory is counted on allocation, so the limit applies to every command and to all libraries it uses. Mapped files
//! are not counted, because the system can reclaim their pages.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicIsize, Ordering};

/// The number of bytes that a thread counts locally before adding them to the total.
const BATCH: isize = 64 << 10;

/// The available memory assumed if the system does not report it.
const UNKNOWN: u64 = 4 << 30;

/// The number of allocated bytes that threads have added so far.
static USED: AtomicIsize = AtomicIsize::new(0);
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
static COMMAND: OnceLock<&'static str> = OnceLock::new();
/// A function called before the process exits because it exceeds the memory limit.
static BEFORE_END: OnceLock<fn()> = OnceLock::new();

thread_local! {
    /// The bytes that the thread has not yet added to the total. The variable has no destructor, so that an allocator
    /// can use it.
    static UNTOLD: Cell<isize> = const { Cell::new(0) };
}

/// The system allocator with a count of allocated bytes, for use as the `#[global_allocator]` of a command that
/// [limits](limit_memory) its memory.
#[derive(Debug)]
pub struct CountedMemory;

/// Options available for every command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct MemoryLimit {
    /// Maximum memory of the command, such as 512MiB or 8GiB [default: half of the available memory]
    #[arg(long = "max-memory", value_name = "SIZE", global = true, hide = true, value_parser = size)]
    max_memory: Option<u64>,
}

impl MemoryLimit {
    /// Returns the value of `--max-memory` in bytes, if given.
    #[must_use]
    pub fn given(self) -> Option<u64> {
        self.max_memory
    }

    /// Sets the limit. From now on, the command exits with a message and status 1 when it exceeds the limit.
    pub fn set(self, command: &'static str) {
        limit_memory(command, self.max_memory.unwrap_or_else(|| available_memory() / 2));
    }
}

/// Sets the limit in bytes. From now on, the command exits with a message and status 1 when it exceeds the limit.
pub fn limit_memory(command: &'static str, bytes: u64) {
    let _ = COMMAND.set(command);
    LIMIT.store(isize::try_from(bytes).unwrap_or(isize::MAX), Ordering::Relaxed);
}

/// Registers a function to call before the command exits for lack of memory, for example to restore the terminal. It
/// must not allocate.
pub fn before_memory_ends(act: fn()) {
    let _ = BEFORE_END.set(act);
}

/// Returns the limit in bytes.
#[must_use]
pub fn memory_limit() -> u64 {
    u64::try_from(LIMIT.load(Ordering::Relaxed)).unwrap_or(0)
}

/// Parses a number of bytes, such as `512MiB`. The minimum is 1 MiB.
fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit {
        "" => Some(0),
        "KiB" => Some(10),
        "MiB" => Some(20),
        "GiB" => Some(30),
        _ => None,
    };
    let bytes = shift.and_then(|shift| number.parse::<u64>().ok()?.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes >= 1 << 20).ok_or_else(|| "expected at least 1MiB, such as 512MiB or 8GiB".to_owned())
}

/// Returns the number of bytes still available to processes, according to the system and the control groups (cgroups)
/// of this process.
#[must_use]
pub fn available_memory() -> u64 {
    let line = |text: String| {
        let kib = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?.trim().strip_suffix(" kB")?;
        kib.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    let system = fs::read_to_string("/proc/meminfo").ok().and_then(line);
    let groups =
        fs::read_to_string("/proc/self/cgroup").ok().and_then(|groups| of_groups(&groups, Path::new("/sys/fs/cgroup")));
    system.into_iter().chain(groups).min().unwrap_or(UNKNOWN)
}

/// Returns the lowest limit of the version 2 control groups that contain the process.
fn of_groups(groups: &str, root: &Path) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limit = |folder: &Path| fs::read_to_string(folder.join("memory.max")).ok()?.trim().parse::<u64>().ok();
    root.join(own).ancestors().take_while(|folder| folder.starts_with(root)).filter_map(limit).min()
}

/// Counts a change in the allocated bytes. Ends the process if the total exceeds the limit.
#[inline]
fn count(change: isize) {
    let told = UNTOLD.try_with(|untold| {
        let sum = untold.get().wrapping_add(change);
        let tells = sum.unsigned_abs() >= BATCH.unsigned_abs();
        untold.set(if tells { 0 } else { sum });
        if tells { sum } else { 0 }
    });
    let told = told.unwrap_or(change);
    if told != 0 {
        tell(told);
    }
}

#[cold]
fn tell(change: isize) {
    let used = USED.fetch_add(change, Ordering::Relaxed).saturating_add(change);
    let limit = LIMIT.load(Ordering::Relaxed);
    if change > 0 && used > limit {
        exceeded(limit);
    }
}

/// Prints a message and ends the process, because an allocator has no other way to report an error. Nothing here
/// allocates.
fn exceeded(limit: isize) -> ! {
    if let Some(act) = BEFORE_END.get() {
        act();
    }
    let mut text = [0_u8; 256];
    let mut rest = &mut text[..];
    let command = COMMAND.get().copied().unwrap_or_default();
    let _ = writeln!(
        rest,
        "{command}: out of memory: the limit is {} MiB; to raise it, use --max-memory SIZE (default: half of the available memory)",
        limit >> 20
    );
    let left = rest.len();
    let said = text.get(..text.len() - left).unwrap_or_default();
    end(said)
}

#[cfg(unix)]
fn end(text: &[u8]) -> ! {
    // SAFETY: the buffer has this many bytes. `_exit` may be called anywhere, and runs nothing that could wait for a
    // lock or allocate.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::_exit(1)
    }
}

#[cfg(not(unix))]
fn end(_: &[u8]) -> ! {
    std::process::abort()
}

fn signed(size: usize) -> isize {
    // No layout is larger than isize::MAX.
    size.cast_signed()
}

// SAFETY: every call is forwarded unchanged to the system allocator; counting neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: the caller's guarantees are the requirements of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size).wrapping_sub(signed(layout.size())));
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("512MiB"), Ok(512 << 20));
        assert_eq!(size("1073741824"), Ok(1 << 30));
        for text in ["", "1", "1KiB", "-1MiB", "1TB", "99999999999GiB", "MiB"] {
            size(text).unwrap_err();
        }
    }

    #[test]
    fn the_least_limit_of_the_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("a/b");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("memory.max"), "max\n").unwrap();
        fs::write(root.path().join("a/memory.max"), "1048576\n").unwrap();
        assert_eq!(of_groups("1:cpu:/x\n0::/a/b\n", root.path()), Some(1 << 20));
        assert_eq!(of_groups("0::/c\n", root.path()), None);
        assert!(available_memory() > 0);
    }
}
