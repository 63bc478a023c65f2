//! Cap'n Proto: messages of 4,096 events each, one after the other, read in place. The fields of the union's groups share their
//! places.

#[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks, reason = "made by capnpc from schemas/call.capnp")]
#[rustfmt::skip]
mod call_capnp;

use super::Call;
use crate::{Counts, Result};
use call_capnp::{batch, call};
use capnp::message::{self, Builder, ReaderOptions, ScratchSpaceHeapAllocator};
use capnp::{Word, serialize};

/// Writes the events.
///
/// # Errors
/// None that is expected.
pub fn encode(calls: &[Call], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut space = Word::allocate_zeroed_vec(super::BATCH * 4);
    let mut allocator = ScratchSpaceHeapAllocator::new(Word::words_to_bytes_mut(&mut space));
    for calls in calls.chunks(super::BATCH) {
        let mut message = Builder::new(&mut allocator);
        let mut list = message.init_root::<batch::Builder<'_>>().init_calls(u32::try_from(calls.len())?);
        for (i, call) in (0..).zip(calls) {
            let to = list.reborrow().get(i);
            match *call {
                Call::Alloc { size, address } => {
                    let mut alloc = to.init_alloc();
                    alloc.set_size(size);
                    alloc.set_address(address);
                }
                Call::Realloc { old, address } => {
                    let mut realloc = to.init_realloc();
                    realloc.set_old(old);
                    realloc.set_new(address);
                }
                Call::Free { address } => to.init_free().set_address(address),
            }
        }
        serialize::write_message(&mut *out, &message)?;
    }
    Ok(())
}

fn each(mut bytes: &[u8], mut visit: impl FnMut(call::WhichReader<'_>)) -> Result<()> {
    while !bytes.is_empty() {
        let message = serialize::read_message_from_flat_slice_no_alloc(&mut bytes, ReaderOptions::new())?;
        for call in message::Reader::get_root::<batch::Reader<'_>>(&message)?.get_calls()? {
            visit(call.which()?);
        }
    }
    Ok(())
}

/// The sum of all fields.
///
/// # Errors
/// What is wrong with the bytes.
pub fn all(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    each(bytes, |call| {
        sum = sum.wrapping_add(match call {
            call::Alloc(alloc) => alloc.get_size().wrapping_add(alloc.get_address()),
            call::Realloc(realloc) => realloc.get_old().wrapping_add(realloc.get_new()),
            call::Free(free) => free.get_address(),
        });
    })?;
    Ok(sum)
}

/// How many of each kind.
///
/// # Errors
/// What is wrong with the bytes.
pub fn count(bytes: &[u8]) -> Result<Counts> {
    let [mut allocs, mut reallocs, mut frees] = [0; 3];
    each(bytes, |call| match call {
        call::Alloc(_) => allocs += 1,
        call::Realloc(_) => reallocs += 1,
        call::Free(_) => frees += 1,
    })?;
    Ok([allocs, reallocs, frees])
}
