//! The hand-written loops of plain HATF 1.0 over a whole version 1 trace of stored chunks, each verified by its check sum: what is read is what
//! the general reader reads.

use super::{four, plain};
use crate::Counts;

const CHUNK_HEADER: usize = 48;
const DATA: u8 = 0;
const INDEX: u8 = 2;

/// The contents of the data chunks of a little-endian trace of 64-bit class, in order. `None` in the place of one that is damaged.
fn contents(trace: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let start = trace.get(24..).and_then(<[u8]>::first_chunk).map(|start| u64::from_le_bytes(*start));
    let mut rest = start.and_then(|start| trace.get(usize::try_from(start).ok()?..)).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let (header, behind) = rest.split_first_chunk::<CHUNK_HEADER>()?;
            let length = four(&header[12..]).and_then(|length| usize::try_from(length).ok())?;
            let Some((content, behind)) = behind.split_at_checked(length) else {
                rest = &[];
                return Some(None);
            };
            rest = behind;
            match header[5] {
                DATA => return Some((four(&header[44..]) == Some(sum(header, content))).then_some(content)),
                INDEX => return None,
                _ => {}
            }
        }
    })
}

/// CRC-32C of a chunk: of its header up to the sum, and of its content.
fn sum(header: &[u8; CHUNK_HEADER], content: &[u8]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&header[..44]);
    digest.update(content);
    digest.finalize()
}

/// As [`plain::all`].
#[must_use]
pub fn all(trace: &[u8]) -> Option<u64> {
    contents(trace).try_fold(0_u64, |sum, content| Some(sum.wrapping_add(plain::all(content?)?)))
}

/// As [`plain::one`].
#[must_use]
pub fn one(trace: &[u8]) -> Option<u64> {
    contents(trace).try_fold(0_u64, |sum, content| Some(sum.wrapping_add(plain::one(content?)?)))
}

/// As [`plain::count`].
#[must_use]
pub fn count(trace: &[u8]) -> Option<Counts> {
    contents(trace).try_fold([0; 3], |[a, b, c], content| {
        let [more_a, more_b, more_c] = plain::count(content?)?;
        Some([a + more_a, b + more_b, c + more_c])
    })
}
