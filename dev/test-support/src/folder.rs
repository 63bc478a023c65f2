//! Temporary directories, and the directories of the project.

use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Returns the root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two directories below the root")
        .to_owned()
}

/// Returns a path in the conformance vectors.
pub fn vectors(path: impl AsRef<Path>) -> PathBuf {
    root().join("tests/vectors").join(path)
}

/// A temporary directory that is removed on drop. It dereferences to its path.
#[derive(Debug)]
pub struct Folder(tempfile::TempDir);

impl Folder {
    /// Creates an empty directory.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "creating a directory should be explicit")]
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    /// Writes a file.
    #[track_caller]
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.join(name), content).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    /// Reads a file.
    #[track_caller]
    #[must_use]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Reads a text file.
    #[track_caller]
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the length of a file in bytes.
    #[track_caller]
    #[must_use]
    pub fn size(&self, name: &str) -> u64 {
        self.join(name).metadata().unwrap_or_else(|error| panic!("{name}: {error}")).len()
    }

    /// Returns the path of a file as a command argument.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        self.join(name).display().to_string()
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}
