//! Plain HATF 1.0: 4-byte sizes, 8-byte addresses, attributes of any length, and nothing else stored.

use super::{four, skip};
use crate::{Counts, Event};

const METADATA: u8 = 3;
const ALLOC: u8 = 4;
const REALLOC: u8 = 5;
const FREE: u8 = 6;

/// Returns the sum of all fields and of the lengths of the attributes. Returns `None` if the content ends in the middle
/// of a record or contains a record of a different kind.
#[must_use]
pub fn all(mut data: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    while let Some((&tag, rest)) = data.split_first() {
        let (fields, length, rest) = match tag {
            ALLOC => {
                let (&[a, b, c, d, e, f, g, h, i, j, k, l, length], rest) = rest.split_first_chunk()?;
                let size = u64::from(u32::from_le_bytes([a, b, c, d]));
                (size.wrapping_add(u64::from_le_bytes([e, f, g, h, i, j, k, l])), length, rest)
            }
            REALLOC => {
                let (&[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, length], rest) = rest.split_first_chunk()?;
                let old = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                (old.wrapping_add(u64::from_le_bytes([i, j, k, l, m, n, o, p])), length, rest)
            }
            FREE => {
                let (&[a, b, c, d, e, f, g, h, length], rest) = rest.split_first_chunk()?;
                (u64::from_le_bytes([a, b, c, d, e, f, g, h]), length, rest)
            }
            _ => {
                data = metadata(tag, rest)?;
                continue;
            }
        };
        sum = sum.wrapping_add(fields).wrapping_add(length.into());
        data = skip(rest, length.into())?;
    }
    Some(sum)
}

/// Returns the total size of all allocations.
#[must_use]
pub fn one(mut data: &[u8]) -> Option<u64> {
    let mut sum = 0_u64;
    while let Some((&tag, rest)) = data.split_first() {
        let (length, rest) = match tag {
            ALLOC => {
                sum = sum.wrapping_add(four(rest)?);
                rest.get(12..)?.split_first()?
            }
            REALLOC => rest.get(16..)?.split_first()?,
            FREE => rest.get(8..)?.split_first()?,
            _ => {
                data = metadata(tag, rest)?;
                continue;
            }
        };
        data = skip(rest, (*length).into())?;
    }
    Some(sum)
}

/// Returns the number of events of each kind.
#[must_use]
pub fn count(mut data: &[u8]) -> Option<Counts> {
    let mut counts = [0; 3];
    while let Some((&tag, rest)) = data.split_first() {
        let [allocs, reallocs, frees] = &mut counts;
        let (count, stored) = match tag {
            ALLOC => (allocs, 12),
            REALLOC => (reallocs, 16),
            FREE => (frees, 8),
            _ => {
                data = metadata(tag, rest)?;
                continue;
            }
        };
        *count += 1;
        let (length, rest) = rest.get(stored..)?.split_first()?;
        data = skip(rest, (*length).into())?;
    }
    Some(counts)
}

/// Skips a metadata record, whose meaning is known, and returns the remaining data. The record consists of record,
/// field, property (with the length of the value) and value.
#[cold]
fn metadata(tag: u8, rest: &[u8]) -> Option<&[u8]> {
    match rest {
        [_, _, property, rest @ ..] if tag == METADATA => rest.get(usize::from(property >> 4)..),
        _ => None,
    }
}

/// Writes the records without attributes.
pub fn write(events: &[Event], out: &mut Vec<u8>) {
    out.clear();
    events.iter().for_each(|event| put(event, out));
}

/// Writes a record without attributes.
#[inline(always)]
pub(super) fn put(event: &Event, out: &mut Vec<u8>) {
    match *event {
        Event::Alloc { size, address } => {
            let [a, b, c, d, ..] = size.to_le_bytes();
            let [e, f, g, h, i, j, k, l] = address.to_le_bytes();
            out.extend_from_slice(&[ALLOC, a, b, c, d, e, f, g, h, i, j, k, l, 0]);
        }
        Event::Realloc { old, address, .. } => {
            let [a, b, c, d, e, f, g, h] = old.to_le_bytes();
            let [i, j, k, l, m, n, o, p] = address.to_le_bytes();
            out.extend_from_slice(&[REALLOC, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, 0]);
        }
        Event::Free { address } => {
            let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
            out.extend_from_slice(&[FREE, a, b, c, d, e, f, g, h, 0]);
        }
    }
}
