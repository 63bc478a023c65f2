//! Round numbers on an axis with a common unit.

use crate::Unit;
use crate::units::count;

/// The numbers on an axis and their unit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// The positions of the numbers, as fractions of the axis, and their text.
    pub(crate) ticks: Vec<(f64, String)>,
    /// The unit; empty for counts.
    pub(crate) unit: &'static str,
    /// The value at the end of the axis, at least the value of the last tick.
    pub(crate) end: f64,
}

/// Byte units and their sizes.
const BYTES: [(&str, f64); 7] = [
    ("bytes", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("EiB", 1_152_921_504_606_846_976.0),
];
const TIMES: [(&str, f64); 6] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const COUNTS: [(&str, f64); 4] = [("", 1.0), ("thousands", 1e3), ("millions", 1e6), ("billions", 1e9)];
const PERCENT: [(&str, f64); 1] = [("%", 1000.0)];

impl Axis {
    /// Places numbers on an axis that begins at 0. There are three to six numbers, with a step of 1, 2 or 5 times a
    /// power of ten. If `whole` is set, the axis extends to the next number.
    pub(crate) fn new(most: u64, unit: Unit, whole: bool) -> Self {
        let most = float(most.max(1));
        let (name, scale) = scale(most, unit);
        let step = step(most / scale);
        let end = if whole { (most / scale / step).ceil() * step } else { most / scale };
        let digits = if step < 0.01 {
            3
        } else if step < 0.1 {
            2
        } else if step < 1.0 {
            1
        } else {
            0
        };
        let number = |n: u32| {
            let value = f64::from(n) * step;
            let text = if digits == 0 && value < 1e15 {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "whole, positive and below 10^15"
                )]
                count(value as u64)
            } else {
                format!("{value:.digits$}")
            };
            (value / end, text)
        };
        let ticks = (0..).map(number).take_while(|(at, _)| *at <= 1.000_001).take(12).collect();
        Self { ticks, unit: name, end: end * scale }
    }
}

/// Returns the largest unit that does not exceed the value.
fn scale(most: f64, unit: Unit) -> (&'static str, f64) {
    let units: &[(&'static str, f64)] = match unit {
        Unit::Count => &COUNTS,
        Unit::Bytes => &BYTES,
        Unit::Time => &TIMES,
        Unit::Percent => &PERCENT,
    };
    // Counts up to 10,000 are written in full.
    let least = if unit == Unit::Count { 10.0 } else { 1.0 };
    let fits = units.iter().skip(1).rev().find(|(_, scale)| most >= *scale * least);
    fits.or(units.first()).copied().unwrap_or(("", 1.0))
}

/// Returns the step between the numbers on an axis with this maximum. It is 1, 2 or 5 times a power of ten, so that
/// there are three to six numbers.
pub(crate) fn step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// Converts a number to a coordinate.
#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
pub(crate) fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(most: u64, unit: Unit) -> String {
        let axis = Axis::new(most, unit, true);
        let numbers: Vec<_> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        format!("{} {}", numbers.join(" "), axis.unit)
    }

    #[test]
    fn numbers_are_round() {
        assert_eq!(ticks(8_850_000, Unit::Bytes), "0 2 4 6 8 10 MiB");
        assert_eq!(ticks(202_000_000, Unit::Time), "0 50 100 150 200 250 ms");
        assert_eq!(ticks(20_777, Unit::Count), "0 5 10 15 20 25 thousands");
        assert_eq!(ticks(7_000, Unit::Count), "0 2,000 4,000 6,000 8,000 ");
        assert_eq!(ticks(1_600, Unit::Bytes), "0.0 0.5 1.0 1.5 2.0 KiB");
        assert_eq!(ticks(21_600, Unit::Percent), "0 5 10 15 20 25 %");
        assert_eq!(ticks(0, Unit::Count), "0.0 0.2 0.4 0.6 0.8 1.0 ");
        assert_eq!(ticks(u64::MAX, Unit::Bytes), "0 5 10 15 20 EiB");
    }

    #[test]
    fn few_numbers_whatever_the_most() {
        for shift in 0..64 {
            for most in [1_u64 << shift, (1 << shift) - 1, 3 << shift.min(62)] {
                for unit in [Unit::Count, Unit::Bytes, Unit::Time, Unit::Percent] {
                    for whole in [false, true] {
                        let axis = Axis::new(most, unit, whole);
                        assert!((3..=7).contains(&axis.ticks.len()), "{most} {unit:?} {axis:?}");
                        assert!(axis.end >= 0.999 * float(most), "{most} {axis:?}");
                    }
                }
            }
        }
    }
}
