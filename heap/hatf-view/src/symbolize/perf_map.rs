//! `perf-PID.map` files, which list functions generated at run time in the format of Linux perf.

use std::io::{BufRead, BufReader, Read};

/// Maximum length of a line; longer lines are ignored.
const LINE: u64 = 1 << 16;

/// Maximum size of a map. The maps of large Java programs reach 10 MiB.
const MAP: u64 = 256 << 20;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    start: u64,
    end: u64,
    name: String,
}

/// The functions of a process, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct PerfMap(Vec<Entry>);

impl PerfMap {
    /// Reads lines that consist of a start and a size in hexadecimal and a name. Skips other lines. If two functions
    /// begin at the same address, the later line is used, because it describes the newer code.
    ///
    /// # Errors
    /// The input failed, or it exceeds the maximum size of a map.
    pub(super) fn read(input: impl Read) -> std::io::Result<Self> {
        let (mut input, mut line, mut entries) = (BufReader::new(input).take(MAP + 1), Vec::new(), Vec::new());
        loop {
            line.clear();
            if input.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            entries.extend(parse(&String::from_utf8_lossy(&line)));
        }
        if input.limit() == 0 {
            return Err(std::io::Error::other("it exceeds 256 MiB"));
        }
        // The sort is stable, so of several functions with the same start, the last one remains last.
        entries.sort_by_key(|entry: &Entry| entry.start);
        Ok(Self(entries))
    }

    /// Returns the function that contains a frame. A frame is a return address, so the call precedes it.
    pub(super) fn find(&self, frame: u64) -> Option<&str> {
        let call = frame.checked_sub(1)?;
        let behind = self.0.partition_point(|entry| entry.start <= call);
        let entry = self.0.get(behind.checked_sub(1)?)?;
        (call < entry.end).then_some(&entry.name)
    }
}

fn parse(line: &str) -> Option<Entry> {
    let mut parts = line.trim_end().splitn(3, ' ');
    let mut number = || u64::from_str_radix(parts.next()?.trim_start_matches("0x"), 16).ok();
    let (start, size) = (number()?, number()?);
    let name = parts.next()?.to_owned();
    Some(Entry { start, end: start.checked_add(size)?, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_by_address() {
        let text = "1000 10 old\n2000 20 LazyCompile:~f a.js:1\nnonsense\n\nffffffffffffffff 2 over\n1000 8 new\n0x3000 0x10 g\n";
        let map = PerfMap::read(text.as_bytes()).unwrap();
        let found = [0x1000, 0x1001, 0x1008, 0x1009, 0x2020, 0x2021, 0x3001, 0, u64::MAX].map(|frame| map.find(frame));
        let f = Some("LazyCompile:~f a.js:1");
        assert_eq!(found, [None, Some("new"), Some("new"), None, f, None, Some("g"), None, None]);
    }
}
