//! What options are given: bytes, times, signals.

use hatf::record::Keep;

/// Bytes of `64MiB`, `1 GiB`, `1048576`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let bytes = metatf_page::units::parse_bytes(text).filter(|bytes| *bytes >= 1 << 20);
    bytes.ok_or_else(|| "expected at least 1MiB, such as 64MiB or 1GiB".to_owned())
}

/// The number of a signal that a program may have a handler for and that nothing else here uses.
pub(super) fn signal(text: &str) -> Result<i32, String> {
    let signals = [("USR1", libc::SIGUSR1), ("USR2", libc::SIGUSR2), ("URG", libc::SIGURG), ("WINCH", libc::SIGWINCH)];
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let real_time = || {
        let number = name.strip_prefix("RTMIN+").or_else(|| name.strip_prefix("RTMIN").filter(|rest| rest.is_empty()));
        let number = number.map(|number| if number.is_empty() { Ok(0) } else { number.parse::<i32>() });
        number.and_then(Result::ok).map(|number| libc::SIGRTMIN().saturating_add(number))
    };
    let named = signals.iter().find(|(known, _)| *known == name).map(|(_, signal)| *signal);
    let found = named.or_else(real_time).filter(|signal| *signal >= 1 && *signal <= libc::SIGRTMAX());
    found.ok_or_else(|| "expected USR1, USR2, URG, WINCH, or RTMIN+N".to_owned())
}

/// A part of a recording: a time or bytes.
pub(super) fn keep(text: &str) -> Result<Keep, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let second = match unit.trim() {
        "ms" => Some(1_000_000),
        "s" => Some(1_000_000_000),
        "min" => Some(60_000_000_000),
        "h" => Some(3_600_000_000_000),
        _ => None,
    };
    let kept = match second {
        Some(second) => number.parse::<u64>().ok().and_then(|number| number.checked_mul(second)).map(Keep::Time),
        None => metatf_page::units::parse_bytes(text).filter(|bytes| *bytes >= 1 << 16).map(Keep::Bytes),
    };
    let least = |kept: &Keep| !matches!(kept, Keep::Time(0));
    kept.filter(least)
        .ok_or_else(|| "expected a time, such as 60s, 500ms or 5min, or at least 64KiB, such as 64MiB".to_owned())
}

/// A name of a thread, or of a module's file.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.len() < 256 && !text.contains(['/', '\n']);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "expected a name, such as worker* or libfoo.so*, without a path".to_owned())
}

/// A mean number of bytes.
pub(super) fn sample(text: &str) -> Result<u64, String> {
    let bytes = metatf_page::units::parse_bytes(text).filter(|bytes| (1..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| "expected a number of bytes, such as 512KiB".to_owned())
}

/// Nanoseconds of `1us`, `100 ns`, `1ms`; 0 for `off`.
pub(super) fn clock(text: &str) -> Result<u64, String> {
    if text == "off" {
        return Ok(0);
    }
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit.trim() {
        "ns" => Some(1),
        "us" | "µs" => Some(1_000),
        "ms" => Some(1_000_000),
        _ => None,
    };
    let tick = number.parse::<u64>().ok().zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    let wrong = || "expected a length from 1ns to 1ms, such as 1us, or off".to_owned();
    tick.filter(|tick| (1..=1_000_000).contains(tick)).ok_or_else(wrong)
}
