//! Small disks that fill up.

use std::ops::Deref;
use std::path::Path;
use std::process::Command;

use crate::Folder;

/// A directory on a separate in-memory file system, which is unmounted on drop. It dereferences to its path.
#[derive(Debug)]
pub struct Disk(Folder);

impl Disk {
    /// Creates a disk of a size such as `64k`. Returns `None` if this user cannot mount a disk.
    #[must_use]
    pub fn new(size: &str) -> Option<Self> {
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&*folder);
        mount.output().is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Deref for Disk {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl AsRef<Path> for Disk {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Unmount lazily, because a process being started by another test may still have a file on the disk open.
        let _ = Command::new("umount").arg("-l").arg(self.0.join(".")).status();
    }
}
