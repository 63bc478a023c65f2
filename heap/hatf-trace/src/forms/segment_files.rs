//! The files of a directory of segments.

use std::ffi::OsStr;
use std::path::Path;

use crate::{Error, Result};

/// The number of digits in the name of a segment.
const DIGITS: usize = 6;

/// The segments in a directory.
///
/// # Examples
///
/// ```
/// use hatf_trace::forms::Segments;
///
/// assert_eq!(Segments::name(17), "000017.mtf");
/// assert_eq!(Segments::unfinished_name(18), "000018.part");
/// let folder = tempfile::tempdir()?;
/// for name in ["000018.part", "000017.mtf", "000016.mtf", "notes.mtf"] {
///     std::fs::write(folder.path().join(name), "")?;
/// }
/// let segments = Segments::list(folder.path())?;
/// assert_eq!((segments.complete, segments.unfinished), (vec![16, 17], vec![18]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    /// The numbers of the complete segments, in ascending order.
    pub complete: Vec<u64>,
    /// The numbers of segments that are being written or whose recording was interrupted, in ascending order.
    pub unfinished: Vec<u64>,
}

impl Segments {
    /// Returns the file name of a complete segment.
    #[must_use]
    pub fn name(number: u64) -> String {
        format!("{number:0DIGITS$}.mtf")
    }

    /// Returns the file name of a segment that is being written.
    #[must_use]
    pub fn unfinished_name(number: u64) -> String {
        format!("{number:0DIGITS$}.part")
    }

    /// Lists the segments in a directory. Other files are ignored.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(folder: &Path) -> Result<Self> {
        let name = || folder.display().to_string();
        let mut segments = Self::default();
        for entry in std::fs::read_dir(folder).map_err(Error::system(name()))? {
            let file = entry.map_err(Error::system(name()))?.file_name();
            if let Some(number) = number_of(&file, ".mtf") {
                segments.complete.push(number);
            } else if let Some(number) = number_of(&file, ".part") {
                segments.unfinished.push(number);
            }
        }
        segments.complete.sort_unstable();
        segments.unfinished.sort_unstable();
        Ok(segments)
    }

    /// Returns whether there are no segments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.complete.is_empty() && self.unfinished.is_empty()
    }
}

/// Returns the number in the name of a segment.
fn number_of(file: &OsStr, suffix: &str) -> Option<u64> {
    let digits = file.to_str()?.strip_suffix(suffix)?;
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    // Each number has only one name.
    (format!("{number:0DIGITS$}") == digits).then_some(number)
}
