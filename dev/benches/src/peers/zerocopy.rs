//! zerocopy: 32-byte structs, read in place. Nothing is encoded, so the speed is an upper bound rather than a fair
//! comparison.

use super::Call;
use crate::{Counts, Result};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// An event.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Fixed {
    tag: U64,
    size: U64,
    address: U64,
    old: U64,
}

const ALLOC: u64 = 4;
const REALLOC: u64 = 5;
const FREE: u64 = 6;

/// Writes the events.
pub fn encode(calls: &[Call], out: &mut Vec<u8>) {
    out.clear();
    for call in calls {
        let [tag, size, address, old] = match *call {
            Call::Alloc { size, address } => [ALLOC, size, address, 0],
            Call::Realloc { old, address } => [REALLOC, 0, address, old],
            Call::Free { address } => [FREE, 0, address, 0],
        }
        .map(U64::new);
        out.extend_from_slice(Fixed { tag, size, address, old }.as_bytes());
    }
}

/// Returns the structs in the bytes.
///
/// # Errors
/// Fails if the length is not a multiple of the struct size.
pub fn structs(bytes: &[u8]) -> Result<&[Fixed]> {
    <[Fixed]>::ref_from_bytes(bytes).map_err(|_| "not a multiple of 32 bytes".into())
}

/// Returns the sum of all fields except for the tag.
///
/// # Errors
/// Fails if the length is not a multiple of 32.
pub fn all(bytes: &[u8]) -> Result<u64> {
    Ok(structs(bytes)?.iter().fold(0, |sum, fixed| {
        sum.wrapping_add(fixed.size.get()).wrapping_add(fixed.address.get()).wrapping_add(fixed.old.get())
    }))
}

/// Returns the number of events of each kind.
///
/// # Errors
/// Fails if the length is not a multiple of 32.
pub fn count(bytes: &[u8]) -> Result<Counts> {
    let mut counts = [0; 3];
    for fixed in structs(bytes)? {
        let [allocs, reallocs, frees] = &mut counts;
        let tag = fixed.tag.get();
        *allocs += u64::from(tag == ALLOC);
        *reallocs += u64::from(tag == REALLOC);
        *frees += u64::from(tag == FREE);
    }
    Ok(counts)
}
