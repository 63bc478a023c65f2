//! Numeric command-line arguments.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Returns a parser for numbers in a range, for use as a `value_parser`.
pub fn number<T>(range: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone + Send + Sync,
    u64: TryFrom<T>,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        // Do not print the maximum if it is the largest 64-bit number.
        let bounded = u64::try_from(range.end().clone()).is_ok_and(|end| end < u64::MAX);
        number.ok_or_else(|| match bounded {
            true => format!("expected a number from {} to {}", range.start(), range.end()),
            false => format!("expected an integer of at least {}", range.start()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(number(1..=1024_usize)("16"), Ok(16));
        assert_eq!(number(1..=1024_usize)("0"), Err("expected a number from 1 to 1024".to_owned()));
        for text in ["-1", "x", "", "1.5", "99999999999999999999"] {
            assert_eq!(number(0..=u64::MAX)(text), Err("expected an integer of at least 0".to_owned()), "{text}");
        }
    }
}
