//! Files of the formats in `dtds/gallery`. `tests/gallery/check.py` makes the files and compares the printed values with
//! those of other readers. Each file is also restored from JSON lines and from a small trace.

use super::common::metatfc;
use metatf_test::{Folder, root, skip};
use std::process::Command;

fn check(args: &[&str]) -> String {
    let script = root().join("tests/gallery/check.py");
    let output = Command::new("python3").arg(script).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
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
        let dtd = root().join(format!("dtds/gallery/{format}.dtd")).display().to_string();
        let run = |args: &[&str]| metatfc(here, args).exits(0);
        let lines = run(&["dump", "--dtd", &dtd, "--all", "--format", "jsonl", path]).out;
        std::fs::write(here.join("lines.jsonl"), &lines).unwrap();
        let _ = check(&["values", format, path, &here.join("lines.jsonl").display().to_string()]);

        let _ = run(&["convert", "lines.jsonl", "lines.mtf", "--dtd", &dtd, "--order", order]);
        let _ = run(&["convert", path, "small.mtf", "--dtd", &dtd, "--preset", "archive"]);
        for trace in ["lines.mtf", "small.mtf"] {
            let _ = run(&["verify", trace]);
            let _ = run(&["convert", trace, "again.raw", "--to", "raw"]);
            assert!(std::fs::read(path).unwrap() == std::fs::read(here.join("again.raw")).unwrap(), "{trace}: {line}");
        }
    }
    let mut expected: Vec<String> = std::fs::read_dir(root().join("dtds/gallery"))
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    formats.sort();
    formats.dedup();
    expected.sort();
    assert_eq!(formats, expected, "check.py makes files of every format");
}
