//! rkyv: the vector of events as it lies in memory, read in place.

use super::{ArchivedCall, Call};
use crate::{Counts, Result};
use rkyv::rancor::Error;
use rkyv::util::AlignedVec;
use rkyv::vec::ArchivedVec;

type Calls = ArchivedVec<ArchivedCall>;

/// Writes the events into the memory of `out`.
///
/// # Errors
/// None that is expected.
pub fn encode(calls: &Vec<Call>, mut out: AlignedVec) -> Result<AlignedVec> {
    out.clear();
    Ok(rkyv::api::high::to_bytes_in::<_, Error>(calls, out)?)
}

/// The events, after a check of every one.
///
/// # Errors
/// What is wrong with the bytes.
pub fn checked(bytes: &AlignedVec) -> Result<&Calls> {
    Ok(rkyv::access::<Calls, Error>(bytes)?)
}

/// The events, unchecked.
#[must_use]
pub fn unchecked(bytes: &AlignedVec) -> &Calls {
    // SAFETY: not sound for bytes of unknown origin, which is what this function is to show the speed of. The benchmark gives it what
    // `encode` made.
    unsafe { rkyv::access_unchecked::<Calls>(bytes) }
}

/// The sum of all fields.
#[must_use]
pub fn all(calls: &Calls) -> u64 {
    calls.iter().fold(0, |sum, call| {
        sum.wrapping_add(match call {
            ArchivedCall::Alloc { size, address } => size.to_native().wrapping_add(address.to_native()),
            ArchivedCall::Realloc { old, address } => old.to_native().wrapping_add(address.to_native()),
            ArchivedCall::Free { address } => address.to_native(),
        })
    })
}

/// How many of each kind.
#[must_use]
pub fn count(calls: &Calls) -> Counts {
    let [mut allocs, mut reallocs, mut frees] = [0; 3];
    for call in calls.iter() {
        match call {
            ArchivedCall::Alloc { .. } => allocs += 1,
            ArchivedCall::Realloc { .. } => reallocs += 1,
            ArchivedCall::Free { .. } => frees += 1,
        }
    }
    [allocs, reallocs, frees]
}
