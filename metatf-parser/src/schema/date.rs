//! Formats numbers that count from 1970 in UTC as RFC 3339 dates (spec 2, formats `date_s` to `date_ns`).
//!
//! As in POSIX, leap seconds are ignored. The Gregorian calendar applies to all years.

/// Seconds per day.
const DAY: i64 = 86_400;
/// Days in 400 years, the period of the calendar.
const ERA: i64 = 146_097;
/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH: i64 = 719_468;

/// Returns the date after `count` units, with `per_second` units per second. The fraction has as many digits as the
/// unit, as in `2026-11-27T02:25:04.5Z`. Returns `None` outside the years 0 to 9999, because a year has four digits.
pub(super) fn text(count: i64, per_second: i64) -> Option<String> {
    let (seconds, part) = (count.div_euclid(per_second), count.rem_euclid(per_second));
    let (year, month, day) = civil(seconds.div_euclid(DAY))?;
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = match per_second.ilog10() as usize {
        0 => String::new(),
        digits => format!(".{part:0digits$}"),
    };
    Some(format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"))
}

/// Parses a date in the format of [`text`] and returns its count of units. The fraction may be shorter or missing.
/// Returns `None` for any other text, for a day that does not exist, and for digits finer than the unit.
pub(super) fn count(text: &str, per_second: i64) -> Option<i64> {
    let (whole, fraction) = match text.strip_suffix('Z')?.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text.strip_suffix('Z')?, ""),
    };
    let digits = per_second.ilog10() as usize;
    let is_form = whole.len() == 19
        && whole.bytes().zip(b"0000-00-00T00:00:00").all(|(b, form)| match form {
            b'0' => b.is_ascii_digit(),
            mark => b == *mark,
        });
    if !is_form || fraction.len() > digits || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| whole.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let days = days(year, month, day);
    if civil(days)? != (year, month, day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let part: i64 = format!("{fraction:0<digits$}0").parse::<i64>().ok()? / 10;
    let seconds = days * DAY + hour * 3600 + minute * 60 + second;
    // Use 128 bits, because for a date before 1970, the product may overflow although the sum does not.
    i64::try_from(i128::from(seconds) * i128::from(per_second) + i128::from(part)).ok()
}

/// Converts a number of days since 1970 to year, month and day, for the years 0 to 9999. Internally, years start in
/// March, so a leap day is the last day of a year, and every five months have 153 days.
fn civil(day: i64) -> Option<(i64, i64, i64)> {
    let day = day.checked_add(EPOCH)?;
    let (era, of_era) = (day.div_euclid(ERA), day.rem_euclid(ERA));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month, next) = (of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1, i64::from(month >= 10));
    let year = era * 400 + year_of_era + next;
    (0..=9999).contains(&year).then_some((year, month, day))
}

/// Returns the number of days from 1970 to a date. The result for a date that does not exist is unspecified.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + year * 365 + year / 4 - year / 100 + of_year - EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_ten_thousand_years() {
        // Count through the calendar, starting with the first day of year 0.
        let mut at = -719_528;
        for year in 0..10_000_i64 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            for (month, length) in
                [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].into_iter().enumerate()
            {
                for day in 1..=length {
                    let date = format!("{year:04}-{:02}-{day:02}T23:59:59Z", month + 1);
                    let seconds = at * DAY + DAY - 1;
                    assert_eq!(text(seconds, 1).as_deref(), Some(&*date));
                    assert_eq!(count(&date, 1), Some(seconds));
                    at += 1;
                }
                let over = format!("{year:04}-{:02}-{:02}T00:00:00Z", month + 1, length + 1);
                assert_eq!(count(&over, 1), None, "{over}");
            }
        }
        assert_eq!((text(at * DAY, 1), text(-719_528 * DAY - 1, 1)), (None, None));
    }

    #[test]
    fn dates_that_other_tools_give() {
        // Expected values from `date -u -d @N`.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_234_567_890, "2009-02-13T23:31:30Z"),
            (2_147_483_647, "2038-01-19T03:14:07Z"),
            (4_294_967_295, "2106-02-07T06:28:15Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!((text(seconds, 1).as_deref(), count(date, 1)), (Some(date), Some(seconds)));
        }
    }

    #[test]
    fn fractions_have_the_digits_of_their_unit() {
        for (n, per_second, date) in [
            (1_500, 1_000, "1970-01-01T00:00:01.500Z"),
            (-1, 1_000_000, "1969-12-31T23:59:59.999999Z"),
            (i64::MAX, 1_000_000_000, "2262-04-11T23:47:16.854775807Z"),
            (i64::MIN, 1_000_000_000, "1677-09-21T00:12:43.145224192Z"),
        ] {
            assert_eq!((text(n, per_second).as_deref(), count(date, per_second)), (Some(date), Some(n)));
        }
        assert_eq!(count("1970-01-01T00:00:01.5Z", 1_000), Some(1_500));
        assert_eq!(count("1970-01-01T00:00:01Z", 1_000_000_000), Some(1_000_000_000));
        assert_eq!(text(i64::MAX, 1_000), None);
    }

    #[test]
    fn what_is_no_date() {
        for date in [
            "",
            "Z",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-01-01 00:00:00Z",
            "1970-13-01T00:00:00Z",
            "1970-00-01T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.1234Z",
            "1970-01-01T00:00:00.+12Z",
            "+970-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999é",
        ] {
            assert_eq!(count(date, 1_000), None, "{date}");
        }
        assert_eq!(count("9999-12-31T23:59:59Z", 1_000_000_000), None);
    }
}
