//! Ratios of counts.

/// Returns a ratio, or `None` if the divisor is 0.
#[expect(clippy::cast_precision_loss, reason = "a ratio of sums far below 2^53 parts is what is shown")]
pub(super) fn ratio(of: u128, by: u128) -> Option<f64> {
    (by != 0).then(|| of as f64 / by as f64)
}
