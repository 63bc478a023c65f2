//! `SUMS`, the file that pins the other files.

use super::{lines, names, schema};
use std::fmt::{self, Write as _};
use std::path::Path;

/// Computes the CRC-32C that the container uses (spec 5.2).
fn crc(bytes: &[u8]) -> u32 {
    let divided = |crc: u32| crc >> 1 ^ if crc & 1 == 1 { 0x82F6_3B78 } else { 0 };
    !bytes.iter().fold(!0, |crc: u32, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| divided(crc)))
}

/// Length and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Number of bytes or lines.
    pub count: usize,
    /// CRC-32C.
    pub crc: u32,
}

impl Sum {
    /// Sums the bytes of a file.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self { count: bytes.len(), crc: crc(bytes) }
    }

    /// Sums lines, including their line ends.
    #[must_use]
    pub fn of_lines(lines: &str) -> Self {
        Self { count: lines.lines().count(), crc: crc(lines.as_bytes()) }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:08x}", self.count, self.crc)
    }
}

/// Content of `SUMS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Whether the files are frozen.
    pub released: bool,
    /// Name of each file, and its sums as returned by [`sum`].
    pub files: Vec<(String, [Sum; 3])>,
}

/// Returns the sums of a file that `SUMS` lists: of its bytes, of the JSON lines of its records, and of all its lines.
///
/// # Panics
/// Panics if the file cannot be read.
#[must_use]
pub fn sum(folder: &Path, name: &str, bytes: &[u8]) -> [Sum; 3] {
    let schema = schema(folder, name, bytes);
    let of = |all| Sum::of_lines(&lines(&schema, name, bytes, all).unwrap_or_else(|e| panic!("{name}: {e}")));
    [Sum::of(bytes), of(false), of(true)]
}

impl Sums {
    /// Name of the file.
    pub const NAME: &'static str = "SUMS";

    /// Computes the sums of the current files in a directory.
    ///
    /// # Panics
    /// Panics if a file cannot be read.
    #[must_use]
    pub fn of_folder(folder: &Path) -> Self {
        let sum_of = |name: String| {
            let bytes = std::fs::read(folder.join(&name)).expect("a file of the folder");
            let sums = sum(folder, &name, &bytes);
            (name, sums)
        };
        Self { released: false, files: names(folder).into_iter().map(sum_of).collect() }
    }

    /// Reads `SUMS` of a directory. Returns `None` if there is no such file.
    ///
    /// # Panics
    /// Panics if the file differs from the format that [`text`](Self::text) writes.
    #[must_use]
    pub fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(Self::NAME)).ok()?;
        let mut lines = text.lines();
        let released = match lines.next() {
            Some("candidate") => false,
            Some("released") => true,
            other => panic!("the first line of SUMS is candidate or released, not {other:?}"),
        };
        let file = |line: &str| {
            let mut words = line.split(' ');
            let name = words.next().expect("a name").to_owned();
            let mut sum = || Sum {
                count: words.next().and_then(|n| n.parse().ok()).expect("a count"),
                crc: words.next().and_then(|n| u32::from_str_radix(n, 16).ok()).expect("a CRC-32C"),
            };
            (name, [sum(), sum(), sum()])
        };
        Some(Self { released, files: lines.map(file).collect() })
    }

    /// Returns the text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = if self.released { "released\n" } else { "candidate\n" }.to_owned();
        for (name, [file, records, all]) in &self.files {
            let _ = writeln!(text, "{name} {file} {records} {all}");
        }
        text
    }
}
