//! The hand-written loops of plain HATF 1.0 over a complete version 1 trace with stored chunks, each verified by its
//! checksum, so that they read the same bytes as the generic reader. Also contains the loop that writes such chunks.

use super::{four, plain};
use crate::{Counts, Event};

const CHUNK_HEADER: usize = 48;
/// A chunk ends after the record that reaches this many bytes.
const CHUNK: usize = 1 << 20;
const DATA: u8 = 0;
const INDEX: u8 = 2;

/// Returns the contents of the data chunks of a little-endian trace of 64-bit class, in order. A corrupt chunk yields
/// `None`.
fn contents(trace: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let start = trace.get(24..).and_then(<[u8]>::first_chunk).map(|start| u64::from_le_bytes(*start));
    chunks(start.and_then(|start| trace.get(usize::try_from(start).ok()?..)).unwrap_or_default())
}

/// Works like [`contents`], but starts with the first chunk.
fn chunks(mut rest: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
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

/// Returns the CRC-32C of a chunk, computed over its header up to the checksum and over its contents.
fn sum(header: &[u8; CHUNK_HEADER], content: &[u8]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&header[..44]);
    digest.update(content);
    digest.finalize()
}

/// Returns the result of [`plain::all`] for a complete trace.
#[must_use]
pub fn all(trace: &[u8]) -> Option<u64> {
    contents(trace).try_fold(0_u64, |sum, content| Some(sum.wrapping_add(plain::all(content?)?)))
}

/// Returns the result of [`plain::one`] for a complete trace.
#[must_use]
pub fn one(trace: &[u8]) -> Option<u64> {
    contents(trace).try_fold(0_u64, |sum, content| Some(sum.wrapping_add(plain::one(content?)?)))
}

/// Returns the result of [`plain::count`] for a complete trace.
#[must_use]
pub fn count(trace: &[u8]) -> Option<Counts> {
    contents(trace).try_fold([0; 3], |[a, b, c], content| {
        let [more_a, more_b, more_c] = plain::count(content?)?;
        Some([a + more_a, b + more_b, c + more_c])
    })
}

/// Writes the chunks of a trace, with the header fields required to find and verify them.
pub fn write(events: &[Event], out: &mut Vec<u8>) {
    out.clear();
    let mut events = events.iter();
    while !events.as_slice().is_empty() {
        let start = out.len();
        out.extend_from_slice(&[0; CHUNK_HEADER]);
        let full = start + CHUNK_HEADER + CHUNK;
        while out.len() < full
            && let Some(event) = events.next()
        {
            plain::put(event, out);
        }
        let Some((header, content)) = out.get_mut(start..).and_then(<[u8]>::split_first_chunk_mut) else { return };
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX).to_le_bytes();
        header[12..16].copy_from_slice(&length);
        header[16..20].copy_from_slice(&length);
        let [a, b, c, d, ..] = sum(header, content).to_le_bytes();
        header[44..].copy_from_slice(&[a, b, c, d]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let events: Vec<Event> = (0..200_000).map(|i| Event::Alloc { size: i % 4096, address: 16 * i }).collect();
        let (mut plain, mut stored) = (Vec::new(), Vec::new());
        plain::write(&events, &mut plain);
        write(&events, &mut stored);
        let contents: Vec<_> = chunks(&stored).map(Option::unwrap).collect();
        assert!(contents.len() > 1 && contents.concat() == plain);
        stored[100] ^= 1;
        assert_eq!(chunks(&stored).next(), Some(None));
    }
}
