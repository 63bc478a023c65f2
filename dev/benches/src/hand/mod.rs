//! Loops written by hand for one specific format, as a baseline for generic code. They are safe Rust, use everything
//! known at compile time, and process the concatenated contents of a trace's chunks, without headers, checksums or
//! chunk ends. Only [`stored`] processes a complete trace and verifies its checksums.

pub mod best;
pub mod packed;
pub mod plain;
pub mod stored;

use crate::Result;
use metatf::container::Reader;

/// Returns the concatenated contents of the data chunks of a trace with a single section.
///
/// # Errors
/// Returns the errors of the trace.
pub fn content(trace: &[u8]) -> Result<Vec<u8>> {
    let mut reader = Reader::from_slice(trace)?;
    let mut content = Vec::new();
    while let Some(part) = reader.next_part()? {
        content.extend_from_slice(reader.bytes(&part.content));
    }
    Ok(content)
}

/// Returns the sum over the bytes, 8 at a time, which is as fast as the machine reads memory.
#[must_use]
pub fn bandwidth(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(words, |sum, &byte| sum.wrapping_add(byte.into()))
}

fn four(data: &[u8]) -> Option<u64> {
    data.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into())
}

/// Skips this many bytes and returns the remaining data. The length is usually 0, and with a separate branch for 0, the
/// CPU can continue before the length is known.
#[inline(always)]
fn skip(data: &[u8], length: u64) -> Option<&[u8]> {
    if length == 0 { Some(data) } else { data.get(usize::try_from(length).ok()?..) }
}
