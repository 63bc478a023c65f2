//! Sizes of a long trace do not grow unnoticed. Codecs and filters are chosen by trial, and a choice for the first few
//! thousand events may be wrong for chunks of megabytes.
//!
//! The trace contains 700,000 events, from the benchmark's seven programs in sequence.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common::hatf;
use insta::assert_snapshot;
use metatf_test::{Folder, root};
use std::fmt::Write as _;

/// Formats and profiles.
const KINDS: [(&str, &str); 2] = [("heap", "default"), ("heap", "archive")];

#[test]
fn a_long_trace_is_as_long_as_it_was() {
    let folder = Folder::new();
    let convert = |arguments: &[&str], input: &str, output: &str| {
        hatf(["convert"].iter().chain(arguments).chain(&[input, output])).exits(0);
    };
    let (one, all, out) = (folder.path("one.raw32"), folder.path("all.raw32"), folder.path("out.mtf"));
    let mut events: Vec<_> =
        std::fs::read_dir(root().join("dev/benches/events")).unwrap().map(|e| e.unwrap().path()).collect();
    events.retain(|path| path.extension().is_some_and(|e| e == "mtf"));
    events.sort();
    let mut raw = Vec::new();
    for program in &events {
        convert(&["--to", "raw32"], program.to_str().unwrap(), &one);
        raw.extend(folder.read("one.raw32"));
    }
    folder.write("all.raw32", &raw);
    let mut sizes = format!("events: {}\n", raw.len() / 32);
    for (form, profile) in KINDS {
        convert(&["--from", "raw32", "--to", form, "--profile", profile], &all, &out);
        writeln!(sizes, "{form}, {profile}: {} bytes", folder.size("out.mtf")).unwrap();
    }
    assert_snapshot!(sizes);
}
