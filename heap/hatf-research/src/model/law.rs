//! Probability distributions for sampling numbers.

use super::histogram::Table;
use super::moments::Moments;
use super::random::{Random, scaled};

/// The shape of a distribution with a given mean.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Constant,
    Uniform,
    Normal,
    Exponential,
    Pareto,
}

/// A distribution of non-negative numbers.
#[derive(Debug)]
pub(super) enum Law {
    Constant(f64),
    /// Uniform from 0 (inclusive) to this value (exclusive).
    Uniform(f64),
    Normal {
        mean: f64,
        deviation: f64,
    },
    Exponential(f64),
    Pareto {
        least: f64,
        /// The inverse of the shape parameter.
        exponent: f64,
    },
    /// A table, which is boxed because models contain many small laws.
    Table(Box<Table>),
    /// Equidistant quantiles with linear interpolation.
    Markers(Vec<f64>),
}

impl Law {
    /// Creates a distribution with the mean of the observations and, if the shape has a free variance, their variance.
    /// Returns `None` if there are no observations.
    pub(super) fn new(shape: Shape, moments: &Moments) -> Option<Self> {
        let mean = moments.mean()?;
        let deviation = moments.deviation();
        Some(match shape {
            Shape::Uniform => Self::Uniform(2.0 * mean),
            Shape::Exponential => Self::Exponential(mean),
            Shape::Normal if deviation > 0.0 => Self::Normal { mean, deviation },
            // The method of moments yields a = 1 + sqrt(1 + m²/v) and least = m (a - 1) / a.
            Shape::Pareto if deviation > 0.0 => {
                let ratio = mean / deviation;
                let a = 1.0 + (1.0 + ratio * ratio).sqrt();
                Self::Pareto { least: mean * (a - 1.0) / a, exponent: 1.0 / a }
            }
            Shape::Constant | Shape::Normal | Shape::Pareto => Self::Constant(mean),
        })
    }

    /// Draws a number.
    #[inline]
    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform(end) => end * random.unit(),
            Self::Exponential(mean) => mean * random.exponential(),
            // Negative samples are redrawn (footnote 4).
            Self::Normal { mean, deviation } => loop {
                let value = mean + deviation * random.normal();
                if value >= 0.0 {
                    return value;
                }
            },
            Self::Pareto { least, exponent } => least * libm::exp(exponent * random.exponential()),
            Self::Table(table) => wide(table.draw(random)),
            Self::Markers(markers) => {
                let cells = markers.len().saturating_sub(1) as u64;
                let bits = random.bits();
                let cell = usize::try_from(scaled(bits, cells)).unwrap_or(0);
                let low = markers.get(cell).copied().unwrap_or(0.0);
                let high = markers.get(cell + 1).copied().unwrap_or(low);
                // Use the bits that `scaled` has not consumed.
                let rest = bits.wrapping_mul(cells);
                low + (high - low) * (wide(rest >> 11) / wide(1 << 53))
            }
        }
    }

    /// Draws a size. Returns observed sizes unchanged, and rounds other sizes half up to at least 1.
    #[inline]
    pub(super) fn draw_size(&self, random: &mut Random) -> u64 {
        match self {
            Self::Table(table) => table.draw(random),
            law => rounded(law.draw(random)),
        }
    }
}

/// Rounds a size half up to at least 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts saturate")]
pub(super) fn rounded(size: f64) -> u64 {
    ((size + 0.5).floor() as u64).max(1)
}

#[expect(clippy::cast_precision_loss, reason = "rounding to nearest is the same on every machine")]
pub(super) fn wide(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each distribution has the mean and, if applicable, the variance from which it was created.
    #[test]
    fn moments_are_kept() {
        let mut moments = Moments::default();
        [90, 100, 110].iter().for_each(|value| moments.note(*value));
        let deviation = moments.deviation();
        let shapes = [
            (Shape::Constant, 0.0),
            (Shape::Uniform, 100.0 / 3.0_f64.sqrt()),
            (Shape::Normal, deviation),
            (Shape::Exponential, 100.0),
            (Shape::Pareto, deviation),
        ];
        for (shape, expected) in shapes {
            let (law, mut random) = (Law::new(shape, &moments).unwrap(), Random::new(1, 1));
            let values: Vec<f64> = (0..100_000).map(|_| law.draw(&mut random)).collect();
            let mean = values.iter().sum::<f64>() / 1e5;
            let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 1e5;
            assert!((mean - 100.0).abs() < 1.0, "{shape:?}: {mean}");
            assert!((variance.sqrt() - expected).abs() < 1.5, "{shape:?}: {}", variance.sqrt());
        }
        assert!(Law::new(Shape::Normal, &Moments::default()).is_none());
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!([0.0, 0.49, 1.49, 1.5, 2.5, 1e300].map(rounded), [1, 1, 1, 2, 3, u64::MAX]);
    }

    #[test]
    fn markers_are_joined_by_lines() {
        let (law, mut random) = (Law::Markers(vec![0.0, 10.0, 30.0]), Random::new(1, 1));
        let values: Vec<f64> = (0..100_000).map(|_| law.draw(&mut random)).collect();
        assert!((values.iter().sum::<f64>() / 1e5 - 12.5).abs() < 0.1);
        assert!(values.iter().all(|value| (0.0..30.0).contains(value)));
        assert_eq!(Law::Markers(vec![4.0]).draw(&mut random), 4.0);
    }
}
