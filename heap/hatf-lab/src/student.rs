//! Means with confidence intervals.

use serde::Serialize;

/// A mean and half the width of its 90% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// Half the width, which is `t(0.95, n - 1) s / sqrt(n)` according to Student's distribution. `None` if a single
    /// observation allows no estimate of the variance.
    pub half: Option<f64>,
}

/// Returns the mean of observations with its confidence interval. Without observations, the mean is 0.
#[must_use]
pub fn interval(values: &[f64]) -> Interval {
    let (count, mean) = (float(values.len()), mean(values));
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let half = || quantile(values.len() - 1) * (squares / (count - 1.0) / count).sqrt();
    Interval { mean, half: (values.len() > 1).then(half) }
}

/// Returns the mean, which is 0 if there are no observations.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / float(values.len()) }
}

/// Returns the 0.95 quantile of Student's distribution.
fn quantile(freedom: usize) -> f64 {
    // The quantile is 6.31 for one degree of freedom and smaller for more degrees.
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if two_sided(middle, freedom) < 0.9 { low = middle } else { high = middle }
    }
    low
}

/// Returns the probability of a value between -t and t (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn two_sided(t: f64, freedom: usize) -> f64 {
    let angle = libm::atan(t / float(freedom).sqrt());
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let odd = freedom % 2 == 1;
    let (mut term, mut sum) = (if odd { cosine } else { 1.0 }, 0.0);
    let mut at = if odd { 1 } else { 0 };
    while at + 1 < freedom {
        sum += term;
        term *= cosine * cosine * float(at + 1) / float(at + 2);
        at += 2;
    }
    if odd { (angle + sine * sum) * std::f64::consts::FRAC_2_PI } else { sine * sum }
}

#[expect(clippy::cast_precision_loss, reason = "the number of trials is small")]
fn float(value: usize) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from printed tables.
    #[test]
    fn quantiles() {
        let known = [(1, 6.3138), (2, 2.9200), (3, 2.3534), (4, 2.1318), (9, 1.8331), (30, 1.6973), (99, 1.6604)];
        for (freedom, expected) in known {
            assert!((quantile(freedom) - expected).abs() < 5e-5, "{freedom}: {}", quantile(freedom));
        }
    }

    #[test]
    fn intervals() {
        let of = interval(&[1.0, 2.0, 3.0]);
        assert!((of.mean - 2.0).abs() < 1e-12 && (of.half.unwrap() - 2.91998 / 3.0_f64.sqrt()).abs() < 1e-4);
        assert_eq!(interval(&[5.0]), Interval { mean: 5.0, half: None });
        assert_eq!(interval(&[5.0, 5.0]), Interval { mean: 5.0, half: Some(0.0) });
        assert_eq!(interval(&[]), Interval { mean: 0.0, half: None });
    }
}
