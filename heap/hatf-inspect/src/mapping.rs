//! The mappings of a process, for example from `/proc/N/smaps`.

/// Beginnings of the names of files that exist only in memory.
pub(crate) const OF_NO_FILE: [&str; 4] = ["/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"];

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// The first address.
    pub start: u64,
    /// The address after the last byte.
    pub end: u64,
    /// Whether the process can write to the mapping.
    pub is_writable: bool,
    /// Whether the mapping is private.
    pub is_private: bool,
    /// Whether the mapping contains code.
    pub is_code: bool,
    /// The path of the mapped file, or a name such as `[heap]`, or an empty string.
    pub name: String,
    /// The number of bytes in memory.
    pub resident: u64,
}

impl Mapping {
    /// Parses the text of `/proc/N/smaps` or `/proc/N/maps`. Lines that are not valid are skipped.
    ///
    /// # Examples
    ///
    /// ```
    /// use hatf_inspect::Mapping;
    ///
    /// let text = b"55d0c000-55d2d000 rw-p 00000000 00:00 0    [heap]\nSize:   132 kB\nRss:     64 kB\n";
    /// let [heap] = &Mapping::parse(text)[..] else { panic!() };
    /// assert_eq!((&*heap.name, heap.start, heap.resident), ("[heap]", 0x55d0_c000, 64 << 10));
    /// ```
    #[must_use]
    pub fn parse(text: &[u8]) -> Vec<Self> {
        let mut mappings: Vec<Self> = Vec::new();
        for line in String::from_utf8_lossy(text).lines() {
            if let Some(mapping) = mapping(line) {
                mappings.push(mapping);
            } else if let Some((last, size)) = mappings.last_mut().zip(line.strip_prefix("Rss:")) {
                let kilobytes = size.trim().strip_suffix("kB").and_then(|size| size.trim().parse::<u64>().ok());
                last.resident = kilobytes.unwrap_or_default().saturating_mul(1024);
            }
        }
        mappings
    }

    /// Returns whether an address is in the mapping.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Returns whether the mapping is memory of no file that the process can write to.
    pub(crate) fn is_anonymous_data(&self) -> bool {
        self.is_writable && self.is_private && (self.name.is_empty() || self.name.starts_with("[anon"))
    }

    /// Returns whether the mapping is of a file.
    pub(crate) fn is_file(&self) -> bool {
        self.name.starts_with('/')
    }
}

/// Parses the first line of a mapping.
fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let access = words.next()?;
    let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    let has = |letter| access.contains(letter);
    (start < end && access.len() == 4).then(|| Mapping {
        start,
        end,
        is_writable: has('w'),
        is_private: has('p'),
        is_code: has('x'),
        name: words.nth(3).unwrap_or_default().trim_start().to_owned(),
        resident: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_lines() {
        let text = b"1000-2000 rw-p 0 fe:00 7   /x/\xff y.so.6 (deleted)\nRss: 4 kB\nRss: x kB\n2000-1000 rw-p 0 0 0\n\
            2000-3000 r\n-\nffffffffffffffff-0 rwxp 0 0:0 1\n10000000000000000-1 r-xp 0 0:0 1\n3000-4000 r-xs 0 0 0\n\
            Rss: 18446744073709551615 kB";
        let found = Mapping::parse(text);
        let [first, second] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&*first.name, first.resident, first.is_writable), ("/x/\u{fffd} y.so.6 (deleted)", 0, true));
        assert_eq!((second.resident, second.is_code, second.is_private), (u64::MAX, true, false));
        for at in 0..text.len() {
            assert!(Mapping::parse(&text[..at]).len() <= 2);
        }
    }
}
