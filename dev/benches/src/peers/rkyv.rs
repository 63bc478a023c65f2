//! rkyv: the in-memory vector of events, read in place.

use super::{ArchivedCall, Call};
use crate::{Counts, Result};
use rkyv::rancor::Error;
use rkyv::util::AlignedVec;
use rkyv::vec::ArchivedVec;

type Calls = ArchivedVec<ArchivedCall>;

/// Writes the events into the memory of `out`.
///
/// # Errors
/// Not expected to fail.
pub fn encode(calls: &Vec<Call>, mut out: AlignedVec) -> Result<AlignedVec> {
    out.clear();
    Ok(rkyv::api::high::to_bytes_in::<_, Error>(calls, out)?)
}

/// Returns the events after validating all of them.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn checked(bytes: &AlignedVec) -> Result<&Calls> {
    Ok(rkyv::access::<Calls, Error>(bytes)?)
}

/// Returns the events without validation.
#[must_use]
pub fn unchecked(bytes: &AlignedVec) -> &Calls {
    // SAFETY: not sound for bytes of unknown origin, which is the case whose speed this function demonstrates. The
    // benchmark passes it the output of `encode`.
    unsafe { rkyv::access_unchecked::<Calls>(bytes) }
}

/// Returns the sum of all fields.
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

/// Returns the number of events of each kind.
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
