//! The tag at the start of a record.

use metatf_container::Order;

#[allow(clippy::cast_possible_truncation, reason = "a tag has at most 4 bytes")]
#[cfg_attr(not(debug_assertions), inline(always))]
pub(crate) fn tag(data: &[u8], position: usize, width: usize, order: Order) -> Option<u32> {
    let rest = data.get(position..)?;
    match width {
        1 => rest.first().map(|&tag| tag.into()),
        _ => rest.get(..width).map(|tag| order.read(tag) as u32),
    }
}
