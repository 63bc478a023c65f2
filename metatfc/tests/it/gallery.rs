//! Files of the formats in `dtds/gallery`. `tests/gallery/check.py` makes the files and compares the printed values
//! with those of other readers. Each file is also restored from JSON lines and from a small trace.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use super::common::metatfc;
use metatf_test::{Folder, root, skip, vectors};
use std::path::Path;
use std::process::Command;

fn check(args: &[&str]) -> String {
    let script = root().join("tests/gallery/check.py");
    let output = Command::new("python3").arg(script).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Prints a file as `lines.jsonl`, and restores the file from these lines and from a small trace.
fn restored(here: &Folder, dtd: &str, order: &str, path: &str) {
    let run = |args: &[&str]| metatfc(here, args).exits(0);
    let lines = run(&["dump", "--dtd", dtd, "--all", "--format", "jsonl", path]).out;
    std::fs::write(here.join("lines.jsonl"), &lines).unwrap();
    let _ = run(&["convert", "lines.jsonl", "lines.mtf", "--dtd", dtd, "--order", order]);
    let _ = run(&["convert", path, "small.mtf", "--dtd", dtd, "--preset", "archive"]);
    for trace in ["lines.mtf", "small.mtf"] {
        let _ = run(&["verify", trace]);
        let _ = run(&["convert", trace, "again.raw", "--to", "raw"]);
        assert!(std::fs::read(path).unwrap() == std::fs::read(here.join("again.raw")).unwrap(), "{trace}: {path}");
    }
}

#[test]
fn values_are_those_of_other_readers_and_files_are_restored() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("python3 is not installed");
    }
    let here = &Folder::new();
    let mut formats = Vec::new();
    for line in check(&["files", &here.display().to_string()]).lines() {
        let [format, order, path] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        formats.push(format.to_owned());
        restored(here, &root().join(format!("dtds/gallery/{format}.dtd")).display().to_string(), order, path);
        let _ = check(&["values", format, path, &here.join("lines.jsonl").display().to_string()]);
    }
    let of_file = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    let folder = std::fs::read_dir(root().join("dtds/gallery")).unwrap();
    let mut expected: Vec<String> = folder.map(|file| of_file(&file.unwrap().path())).collect();
    formats.sort();
    formats.dedup();
    expected.sort();
    assert_eq!(formats, expected, "check.py makes files of every format");
}

/// Files whose records take values from a header, and files without other records.
#[test]
fn files_of_vectors_are_restored() {
    for (name, order) in [
        ("header-old", "little"),
        ("header-new", "big"),
        ("alone-little", "little"),
        ("alone-big", "big"),
        ("several", "big"),
    ] {
        let vector = vectors("good").join(format!("x-ends-{name}"));
        let path = |file: &str| vector.join(file).display().to_string();
        restored(&Folder::new(), &path("format.dtd"), order, &path("trace.raw"));
    }
}
