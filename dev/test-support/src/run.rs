//! Runs programs and checks their output.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The exit status, or -1 if a signal killed the program.
    pub status: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Returns standard output as a string.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Asserts an exit status.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the assertion alone is a valid use")]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.text(), self.err);
        self
    }

    /// Asserts that standard error contains a string.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the assertion alone is a valid use")]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "stderr does not contain `{text}`: {}", self.err);
        self
    }

    /// Asserts that standard output contains a string.
    #[track_caller]
    #[expect(clippy::return_self_not_must_use, reason = "the assertion alone is a valid use")]
    pub fn prints(self, text: &str) -> Self {
        assert!(self.text().contains(text), "stdout does not contain `{text}`: {}", self.text());
        self
    }
}

/// Runs a program without input.
///
/// # Panics
/// Panics if the program does not start, or if the program itself panics.
#[track_caller]
pub fn run(command: &mut Command) -> Run {
    run_with(command, b"")
}

/// Runs a program with this standard input.
///
/// # Panics
/// Panics if the program does not start, or if the program itself panics.
#[track_caller]
pub fn run_with(command: &mut Command, input: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // Ignore errors, because a program that does not read its input closes the pipe.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    feeding.join().expect("the writing thread should not panic");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let crash = ["panicked at", "stack overflow", "memory allocation of"].iter().any(|crash| err.contains(crash));
    assert!(!crash, "{command:?} crashed: {err}");
    Run { status: output.status.code().unwrap_or(-1), out: output.stdout, err }
}
