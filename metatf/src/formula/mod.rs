//! The formula that decodes every inline interpretation (spec 4), and its inverse for writing.
//!
//! ```text
//! raw   = stored bytes & mask
//! value = ((raw ^ sign) - sign) + base + (cells[read] & history)      all wrapping
//! ```
//!
//! These are pure functions of a [`Plan`], bytes and cells. They do not depend on sections, records or streams.

mod expression;
mod fit;
mod load;
mod plan;
mod width;

pub use expression::evaluate;
pub use fit::bytes_for;
pub(crate) use fit::{bytes_of, fits, raw, width_of};
pub(crate) use load::{cut, eight, stored, taken, window};
pub(crate) use plan::Plan;
pub(crate) use plan::{BYTES, HISTORY, LAST, PREDICTED, PREVIOUS, REFERENCED, SPECIAL, STRIDED};
pub(crate) use width::Width;

/// Returns the value of a stored integer according to the complete formula, and saves the value as the leaf's previous
/// value and last value.
#[inline]
pub(crate) fn value(raw: u64, plan: &Plan, cells: &mut [u64]) -> u64 {
    with_cells(plain(raw, plan), plan, cells)
}

/// Returns a value according to the formula without history.
#[inline]
pub(crate) fn plain(raw: u64, plan: &Plan) -> u64 {
    (raw ^ plan.sign).wrapping_sub(plan.sign).wrapping_add(plan.base)
}

/// Completes the formula by adding the history term to `plain`, and saves the resulting value.
#[inline]
pub(crate) fn with_cells(plain: u64, plan: &Plan, cells: &mut [u64]) -> u64 {
    let value = plain.wrapping_add(history(plan, cells));
    note(value, plan, cells);
    value
}

/// Returns the formula's history term.
#[inline]
pub(crate) fn history(plan: &Plan, cells: &[u64]) -> u64 {
    cells.get(plan.read as usize).copied().unwrap_or(0) & plan.history
}

/// Saves a value in the cells from which it is needed later, if any.
#[inline]
pub(crate) fn note(value: u64, plan: &Plan, cells: &mut [u64]) {
    if plan.is(PREVIOUS)
        && let Some(cell) = cells.get_mut(plan.write as usize)
    {
        *cell = value;
    }
    if plan.is(LAST | REFERENCED)
        && let Some(cell) = cells.get_mut(plan.last as usize)
    {
        *cell = value;
    }
}
