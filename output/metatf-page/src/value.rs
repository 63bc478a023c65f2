//! Exact values of a page, with their units.

use std::borrow::Cow;
use std::fmt;

use crate::units;

/// The unit of a number, which determines how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count: `1,234`.
    Count,
    /// Bytes: `1.50 KiB`.
    Bytes,
    /// Nanoseconds: `1.50 ms`.
    Time,
    /// Thousandths of a percent: `1.5 %`.
    Percent,
}

/// A value of a page. It is rounded only when it is printed.
///
/// # Examples
///
/// ```
/// use metatf_page::{Unit, Value};
///
/// let live = Value::Bytes(14_848);
/// assert_eq!(live.to_string(), "14.5 KiB");
/// assert_eq!(live.exact().as_deref(), Some("14,848 bytes"));
/// assert_eq!(Value::of(1_500_000, Unit::Time).to_string(), "1.50 ms");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value; an empty cell.
    Blank,
    /// An unknown value: `-`.
    Unknown,
    /// A count: `1,234`.
    Count(u64),
    /// A number of bytes: `1.50 KiB`.
    Bytes(u64),
    /// A time or duration in nanoseconds: `1.50 ms`.
    Time(u64),
    /// A part of a total: `33.3%`; `-` if the total is 0.
    Part(u64, u64),
    /// A change in a count: `+1,234`.
    CountChange(i128),
    /// A change in a number of bytes: `-1.50 KiB`.
    BytesChange(i128),
    /// A change in percent of the previous value: `+5.0%`, `new`, `gone`.
    PartChange {
        /// The value before.
        before: u64,
        /// The value after.
        after: u64,
    },
    /// A number with this many digits after the decimal point.
    Number(f64, u8),
    /// A mean, half of its confidence interval if known, and the number of digits after the decimal point: `0.995
    /// ±0.026`.
    Interval(f64, Option<f64>, u8),
    /// An address: `0x7f5c`.
    Address(u64),
    /// A string.
    Text(Cow<'static, str>),
    /// Several lines, the most important one first: a stack, innermost function first.
    Lines(Vec<String>),
    /// A bar whose length is a part of the maximum.
    Bar(u64, u64),
}

impl Value {
    /// Creates a text value.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a value with this unit.
    #[must_use]
    pub fn of(number: u64, unit: Unit) -> Self {
        match unit {
            Unit::Count => Self::Count(number),
            Unit::Bytes => Self::Bytes(number),
            Unit::Time => Self::Time(number),
            #[expect(clippy::cast_precision_loss, reason = "it is printed with one digit behind the point")]
            Unit::Percent => Self::text(format!("{:.1} %", number as f64 / 1000.0)),
        }
    }

    /// Returns whether the value is a number, which is aligned to the right in its column.
    #[must_use]
    pub fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Lines(_) | Self::Bar(..) | Self::Blank | Self::Unknown)
    }

    /// Returns the exact number with its unit if the printed number is rounded. It is shown when hovering over the
    /// value.
    #[must_use]
    pub fn exact(&self) -> Option<String> {
        match self {
            Self::Bytes(bytes) if *bytes >= 1024 => Some(format!("{} bytes", units::count(*bytes))),
            Self::Time(time) if *time >= 1000 => Some(format!("{} ns", units::count(*time))),
            Self::Part(part, whole) => Some(format!("{} of {}", units::count(*part), units::count(*whole))),
            Self::BytesChange(change) if change.unsigned_abs() >= 1024 => {
                Some(format!("{} bytes", units::count_change(*change)))
            }
            Self::PartChange { before, after } => {
                Some(format!("{} to {}", units::count(*before), units::count(*after)))
            }
            _ => None,
        }
    }
}

/// The length of the longest bar in characters.
const BAR: u64 = 30;

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => Ok(()),
            Self::Unknown => f.write_str("-"),
            Self::Count(count) => f.write_str(&units::count(*count)),
            Self::Bytes(bytes) => f.write_str(&units::bytes(*bytes)),
            Self::Time(time) => f.write_str(&units::nanoseconds(*time)),
            Self::Part(part, whole) => f.write_str(&units::percent(*part, *whole)),
            Self::CountChange(change) => f.write_str(&units::count_change(*change)),
            Self::BytesChange(change) => f.write_str(&units::bytes_change(*change)),
            Self::PartChange { before, after } => f.write_str(&units::percent_change(*before, *after)),
            Self::Number(number, digits) => write!(f, "{number:.*}", usize::from(*digits)),
            Self::Interval(mean, None, digits) => write!(f, "{mean:.*}", usize::from(*digits)),
            Self::Interval(mean, Some(half), digits) => write!(f, "{mean:.0$} ±{half:.0$}", usize::from(*digits)),
            Self::Address(address) => write!(f, "0x{address:x}"),
            Self::Text(text) => f.write_str(text),
            Self::Lines(lines) => f.write_str(&lines.join(" <- ")),
            Self::Bar(part, most) => f.write_str(&units::bar(*part, *most, BAR)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_and_exact() {
        let values = [
            (Value::Blank, "", None),
            (Value::Unknown, "-", None),
            (Value::Bytes(1000), "1000 B", None),
            (Value::Bytes(1536), "1.50 KiB", Some("1,536 bytes")),
            (Value::Time(1_500_000), "1.50 ms", Some("1,500,000 ns")),
            (Value::Part(1, 3), "33.3%", Some("1 of 3")),
            (Value::Part(0, 0), "-", Some("0 of 0")),
            (Value::BytesChange(-2048), "-2.00 KiB", Some("-2,048 bytes")),
            (Value::PartChange { before: 0, after: 7 }, "new", Some("0 to 7")),
            (Value::Number(1.0 / 3.0, 3), "0.333", None),
            (Value::Interval(0.995, Some(0.0262), 3), "0.995 ±0.026", None),
            (Value::Address(0x7f5c), "0x7f5c", None),
            (Value::Bar(1, 2), "███████████████", None),
            (Value::of(12_340, Unit::Percent), "12.3 %", None),
        ];
        for (value, printed, exact) in values {
            assert_eq!((value.to_string().as_str(), value.exact().as_deref()), (printed, exact));
        }
    }
}
