//! The Python version of a recorded process.

use std::fmt;

use hatf_record::PYTHON_UNKNOWN;

/// The version of a Python interpreter whose frames were to be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonVersion {
    major: u32,
    minor: u32,
    /// Whether this version is supported, which means that its frames appear in the stacks.
    pub is_known: bool,
}

impl PythonVersion {
    /// Decodes the version written by the process. Returns `None` if the process has no Python.
    pub(crate) fn of(word: u32) -> Option<Self> {
        let (major, minor) = (word >> 8 & 0xff, word & 0xff);
        (word != 0).then_some(Self { major, minor, is_known: word & PYTHON_UNKNOWN == 0 })
    }
}

impl fmt::Display for PythonVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.major, self.minor) {
            // Versions before 3.11 do not export their version number.
            (0, _) => f.write_str("Python before 3.11"),
            (3, 11..=13) if !self.is_known => write!(f, "free-threaded Python 3.{}", self.minor),
            (major, minor) => write!(f, "Python {major}.{minor}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let text = |word: u32| PythonVersion::of(word).map(|version| (version.to_string(), version.is_known));
        assert_eq!(text(0), None);
        assert_eq!(text(0x30b), Some(("Python 3.11".to_owned(), true)));
        assert_eq!(text(PYTHON_UNKNOWN), Some(("Python before 3.11".to_owned(), false)));
        assert_eq!(text(PYTHON_UNKNOWN | 0x30f), Some(("Python 3.15".to_owned(), false)));
        assert_eq!(text(PYTHON_UNKNOWN | 0x30d), Some(("free-threaded Python 3.13".to_owned(), false)));
    }
}
