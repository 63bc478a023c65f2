//! Random numbers that are equal on every machine.

/// The names of the generator and of the version of the sampling algorithms below. Synthetic traces contain this
/// string, so any change to the algorithms requires a new name.
pub const GENERATOR: &str = "PCG XSL RR 128/64, sampling 1";

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// PCG XSL RR 128/64 (O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms for Random
/// Number Generation", 2014), also known as PCG64.
///
/// # Examples
///
/// ```
/// use hatf_research::model::Random;
///
/// let first = Random::new(1, 0).bits();
/// assert_eq!(first, Random::new(1, 0).bits());
/// // Streams of the same seed are independent.
/// assert_ne!(first, Random::new(1, 1).bits());
/// assert!((0.0..1.0).contains(&Random::new(1, 0).unit()));
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u128,
    increment: u128,
    /// The second of two normally distributed numbers that are generated together.
    spare: Option<f64>,
}

impl Random {
    /// Creates a stream. Different streams of the same seed are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let increment = (u128::from(stream) << 1) | 1;
        let mut random = Self { state: u128::from(seed).wrapping_add(increment), increment, spare: None };
        random.step();
        random
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// Returns 64 random bits.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    pub fn bits(&mut self) -> u64 {
        self.step();
        let rotation = (self.state >> 122) as u32;
        ((self.state >> 64) as u64 ^ self.state as u64).rotate_right(rotation)
    }

    /// Returns a number from 0 (inclusive) to 1 (exclusive).
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns an exponentially distributed number with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        // This form avoids -log(1), which is a negative zero.
        0.0 - libm::log(1.0 - self.unit())
    }

    /// Returns a normally distributed number with mean 0 and variance 1, using Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * libm::log(square) / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

/// Scales `bits` to a number below `total`. The 2^64 inputs are distributed evenly: the frequencies of the results
/// differ by at most one.
#[inline]
pub(super) fn scaled(bits: u64, total: u64) -> u64 {
    ((u128::from(bits) * u128::from(total)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the output with that of the reference implementation's demonstration program.
    #[test]
    fn as_the_reference() {
        let mut random = Random::new(42, 54);
        let expected = [
            0x86b1_da1d_7206_2b68,
            0x1304_aa46_c985_3d39,
            0xa367_0e9e_0dd5_0358,
            0xf909_0e52_9a7d_ae00,
            0xc85b_9fd8_3799_6f2c,
            0x6061_21f8_e391_9196_u64,
        ];
        assert_eq!(expected.map(|_| random.bits()), expected);
    }

    #[test]
    fn moments_are_right() {
        let mut random = Random::new(1, 0);
        let mut mean = |draw: fn(&mut Random) -> f64| (0..100_000).map(|_| draw(&mut random)).sum::<f64>() / 100_000.0;
        for (name, mean, expected) in [
            ("unit", mean(Random::unit), 0.5),
            ("exponential", mean(Random::exponential), 1.0),
            ("normal", mean(Random::normal), 0.0),
            ("its square", mean(|random| random.normal().powi(2)), 1.0),
        ] {
            assert!((mean - expected).abs() < 0.02, "{name}: {mean}");
        }
    }

    /// The numbers are equal on every machine, to the last bit.
    #[test]
    fn pinned() {
        let mut random = Random::new(7, 3);
        let drawn = [random.unit(), random.exponential(), random.normal(), random.normal()].map(f64::to_bits);
        let expected = [4603892971337520839, 4572892615411297420, 4612382430005487947, 4609596832397706129];
        assert_eq!(drawn, expected);
    }
}
