//! The formula the other way round: what is stored for a value, and whether it fits.

use super::{Plan, history};
use metatf_container::Order;

/// The stored integer for a value under a plan, before it is cut to its width.
#[inline]
pub(crate) fn raw(value: u64, plan: &Plan, cells: &[u64]) -> u64 {
    value.wrapping_sub(plan.base).wrapping_sub(history(plan, cells))
}

/// The bytes of the stored integer, those that the plan stores first.
#[inline]
pub(crate) fn bytes_of(raw: u64, plan: &Plan, order: Order) -> [u8; 8] {
    match order {
        Order::Little => raw.to_le_bytes(),
        // A width of 0 stores nothing.
        Order::Big => (raw << plan.width.unused_bits()).to_be_bytes(),
    }
}

/// Bytes that a code needs.
pub(crate) fn width_of(code: u64) -> u8 {
    if code == 0 { 0 } else { bytes_for(code, false) }
}

/// Whether a stored integer survives being cut to the plan's width.
#[inline]
pub(crate) fn fits(raw: u64, plan: &Plan) -> bool {
    ((raw & plan.mask) ^ plan.sign).wrapping_sub(plan.sign) == raw
}

/// Bytes that hold `raw`, 1 to 8; sign-extended or not.
#[allow(clippy::cast_possible_truncation, reason = "1 to 8")]
#[must_use]
#[inline]
pub fn bytes_for(raw: u64, signed: bool) -> u8 {
    let folded = if signed { (raw << 1) ^ ((raw as i64 >> 63) as u64) } else { raw };
    // The sign bit of a negative number folds away; what is left needs one bit more than its magnitude.
    let bits = 64 - folded.leading_zeros();
    (bits.div_ceil(8).max(1)) as u8
}
