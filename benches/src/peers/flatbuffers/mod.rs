//! FlatBuffers by planus: buffers of 4,096 events each, with their length before them, read in place. An event is a table that holds a
//! union of tables.

#[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "made by planus from schemas/call.fbs")]
#[rustfmt::skip]
mod generated;

use super::Call as Given;
use crate::{Counts, Result};
use generated::heap::{Alloc, Batch, BatchRef, Call, Free, Kind, KindRef, Realloc};
use planus::{Builder, ReadAsRoot};

/// Writes the events.
///
/// # Errors
/// None that is expected.
pub fn encode(calls: &[Given], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut builder = Builder::new();
    let mut offsets = Vec::with_capacity(super::BATCH);
    for calls in calls.chunks(super::BATCH) {
        builder.clear();
        offsets.clear();
        for call in calls {
            let kind = match *call {
                Given::Alloc { size, address } => {
                    let alloc = Alloc::create(&mut builder, size, address);
                    Kind::create_alloc(&mut builder, alloc)
                }
                Given::Realloc { old, address } => {
                    let realloc = Realloc::create(&mut builder, old, address);
                    Kind::create_realloc(&mut builder, realloc)
                }
                Given::Free { address } => {
                    let free = Free::create(&mut builder, address);
                    Kind::create_free(&mut builder, free)
                }
            };
            offsets.push(Call::create(&mut builder, kind));
        }
        let batch = Batch::create(&mut builder, &*offsets);
        let buffer = builder.finish(batch, None);
        out.extend_from_slice(&u32::try_from(buffer.len())?.to_le_bytes());
        out.extend_from_slice(buffer);
    }
    Ok(())
}

fn each(mut bytes: &[u8], mut visit: impl FnMut(KindRef<'_>) -> planus::Result<()>) -> Result<()> {
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let (buffer, rest) =
            rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("a buffer that is cut off")?;
        for call in BatchRef::read_as_root(buffer)?.calls()?.into_iter().flatten() {
            if let Some(kind) = call?.kind()? {
                visit(kind)?;
            }
        }
        bytes = rest;
    }
    Ok(())
}

/// The sum of all fields.
///
/// # Errors
/// What is wrong with the bytes.
pub fn all(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    each(bytes, |kind| {
        sum = sum.wrapping_add(match kind {
            KindRef::Alloc(alloc) => alloc.size()?.wrapping_add(alloc.address()?),
            KindRef::Realloc(realloc) => realloc.old()?.wrapping_add(realloc.address()?),
            KindRef::Free(free) => free.address()?,
        });
        Ok(())
    })?;
    Ok(sum)
}

/// How many of each kind.
///
/// # Errors
/// What is wrong with the bytes.
pub fn count(bytes: &[u8]) -> Result<Counts> {
    let [mut allocs, mut reallocs, mut frees] = [0; 3];
    each(bytes, |kind| {
        match kind {
            KindRef::Alloc(_) => allocs += 1,
            KindRef::Realloc(_) => reallocs += 1,
            KindRef::Free(_) => frees += 1,
        }
        Ok(())
    })?;
    Ok([allocs, reallocs, frees])
}
