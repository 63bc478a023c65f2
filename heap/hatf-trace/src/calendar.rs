//! Start times in traces.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::calendar::{seconds, utc};
//!
//! assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
//! assert_eq!(seconds("2000-02-29T12:34:56Z"), Some(951_827_696));
//! assert_eq!(seconds("2000-02-29"), None);
//! ```

/// Formats seconds since 1970, as in `2000-02-29T12:00:00Z`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Count in years that begin in March, so that a leap day is the last day of a year.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + carry;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Parses a time in the format of [`utc`] and returns the seconds since 1970, or `None` if the format is invalid.
#[must_use]
pub fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, between| -> Option<[u64; 3]> {
        let numbers: Option<Vec<u64>> = text.split(between).map(|number| number.parse().ok()).collect();
        numbers?.try_into().ok()
    };
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(time, ':')?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Count in years that begin in March, so that a leap day is the last day of a year.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (time, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_827_696, "2000-02-29T12:34:56Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_795_718_918, "2026-11-26T18:48:38Z"),
        ] {
            assert_eq!((utc(time).as_str(), seconds(text)), (text, Some(time)));
        }
        for text in ["2026-13-26T18:48:38Z", "2026-11-26", "x"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_read_as_it_is_written() {
        for day in 0..366 * 150 {
            assert_eq!(seconds(&utc(day * 86_400 + 7)), Some(day * 86_400 + 7), "{}", utc(day * 86_400));
        }
    }
}
