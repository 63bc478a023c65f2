//! Reports tests that cannot run on this machine.

/// Prints that a test, or a part of it, is skipped. With `METATF_REQUIRE_ALL=1`, a skipped test fails, so that CI does
/// not pass without running it.
///
/// # Panics
/// Panics if all tests are required.
#[track_caller]
pub fn skip(reason: &str) {
    let required = std::env::var_os("METATF_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "skipped, and METATF_REQUIRE_ALL=1: {reason}");
    eprintln!("SKIPPED: {reason}");
}
