//! Runs the program, and looks at what it says.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What became of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// Exit status.
    pub(crate) status: i32,
    /// Standard output.
    pub(crate) out: Vec<u8>,
    /// Standard error.
    pub(crate) err: String,
}

impl Run {
    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Asserts an exit status.
    #[track_caller]
    pub(crate) fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, status, "stdout: {}\nstderr: {}", self.text(), self.err);
        self
    }

    /// Asserts that standard error holds a text.
    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "stderr does not say `{text}`: {}", self.err);
        self
    }

    /// Asserts that standard output holds a text.
    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.text().contains(text), "stdout does not print `{text}`: {}", self.text());
        self
    }
}

/// Runs `metatfc` in a folder; `METATF_PATH` is that folder.
pub(crate) fn metatfc(folder: &Path, args: &[&str]) -> Run {
    run(folder, args, b"")
}

/// The same, with standard input. No run may take long.
pub(crate) fn run(folder: &Path, args: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_metatfc"))
        .args(args)
        .current_dir(folder)
        .env("METATF_PATH", folder)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metatfc starts");
    let started = Instant::now();
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_vec();
    // A command that does not read its input closes it.
    let feeding = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("metatfc ends");
    feeding.join().expect("a thread");
    assert!(started.elapsed() < Duration::from_secs(60), "{args:?} took {:?}", started.elapsed());
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    let crash = ["panicked at", "stack overflow", "memory allocation of"].iter().any(|c| err.contains(c));
    let status = output.status.code().unwrap_or(-1);
    assert!(!crash && (0..=2).contains(&status), "{args:?} crashed ({status}): {err}");
    Run { status, out: output.stdout, err }
}
