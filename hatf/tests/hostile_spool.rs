//! A program that writes over the spool, or cuts it off: the recording is worthless, but it ends when the program does.
#![expect(clippy::unwrap_used)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// All events, the last part of them, and all that can be known of them.
const OPTIONS: [&[&str]; 3] = [&[], &["--keep", "256KiB"], &["--usable", "--pages"]];

/// Runs `script` recorded, with the spool's path in `HATF_SPOOL`; its exit status, or `None` if the recorder did not end.
fn record(options: &[&str], script: &str) -> Option<i32> {
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--report", "--no-trace"])
        .args(options)
        .args(["--", "/bin/sh", "-c", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        if let Some(status) = recorder.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    None
}

#[test]
fn bytes_of_the_program_s_own() {
    for byte in ["\\000", "\\001", "\\002", "\\375", "\\377"] {
        let fill = format!(
            "tr '\\000' '{byte}' < /dev/zero | dd of=\"$HATF_SPOOL\" bs=4096 count=2049 conv=notrunc iflag=fullblock; exit 7"
        );
        for options in OPTIONS {
            assert_eq!(record(options, &fill), Some(7), "{byte}, {options:?}");
        }
    }
}

#[test]
fn a_spool_that_is_cut_off() {
    // The program itself gets SIGBUS if it allocates once more: the pages that it recorded into are gone.
    for options in OPTIONS {
        let ended = record(options, "(: > \"$HATF_SPOOL\"); ls / > /dev/null; exit 7");
        assert!(matches!(ended, Some(7 | 135)), "{ended:?}, {options:?}");
    }
}
