//! Loops as one would write them for this very layout, and for nothing else: what the general code is compared with.

use crate::runs::Alloc;
use crate::runs::{Free, Heap, Realloc};
use metatf::container::Reader;

/// The content of the chunks of section `heap`.
pub(crate) fn contents(trace: &[u8]) -> metatf::Result<Vec<Vec<u8>>> {
    let mut reader = Reader::from_slice(trace)?;
    let mut contents = Vec::new();
    while let Some(part) = reader.next_part()? {
        contents.push(reader.bytes(&part.content).to_vec());
    }
    Ok(contents)
}

fn four(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes).into())
}

fn eight(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// The sum of all fields: sizes of 4 bytes, addresses of 8, all else as the DTD says.
pub(crate) fn read(contents: &[Vec<u8>]) -> u64 {
    contents.iter().map(|data| read_chunk(data)).fold(0, u64::wrapping_add)
}

fn read_chunk(data: &[u8]) -> u64 {
    let mut sum = 0_u64;
    let mut at = 0;
    while let Some((fields, next)) = read_record(data, at) {
        sum = sum.wrapping_add(fields);
        at = next;
    }
    sum
}

#[inline(always)]
fn read_record(data: &[u8], at: usize) -> Option<(u64, usize)> {
    let (fields, end) = match *data.get(at)? {
        4 => (four(data, at + 1)?.wrapping_add(eight(data, at + 5)?), at + 13),
        5 => (eight(data, at + 1)?.wrapping_add(eight(data, at + 9)?), at + 17),
        6 => (eight(data, at + 1)?, at + 9),
        // A metadata record: the widths are known.
        _ => return Some((0, at + 4 + usize::from(*data.get(at + 3)? >> 4))),
    };
    Some((fields, end + 1 + usize::from(*data.get(end)?)))
}

/// The records one after the other, with sizes of 4 bytes and addresses of 8.
pub(crate) fn write(records: &[Heap<&[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    for record in records {
        match record {
            Heap::Alloc(Alloc { size, address, vfield, .. }) => {
                let [a, b, c, d, ..] = size.to_le_bytes();
                let [e, f, g, h, i, j, k, l] = address.to_le_bytes();
                put(&mut out, [4, a, b, c, d, e, f, g, h, i, j, k, l], vfield);
            }
            Heap::Realloc(Realloc { address, address_2, vfield, .. }) => {
                let mut bytes = [5; 17];
                bytes[1..9].copy_from_slice(&address.to_le_bytes());
                bytes[9..].copy_from_slice(&address_2.to_le_bytes());
                put(&mut out, bytes, vfield);
            }
            Heap::Free(Free { address, vfield, .. }) => {
                let [a, b, c, d, e, f, g, h] = address.to_le_bytes();
                put(&mut out, [6, a, b, c, d, e, f, g, h], vfield);
            }
            _ => {}
        }
    }
    out
}

#[inline(always)]
fn put<const N: usize>(out: &mut Vec<u8>, fixed: [u8; N], bytes: &[u8]) {
    out.extend_from_slice(&fixed);
    out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
    out.extend_from_slice(bytes);
}
