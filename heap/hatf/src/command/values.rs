//! Parsers for option values such as bytes, times and signals.

use hatf_host::record::Keep;
use metatf_page::units::parse_nanoseconds as nanoseconds;

/// Parses a number of bytes of at least 1 MiB, such as `64MiB`, `1 GiB` or `1048576`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let bytes = metatf_page::units::parse_bytes(text).filter(|bytes| *bytes >= 1 << 20);
    bytes.ok_or_else(|| "expected at least 1MiB, such as 64MiB or 1GiB".to_owned())
}

/// Parses a signal that the recorder can handle and that hatf does not use otherwise.
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

/// Parses how much of a recording to keep, as a duration or a number of bytes.
pub(super) fn keep(text: &str) -> Result<Keep, String> {
    let bytes = || metatf_page::units::parse_bytes(text).filter(|bytes| *bytes >= 1 << 16).map(Keep::Bytes);
    let kept = nanoseconds(text).map(Keep::Time).or_else(bytes);
    let least = |kept: &Keep| !matches!(kept, Keep::Time(0));
    kept.filter(least)
        .ok_or_else(|| "expected a time, such as 60s, 500ms or 5min, or at least 64KiB, such as 64MiB".to_owned())
}

/// Parses the name of a thread or of a module's file.
pub(super) fn name(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty() && text.len() < 256 && !text.contains(['/', '\n']);
    is_name
        .then(|| text.to_owned())
        .ok_or_else(|| "expected a name, such as worker* or libfoo.so*, without a path".to_owned())
}

/// Parses the mean number of allocated bytes per sampled block.
pub(super) fn sample(text: &str) -> Result<u64, String> {
    let bytes = metatf_page::units::parse_bytes(text).filter(|bytes| (1..=1 << 40).contains(bytes));
    bytes.ok_or_else(|| "expected a number of bytes, such as 512KiB".to_owned())
}

/// Parses a clock resolution such as `1us`, `100 ns` or `1ms` into nanoseconds; `off` is 0.
pub(super) fn clock(text: &str) -> Result<u64, String> {
    if text == "off" {
        return Ok(0);
    }
    let wrong = || "expected a duration from 1ns to 1ms, such as 1us, or off".to_owned();
    nanoseconds(text).filter(|tick| (1..=1_000_000).contains(tick)).ok_or_else(wrong)
}
