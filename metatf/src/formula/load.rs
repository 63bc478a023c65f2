//! Loads of stored integers and byte arrays.

use super::Plan;
use metatf_container::Order;

/// Returns the eight bytes at an offset.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn eight(data: &[u8], at: usize) -> Option<[u8; 8]> {
    window(data, at).copied()
}

/// Returns `N` bytes at an offset, where `N` is at least 1.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn window<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    // This is a single comparison, because the right-hand side does not change in the loop.
    if at >= data.len().saturating_sub(N - 1) {
        return None;
    }
    // SAFETY: `at < data.len() - (N - 1)`, so `at + N <= data.len()`.
    Some(unsafe { &*data.as_ptr().add(at).cast::<[u8; N]>() })
}

/// Returns `length` bytes at an offset.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn taken(data: &[u8], at: usize, length: u64) -> Option<&[u8]> {
    let rest = data.get(at..).unwrap_or_default();
    usize::try_from(length).ok().and_then(|length| rest.get(..length))
}

/// Returns the stored integer in the first bytes of `eight` under a plan, in the given byte order.
#[inline]
pub(crate) fn cut(eight: [u8; 8], plan: &Plan, order: Order) -> u64 {
    match order {
        Order::Little => u64::from_le_bytes(eight) & plan.mask,
        // For a width of 0, the mask clears the result.
        Order::Big => (u64::from_be_bytes(eight) >> plan.width.unused_bits()) & plan.mask,
    }
}

/// Returns the stored integer at `position` under a plan, in the given byte order, or `None` if the data ends before
/// the integer does.
#[inline]
pub(crate) fn stored(data: &[u8], position: usize, plan: &Plan, order: Order) -> Option<u64> {
    let mut eight = [0; 8];
    match data.get(position..position + 8) {
        Some(bytes) => eight.copy_from_slice(bytes),
        None => {
            let bytes = data.get(position..position + plan.width.bytes())?;
            eight.get_mut(..bytes.len())?.copy_from_slice(bytes);
        }
    }
    Some(cut(eight, plan, order))
}
