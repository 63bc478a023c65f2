//! Protocol Buffers using prost: each event is a message with a `oneof` of the kinds. Messages are concatenated, each
//! preceded by its length, as the Protocol Buffers documentation recommends for many messages.
//!
//! ```proto
//! message Call {
//!   oneof kind { Alloc alloc = 1; Realloc realloc = 2; Free free = 3; }
//! }
//! message Alloc { uint64 size = 1; uint64 address = 2; }
//! message Realloc { uint64 old = 1; uint64 address = 2; }
//! message Free { uint64 address = 1; }
//! ```

use super::Call as Given;
use crate::{Counts, Result};
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
struct Call {
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Alloc(Alloc),
    #[prost(message, tag = "2")]
    Realloc(Realloc),
    #[prost(message, tag = "3")]
    Free(Free),
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Alloc {
    #[prost(uint64, tag = "1")]
    size: u64,
    #[prost(uint64, tag = "2")]
    address: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Realloc {
    #[prost(uint64, tag = "1")]
    old: u64,
    #[prost(uint64, tag = "2")]
    address: u64,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Free {
    #[prost(uint64, tag = "1")]
    address: u64,
}

/// Writes the events.
///
/// # Errors
/// Not expected to fail.
pub fn encode(calls: &[Given], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    for call in calls {
        let kind = match *call {
            Given::Alloc { size, address } => Kind::Alloc(Alloc { size, address }),
            Given::Realloc { old, address } => Kind::Realloc(Realloc { old, address }),
            Given::Free { address } => Kind::Free(Free { address }),
        };
        Call { kind: Some(kind) }.encode_length_delimited(out)?;
    }
    Ok(())
}

/// Returns the sum of all fields.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn all(mut bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    while !bytes.is_empty() {
        sum = sum.wrapping_add(match Call::decode_length_delimited(&mut bytes)?.kind {
            Some(Kind::Alloc(alloc)) => alloc.size.wrapping_add(alloc.address),
            Some(Kind::Realloc(realloc)) => realloc.old.wrapping_add(realloc.address),
            Some(Kind::Free(free)) => free.address,
            None => 0,
        });
    }
    Ok(sum)
}

/// Returns the number of events of each kind.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn count(mut bytes: &[u8]) -> Result<Counts> {
    let [mut allocs, mut reallocs, mut frees] = [0; 3];
    while !bytes.is_empty() {
        match Call::decode_length_delimited(&mut bytes)?.kind {
            Some(Kind::Alloc(_)) => allocs += 1,
            Some(Kind::Realloc(_)) => reallocs += 1,
            Some(Kind::Free(_)) => frees += 1,
            None => {}
        }
    }
    Ok([allocs, reallocs, frees])
}
