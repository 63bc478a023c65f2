//! The names of features in the header (spec 5.2). For each feature bit that is set, the header contains a length byte
//! and the name.

use super::features::{Features, LONGEST};
use crate::{Error, ErrorKind, Result};

/// Feature 0, `columns`: chunks may use filter 4.
pub(crate) const COLUMNS: u64 = 1 << 0;

/// The numbers and names of the features that this version supports.
const SUPPORTED: [(u8, &[u8]); 1] = [(0, b"columns")];

/// Maximum size of the names of 64 features in bytes.
pub(crate) const MOST_BYTES: usize = 64 * (1 + LONGEST);

/// Returns the supported features among these, with their names.
fn names(features: u64) -> impl Iterator<Item = &'static [u8]> {
    SUPPORTED.into_iter().filter(move |(number, _)| features >> number & 1 != 0).map(|(_, name)| name)
}

/// Returns the size of the names of these features in the header.
pub(crate) fn size(features: u64) -> usize {
    names(features).map(|name| 1 + name.len()).sum()
}

/// Appends the names of these features, each after its length.
#[allow(clippy::cast_possible_truncation, reason = "names have at most 31 bytes")]
pub(crate) fn emit(features: u64, out: &mut Vec<u8>) {
    for name in names(features) {
        out.push(name.len() as u8);
        out.extend_from_slice(name);
    }
}

/// Reads the names of the features whose bits are set, starting at offset `at` of the header in `bytes`. Returns a bit
/// mask of the supported features, the other features, and the offset after the last name.
pub(crate) fn parse(numbers: u64, bytes: &[u8], mut at: usize) -> Result<(u64, Features, usize)> {
    let wrong = |at: usize, kind| Error::at(at as u64, kind);
    let cut = |at: usize| wrong(at, ErrorKind::Truncated("the names of the header's features"));
    let (mut supported, mut used) = (0, 0);
    let mut unknown = Features::new(0);
    for number in (0..64).filter(|number| numbers >> number & 1 != 0) {
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
        if SUPPORTED.contains(&(number, name)) {
            supported |= 1 << number;
        } else {
            used = unknown.add(number, used, name);
        }
        at += name.len();
    }
    Ok((supported, unknown, at))
}
