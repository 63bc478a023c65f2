//! postcard, event by event.

use super::Call;
use crate::{Counts, Result};

/// Writes the events.
///
/// # Errors
/// Not expected to fail.
pub fn encode(calls: &[Call], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut room = [0; 32];
    for call in calls {
        out.extend_from_slice(postcard::to_slice(call, &mut room)?);
    }
    Ok(())
}

fn each(mut bytes: &[u8], mut visit: impl FnMut(&Call)) -> Result<()> {
    while !bytes.is_empty() {
        let (call, rest) = postcard::take_from_bytes(bytes)?;
        visit(&call);
        bytes = rest;
    }
    Ok(())
}

/// Returns the sum of all fields.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn all(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    each(bytes, |call| sum = sum.wrapping_add(call.sum()))?;
    Ok(sum)
}

/// Returns the number of events of each kind.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn count(bytes: &[u8]) -> Result<Counts> {
    let mut counts = [0; 3];
    each(bytes, |call| call.note(&mut counts))?;
    Ok(counts)
}
