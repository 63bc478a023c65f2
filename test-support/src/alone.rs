//! Tests that look at what is the process's, such as a count of all that it allocates.

use crate::run;
use std::process::Command;

const ALONE: &str = "METATF_TEST_ALONE";

/// Runs the calling test in a process of its own, without the other tests of its binary. It returns true there, and false where the test
/// was started: it has passed then. `test` is the test's path, as libtest prints it.
///
/// ```no_run
/// #[test]
/// fn memory_is_bounded() {
///     if !metatf_test::alone("memory::memory_is_bounded") {
///         return;
///     }
///     // What needs a process of its own.
/// }
/// ```
///
/// # Panics
///
/// If the test fails there, or if there is none of this path.
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
