//! Tests that inspect process-wide state, such as a count of all allocations.

use crate::run;
use std::process::Command;

const ALONE: &str = "METATF_TEST_ALONE";

/// Runs the calling test in its own process, without the other tests of its binary. Returns `true` in that process. In
/// the original process, returns `false` after the test has passed in its own process. `test` is the test's path as
/// printed by libtest.
///
/// ```no_run
/// #[test]
/// fn memory_is_bounded() {
///     if !metatf_test::alone("memory::memory_is_bounded") {
///         return;
///     }
///     // Code that needs its own process.
/// }
/// ```
///
/// # Panics
///
/// Panics if the test fails in its own process, or if there is no test with this path.
#[track_caller]
#[must_use]
pub fn alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let binary = std::env::current_exe().expect("the path of this binary");
    let mut command = Command::new(binary);
    command.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let ran = run(&mut command).exits(0);
    assert!(ran.text().contains("1 passed"), "there is no test `{test}`: {}", ran.text());
    print!("{}", ran.text());
    false
}
