//! bincode 2, event by event, in the two configurations described by its documentation: variable-length and
//! fixed-length numbers.

use super::Call;
use crate::{Counts, Result};
use bincode::config::{Config, Fixint, LittleEndian, NoLimit, Varint};

/// Returns the configuration with variable-length numbers.
#[must_use]
pub fn variable() -> bincode::config::Configuration<LittleEndian, Varint, NoLimit> {
    bincode::config::standard()
}

/// Returns the configuration with 8-byte numbers.
#[must_use]
pub fn fixed() -> bincode::config::Configuration<LittleEndian, Fixint, NoLimit> {
    bincode::config::standard().with_fixed_int_encoding()
}

/// Writes the events.
///
/// # Errors
/// Not expected to fail.
pub fn encode(calls: &[Call], config: impl Config, out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    for call in calls {
        bincode::encode_into_std_write(call, out, config)?;
    }
    Ok(())
}

fn each(mut bytes: &[u8], config: impl Config, mut visit: impl FnMut(&Call)) -> Result<()> {
    while !bytes.is_empty() {
        let (call, length) = bincode::decode_from_slice(bytes, config)?;
        visit(&call);
        bytes = bytes.get(length..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the sum of all fields.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn all(bytes: &[u8], config: impl Config) -> Result<u64> {
    let mut sum = 0_u64;
    each(bytes, config, |call| sum = sum.wrapping_add(call.sum()))?;
    Ok(sum)
}

/// Returns the number of events of each kind.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn count(bytes: &[u8], config: impl Config) -> Result<Counts> {
    let mut counts = [0; 3];
    each(bytes, config, |call| call.note(&mut counts))?;
    Ok(counts)
}
