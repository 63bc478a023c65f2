//! The mappings of a process, from `/proc/N/maps`.

use std::fs;

use hatf_trace::{Error, Result};

/// A line of `/proc/N/maps`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_code: bool,
    /// The device and the inode of the mapped file.
    pub(super) file: (String, u64),
    pub(super) path: String,
}

/// Parses a line. Returns `None` if the line is not valid.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let (access, _, device, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Mapping {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        is_code: access.contains('x'),
        file: (device.to_owned(), inode.parse().ok()?),
        path: words.next().unwrap_or_default().trim_start().to_owned(),
    })
}

/// Reads the mappings of a process, given by its ID or as `self`.
pub(super) fn mappings(process: &str) -> Result<Vec<Mapping>> {
    let path = format!("/proc/{process}/maps");
    Ok(mappings_of(&fs::read(&path).map_err(Error::system(path))?))
}

/// Parses the lines. File names may contain any bytes.
pub(super) fn mappings_of(text: &[u8]) -> Vec<Mapping> {
    String::from_utf8_lossy(text).lines().filter_map(mapping).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "7f0b2e628000-7f0b2e77d000 r-xp 00026000 fe:00 1234                       /usr/lib/x y/libc.so.6";
        let found = mapping(line).unwrap();
        assert_eq!((found.start, found.end, found.is_code), (0x7f0b_2e62_8000, 0x7f0b_2e77_d000, true));
        assert_eq!((&*found.path, found.file), ("/usr/lib/x y/libc.so.6", ("fe:00".to_owned(), 1234)));
        for wrong in ["", "1", "1-2", "1-2 r-xp 0 fe:00", "x-2 r-xp 0 fe:00 1", "1-2 r-xp 0 fe:00 x"] {
            assert_eq!(mapping(wrong), None);
        }
        assert_eq!(mapping("1-2 rw-p 0 00:00 0").unwrap().path, "");
        let far = mapping("ffffffffffffffff-0 rwxp 0 0:0 18446744073709551615").unwrap();
        assert_eq!((far.start, far.end, far.file.1), (u64::MAX, 0, u64::MAX));
        assert_eq!(mapping("10000000000000000-1 r-xp 0 0:0 1"), None);
    }
}
