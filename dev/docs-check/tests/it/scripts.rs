//! `dev/run` lists every script with one sentence, the first line of the script's header.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf_test::root;
use std::process::Command;

#[test]
fn every_script_has_a_sentence() {
    let output = Command::new(root().join("dev/run")).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let (scripts, steps) = text.split_once("\nSteps of .ci/run").unwrap();
    let (_, scripts) = scripts.split_once("\n\n").unwrap();
    let mut listed: Vec<&str> = Vec::new();
    for line in scripts.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  dev/run")) {
        let (name, sentence) = line.trim_start().split_once(' ').unwrap();
        let sentence = sentence.trim_start();
        assert!(sentence.ends_with('.') && sentence.len() <= 100, "{name}: {sentence}");
        listed.push(name);
    }
    let files = std::fs::read_dir(root().join("dev/scripts")).unwrap().map(Result::unwrap);
    let files = files.filter(|file| file.file_type().unwrap().is_file() && file.path().extension().is_none());
    let mut files: Vec<_> = files.map(|file| file.file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(listed, files);
    assert!(steps.lines().count() > 20, "{steps}");
}
