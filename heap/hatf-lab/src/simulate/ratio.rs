//! Ratios of counts.

/// Returns a ratio, or `None` if the divisor is 0.
#[expect(clippy::cast_precision_loss, reason = "the ratio is for display, and the sums are far below 2^53")]
pub(super) fn ratio(of: u128, by: u128) -> Option<f64> {
    (by != 0).then(|| of as f64 / by as f64)
}
