//! Numbers for people.

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

/// Bytes in binary units: `1.5 MiB`.
pub fn bytes(value: u64) -> String {
    scaled(value, 1024, &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"])
}

/// Nanoseconds: `1.5 ms`.
pub fn nanoseconds(value: u64) -> String {
    scaled(value, 1000, &["ns", "us", "ms", "s", "ks", "Ms", "Gs"])
}

/// Three digits and a unit.
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

/// `part` of `whole` in percent.
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
        assert_eq!(bar(1, 1000, 20), "▏");
        assert_eq!(bar(10, 10, 3), "███");
    }
}
