//! Says what a test cannot do on this machine.

/// Prints that a test, or a part of it, is skipped. `METATF_REQUIRE_ALL=1` makes it a failure: CI must not pass blind.
///
/// # Panics
/// If all tests are required.
#[track_caller]
pub fn skip(reason: &str) {
    let required = std::env::var_os("METATF_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "skipped, and METATF_REQUIRE_ALL=1: {reason}");
    eprintln!("SKIPPED: {reason}");
}
