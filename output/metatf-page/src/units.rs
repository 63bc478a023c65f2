//! Formatting and parsing of numbers with units.
//!
//! ```
//! use metatf_page::units::{bytes, count, nanoseconds, parse_bytes, percent};
//!
//! assert_eq!(count(1_234_567), "1,234,567");
//! assert_eq!(bytes(1536), "1.50 KiB");
//! assert_eq!(parse_bytes("64 KiB"), Some(65_536));
//! assert_eq!(nanoseconds(12_345_678), "12.3 ms");
//! assert_eq!(percent(1, 3), "33.3%");
//! ```

/// Formats a count with separators: `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats bytes in binary units: `1.5 MiB`.
pub fn bytes(value: u64) -> String {
    scaled(value, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// Parses bytes such as `1000`, `64KiB`, `64 MiB` or `1GiB`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "" => 1_u64,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

/// Formats a change in a number of bytes, in binary units and with its sign: `+1.5 MiB`.
pub fn bytes_change(change: i128) -> String {
    signed(change, bytes)
}

/// Formats a change in a count, with its sign: `-1,234`.
pub fn count_change(change: i128) -> String {
    signed(change, count)
}

/// Formats a change, which is at most the difference of two 64-bit numbers.
fn signed(change: i128, unsigned: fn(u64) -> String) -> String {
    let sign = match change {
        0 => "",
        1.. => "+",
        _ => "-",
    };
    format!("{sign}{}", unsigned(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX)))
}

/// Formats a change in percent of the previous value, with its sign: `+5.0%`. The result is `new` if the previous value
/// was 0, and `gone` if the new one is 0.
pub fn percent_change(before: u64, after: u64) -> String {
    match (before, after) {
        _ if before == after => "0.0%".to_owned(),
        (0, _) => "new".to_owned(),
        (_, 0) => "gone".to_owned(),
        _ if before < after => format!("+{}", percent(after - before, before)),
        _ => format!("-{}", percent(before - after, before)),
    }
}

/// Formats nanoseconds: `1.5 ms`.
pub fn nanoseconds(value: u64) -> String {
    scaled(value, 1000, &["ns", "us", "ms", "s", "ks", "Ms", "Gs"])
}

/// Parses a duration as printed by [`nanoseconds`] or as written by people: `500ms`, `3.7s`, `1.02 s`, `5min`, `2h`.
///
/// Digits below a nanosecond are dropped. Returns `None` if `text` is not a duration or is too large.
pub fn parse_nanoseconds(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let unit: u128 = match unit.trim() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "ks" => 1_000_000_000_000,
        "Ms" => 1_000_000_000_000_000,
        "Gs" => 1_000_000_000_000_000_000,
        _ => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    // Reject more than 18 decimals. Even in the largest unit, `Gs`, the 18th decimal is a single nanosecond.
    let scale = 10_u128.pow(u32::try_from(decimals.len()).ok().filter(|digits| (1..=18).contains(digits))?);
    let whole = u128::from(whole.parse::<u64>().ok()?);
    let decimals = u128::from(decimals.parse::<u64>().ok()?);
    u64::try_from(whole * unit + decimals * unit / scale).ok()
}

/// Formats a number with three digits and a unit.
fn scaled(value: u64, base: u64, units: &[&str]) -> String {
    let mut unit = 0;
    let mut size = u128::from(value) * 100;
    let base = u128::from(base);
    while size >= base * 100 && unit + 1 < units.len() {
        size = (size + base / 2) / base;
        unit += 1;
    }
    let (whole, rest) = (size / 100, size % 100);
    let name = units.get(unit).copied().unwrap_or_default();
    match (unit, whole) {
        (0, _) => format!("{whole} {name}"),
        (_, 0..10) => format!("{whole}.{rest:02} {name}"),
        (_, 10..100) => format!("{whole}.{} {name}", rest / 10),
        _ => format!("{whole} {name}"),
    }
}

/// Formats `part` as a percentage of `whole`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{}%", tenths / 10, tenths % 10)
}

/// Formats a bar of up to `width` characters.
pub fn bar(part: u64, most: u64, width: u64) -> String {
    if most == 0 {
        return String::new();
    }
    let eighths = u128::from(part) * u128::from(width) * 8 / u128::from(most);
    let full = usize::try_from(eighths / 8).unwrap_or(0);
    let rest = usize::try_from(eighths % 8).unwrap_or(0);
    let mut text = "█".repeat(full);
    if rest > 0 || (full == 0 && part > 0) {
        text.extend(['▏', '▏', '▎', '▍', '▌', '▋', '▊', '▉'].get(rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_people() {
        assert_eq!(count(0), "0");
        assert_eq!(count(123), "123");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1536), "1.50 KiB");
        assert_eq!(bytes(u64::MAX), "16.0 EiB");
        assert_eq!(nanoseconds(12_345_678), "12.3 ms");
        assert_eq!(percent(1, 3), "33.3%");
        let changes =
            [(0, 0), (0, 3), (3, 0), (1000, 1050), (3, 2)].map(|(before, after)| percent_change(before, after));
        assert_eq!(changes, ["0.0%", "new", "gone", "+5.0%", "-33.3%"]);
        assert_eq!((bytes_change(-1536), count_change(1234)), ("-1.50 KiB".to_owned(), "+1,234".to_owned()));
        let most = i128::from(u64::MAX);
        assert_eq!(
            (bytes_change(-most), count_change(i128::MAX)),
            ("-16.0 EiB".to_owned(), format!("+{}", count(u64::MAX)))
        );
        assert_eq!(
            (count_change(0), percent_change(1, u64::MAX)),
            ("0".to_owned(), "+1844674407370955161400.0%".to_owned())
        );
        let parsed = ["", "7", "64KiB", "2 GiB", "KiB", "1kB", "17179869184GiB"].map(parse_bytes);
        assert_eq!(parsed, [None, Some(7), Some(65536), Some(2 << 30), None, None, None]);
        let times = [
            "500ms",
            "3.7s",
            "1.02 s",
            "5min",
            "0.0000000019s",
            "18446744073s",
            "1",
            "1.s",
            ".5s",
            "1.2.3s",
            "-1s",
            "19Gs",
        ];
        let parsed = times.map(parse_nanoseconds);
        let expected = [500_000_000, 3_700_000_000, 1_020_000_000, 300_000_000_000, 1, 18_446_744_073_000_000_000];
        assert_eq!(parsed[..6], expected.map(Some));
        assert_eq!(parsed[6..], [None; 6]);
        assert_eq!(bar(1, 1000, 20), "▏");
        assert_eq!(bar(10, 10, 3), "███");
    }

    /// Checks that every printed time can be parsed, and yields the same value to the printed precision.
    #[test]
    fn printed_times_are_parsed() {
        let mut time = 1_u64;
        while let Some(next) = time.checked_mul(3) {
            for time in [time, time + 1, time - 1] {
                let text = nanoseconds(time);
                let parsed = parse_nanoseconds(&text).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(nanoseconds(parsed), text);
                assert!(parsed.abs_diff(time) <= time / 90, "{time} is printed as {text}");
            }
            time = next;
        }
    }
}
