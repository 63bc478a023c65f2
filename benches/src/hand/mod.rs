//! Loops as one would write them for the very bytes at hand, and for no others: what general code is compared with.
//! They are safe Rust, know at compile time what they can, and take the content of a trace's chunks laid end to end: no
//! header to read, no check sum, no chunk that ends. [`stored`] alone takes a trace as it is, and verifies its check sums.

pub mod best;
pub mod packed;
pub mod plain;
pub mod stored;

use crate::Result;
use metatf::container::Reader;

/// The content of the data chunks of a trace that has one section, end to end.
///
/// # Errors
/// What is wrong with the trace.
pub fn content(trace: &[u8]) -> Result<Vec<u8>> {
    let mut reader = Reader::from_slice(trace)?;
    let mut content = Vec::new();
    while let Some(part) = reader.next_part()? {
        content.extend_from_slice(reader.bytes(&part.content));
    }
    Ok(content)
}

/// The sum over the bytes, 8 at a time: as fast as the machine reads memory.
#[must_use]
pub fn bandwidth(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(byte.into()))
}

fn four(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into())
}

/// What follows this many bytes. That there are none is the rule, and a branch that guesses so does not wait for the length.
#[inline(always)]
fn skip(data: &[u8], length: u64) -> Option<&[u8]> {
    if length == 0 { Some(data) } else { data.get(usize::try_from(length).ok()?..) }
}
