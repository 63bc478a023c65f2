//! bincode 2, event by event, by the two configurations that its documentation describes: numbers of variable length, and of
//! fixed.

use super::Call;
use crate::{Counts, Result};
use bincode::config::{Config, Fixint, LittleEndian, NoLimit, Varint};

/// Numbers take as many bytes as they need.
#[must_use]
pub fn variable() -> bincode::config::Configuration<LittleEndian, Varint, NoLimit> {
    bincode::config::standard()
}

/// Numbers take 8 bytes.
#[must_use]
pub fn fixed() -> bincode::config::Configuration<LittleEndian, Fixint, NoLimit> {
    bincode::config::standard().with_fixed_int_encoding()
}

/// Writes the events.
///
/// # Errors
/// None that is expected.
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

/// The sum of all fields.
///
/// # Errors
/// What is wrong with the bytes.
pub fn all(bytes: &[u8], config: impl Config) -> Result<u64> {
    let mut sum = 0_u64;
    each(bytes, config, |call| sum = sum.wrapping_add(call.sum()))?;
    Ok(sum)
}

/// How many of each kind.
///
/// # Errors
/// What is wrong with the bytes.
pub fn count(bytes: &[u8], config: impl Config) -> Result<Counts> {
    let mut counts = [0; 3];
    each(bytes, config, |call| call.note(&mut counts))?;
    Ok(counts)
}
