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
    least_of(&own_groups(), Path::new(ROOT), u64::saturating_sub).unwrap_or(u64::MAX)
}

/// Returns the bytes to which the control groups of this process are limited, or `None` if they are not limited.
pub(crate) fn limit() -> Option<u64> {
    least_of(&own_groups(), Path::new(ROOT), |limit, _| limit)
}

fn own_groups() -> String {
    fs::read_to_string("/proc/self/cgroup").unwrap_or_default()
}

/// The largest limit in bytes. A group of version 1 without a limit has a larger number.
const MOST: u64 = 1 << 60;

/// Returns the minimum of a value that `of` computes from the limit and the use of each group, or `None` if no group has
/// a limit. The groups are given in the format of `/proc/self/cgroup`: `0::/user.slice` in version 2, `4:memory:/user` in
/// version 1.
fn least_of(groups: &str, root: &Path, of: fn(u64, u64) -> u64) -> Option<u64> {
    let of_line = |line: &str| {
        let (_, named) = line.split_once(':')?;
        let (controllers, group) = named.split_once(':')?;
        if controllers.is_empty() {
            return least(root, group, ["memory.max", "memory.current"], of);
        }
        let names = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
        let has_memory = controllers.split(',').any(|name| name == "memory");
        has_memory.then(|| least(&root.join("memory"), group, names, of)).flatten()
    };
    groups.lines().filter_map(of_line).min()
}

/// Returns the minimum of the value of a group and its ancestors. In a separate namespace, the outermost group is
/// the group itself.
fn least(root: &Path, group: &str, [limit, used]: [&str; 2], of: fn(u64, u64) -> u64) -> Option<u64> {
    let inner = root.join(group.trim_start_matches('/'));
    let around = inner.ancestors().take_while(|folder| folder.starts_with(root));
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Without a limit, the text is `max` or a number that exceeds any machine's memory.
    let limits = around.filter_map(|folder| Some((number(folder.join(limit))?, number(folder.join(used))?)));
    limits.filter(|(limit, _)| *limit < MOST).map(|(limit, used)| of(limit, used)).min()
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
        let left = |groups| least_of(groups, root.path(), u64::saturating_sub).unwrap_or(u64::MAX);
        let limit = |groups| least_of(groups, root.path(), |limit, _| limit);
        assert_eq!(left("0::/a/b\n"), 700);
        assert_eq!(left("0::/a/b/not/here\n"), 700);
        assert_eq!(left("0::/a\n"), u64::MAX);
        assert_eq!(left("9:name=systemd:/\n4:cpu,memory:/c\n0::/a/b\n"), 500);
        assert_eq!(left("1:cpu:/c\n"), u64::MAX);
        assert_eq!(left(""), u64::MAX);
        write("memory/d/memory.limit_in_bytes", "9223372036854771712\n");
        write("memory/d/memory.usage_in_bytes", "100\n");
        assert_eq!(
            [limit("0::/a/b\n"), limit("4:memory:/c\n0::/a/b\n"), limit("0::/a\n")],
            [Some(1000), Some(600), None]
        );
        assert_eq!((limit("4:memory:/d\n"), left("4:memory:/d\n")), (None, u64::MAX));
    }
}
