//! The memory that the system allows this process and its children to use. A control group (a container) may be limited
//! to less memory than the machine has.
//!
//! A spool in memory counts toward the memory of its programs, and the system kills a group that uses too much.

use std::fs;
use std::path::{Path, PathBuf};

/// The mount point of control groups.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns the bytes that the control groups of this process may still use, or `u64::MAX` if they are not limited.
#[must_use]
pub fn left() -> u64 {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    left_of(&groups, Path::new(ROOT))
}

/// Returns the bytes left to groups, given in the format of `/proc/self/cgroup`: `0::/user.slice` in version 2,
/// `4:memory:/user` in version 1.
fn left_of(groups: &str, root: &Path) -> u64 {
    let of_line = |line: &str| {
        let (_, named) = line.split_once(':')?;
        let (controllers, group) = named.split_once(':')?;
        if controllers.is_empty() {
            return Some(least(root, group, ["memory.max", "memory.current"]));
        }
        let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
        controllers.split(',').any(|name| name == "memory").then(|| least(&root.join("memory"), group, names))
    };
    groups.lines().filter_map(of_line).min().unwrap_or(u64::MAX)
}

/// Returns the minimum of the bytes left to a group and its ancestors. In a separate namespace, the outermost group is
/// the group itself.
fn least(root: &Path, group: &str, [limit, used]: [&str; 2]) -> u64 {
    let inner = root.join(group.trim_start_matches('/'));
    let around = inner.ancestors().take_while(|folder| folder.starts_with(root));
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Without a limit, the text is `max` or a number that exceeds any machine's memory.
    around
        .filter_map(|folder| Some(number(folder.join(limit))?.saturating_sub(number(folder.join(used))?)))
        .min()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/memory.max", "max\n");
        write("a/memory.current", "5\n");
        write("a/b/memory.max", "1000\n");
        write("a/b/memory.current", "300\n");
        write("memory/c/memory.limit_in_bytes", "600\n");
        write("memory/c/memory.usage_in_bytes", "100\n");
        let left = |groups| left_of(groups, root.path());
        assert_eq!(left("0::/a/b\n"), 700);
        assert_eq!(left("0::/a/b/not/here\n"), 700);
        assert_eq!(left("0::/a\n"), u64::MAX);
        assert_eq!(left("9:name=systemd:/\n4:cpu,memory:/c\n0::/a/b\n"), 500);
        assert_eq!(left("1:cpu:/c\n"), u64::MAX);
        assert_eq!(left(""), u64::MAX);
    }
}
