//! The names of features in the header (spec 5.2). For each feature bit that is set, the header contains a length byte
//! and the name.

use super::features::{Features, LONGEST};
use crate::{Error, ErrorKind, Result};

/// Maximum size of the names of 64 features in bytes.
pub(crate) const MOST_BYTES: usize = 64 * (1 + LONGEST);

/// Reads the names of the features whose bits are set, starting at offset `at` of the header in `bytes`. Returns them
/// with the offset after the last name.
pub(crate) fn parse(numbers: u64, bytes: &[u8], mut at: usize) -> Result<(Features, usize)> {
    let wrong = |at: usize, kind| Error::at(at as u64, kind);
    let cut = |at: usize| wrong(at, ErrorKind::Truncated("the names of the header's features"));
    let (mut features, mut used) = (Features::new(numbers), 0);
    for _ in 0..numbers.count_ones() {
        let length = *bytes.get(at).ok_or_else(|| cut(at))?;
        if !(1..=LONGEST).contains(&usize::from(length)) {
            let what = "the length of a feature's name";
            return Err(wrong(at, ErrorKind::Invalid { what, found: length.into(), expected: "1 to 31" }));
        }
        at += 1;
        let name = bytes.get(at..at + usize::from(length)).ok_or_else(|| cut(at))?;
        let in_name = |b: &u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if let Some((index, &found)) = name.iter().enumerate().find(|(_, b)| !in_name(b)) {
            let (what, expected) = ("a byte of a feature's name", "a lower-case letter, a digit or `-`");
            return Err(wrong(at + index, ErrorKind::Invalid { what, found: found.into(), expected }));
        }
        used = features.keep_name(used, name);
        at += name.len();
    }
    Ok((features, at))
}
