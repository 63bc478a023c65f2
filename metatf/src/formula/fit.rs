//! The inverse of the formula: computes the stored integer for a value and checks whether it fits.

use super::{Plan, history};
use metatf_container::Order;

/// Returns the stored integer for a value under a plan, before it is truncated to its width.
#[inline]
pub(crate) fn raw(value: u64, plan: &Plan, cells: &[u64]) -> u64 {
    value.wrapping_sub(plan.base).wrapping_sub(history(plan, cells))
}

/// Returns the bytes of the stored integer, starting with those that the plan stores.
#[inline]
pub(crate) fn bytes_of(raw: u64, plan: &Plan, order: Order) -> [u8; 8] {
    match order {
        Order::Little => raw.to_le_bytes(),
        // A width of 0 stores nothing.
        Order::Big => (raw << plan.width.unused_bits()).to_be_bytes(),
    }
}

/// Returns the number of bytes needed to store a code of a predicted leaf.
pub(crate) fn width_of(code: u64) -> u8 {
    if code == 0 { 0 } else { bytes_for(code, false) }
}

/// Returns whether a stored integer survives truncation to the plan's width.
#[inline]
pub(crate) fn fits(raw: u64, plan: &Plan) -> bool {
    ((raw & plan.mask) ^ plan.sign).wrapping_sub(plan.sign) == raw
}

/// Returns the number of bytes needed for `raw`, 1 to 8, with or without sign extension.
#[allow(clippy::cast_possible_truncation, reason = "1 to 8")]
#[must_use]
#[inline]
pub fn bytes_for(raw: u64, signed: bool) -> u8 {
    let folded = if signed { (raw << 1) ^ ((raw as i64 >> 63) as u64) } else { raw };
    // Folding removes the leading sign bits of a negative number. The result has one bit more than the magnitude.
    let bits = 64 - folded.leading_zeros();
    (bits.div_ceil(8).max(1)) as u8
}
