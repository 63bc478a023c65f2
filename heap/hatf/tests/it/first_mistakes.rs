//! For common mistakes on the command line, the message names the intended command.

use crate::common::hatf;
use metatf_test::Folder;

#[test]
fn a_program_is_not_a_trace() {
    let program = env!("CARGO_BIN_EXE_hatf");
    hatf([program]).exits(2).says(&format!("`{program}` is a file; to open it, run `hatf run {program}`"));
    hatf(["report", program]).exits(1).says(&format!("{program} is a program, not a trace: `hatf run {program}`"));
}

#[test]
fn a_trace_without_a_command() {
    let folder = Folder::new();
    let trace = folder.path("t.jsonl");
    std::fs::write(&trace, "").unwrap();
    hatf([&trace]).exits(2).says(&format!("`{trace}` is a file; to open it, run `hatf report {trace}`"));
}

#[test]
fn a_misspelt_command() {
    let said = hatf(["repotr"]).exits(2).err;
    assert!(said.contains("'report'") && !said.contains("'recover'"), "{said}");
    for (word, command) in [("export", "'convert'"), ("merge", "'convert'"), ("sample", "'cut'")] {
        hatf([word]).exits(2).says(command);
    }
}

#[test]
fn a_truncated_trace() {
    let folder = Folder::new();
    let (lines, trace) = (folder.path("t.jsonl"), folder.path("t.mtf"));
    std::fs::copy(metatf_test::root().join("docs/samples/sites.jsonl"), &lines).unwrap();
    hatf(["convert", &lines, &trace]).exits(0);
    let whole = std::fs::read(&trace).unwrap();
    std::fs::write(&trace, &whole[..whole.len() / 2]).unwrap();
    hatf(["report", &trace]).exits(1).says("help: `metatfc verify --salvage WHOLE.mtf TRACE`");
}

#[test]
fn times_as_they_are_printed() {
    let folder = Folder::new();
    let (lines, trace) = (folder.path("t.jsonl"), folder.path("t.mtf"));
    std::fs::copy(metatf_test::root().join("docs/samples/sites.jsonl"), &lines).unwrap();
    hatf(["convert", &lines, &trace]).exits(0);
    // The times are valid, but the sample has no timestamps.
    for time in ["3.7s", "1.02 s", "28.2 ms"] {
        hatf(["sites", &trace, "--at", time]).exits(2).says("the trace has no timestamps");
    }
    hatf(["sites", &trace, "--live-between", "1.03 s..3.17 s"]).exits(2).says("the trace has no timestamps");
    hatf(["sites", &trace, "--at", "3.7"]).exits(2).says("expected a time, such as 3.7s or 500ms");
}
