//! Recording only some threads or modules, and recording only sizes.
#![expect(clippy::unwrap_used)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compiled, compiled_from, hatf, source};
use metatf_test::Folder;
use serde_json::Value;

/// Number of blocks passed from one thread to the other.
const GIVEN: u64 = 4_000;

/// Compiles the program and its library.
fn parts(folder: &Folder) -> Option<PathBuf> {
    let library = folder.join("libparts.so");
    let built =
        Command::new("cc").args(["-g", "-shared", "-fPIC", "-o"]).arg(&library).arg(source("parts_library")).status();
    if !built.is_ok_and(|status| status.success()) {
        metatf_test::skip("there is no C compiler");
        return None;
    }
    let library = library.display().to_string();
    compiled(folder, "parts", &["-O0", "-fno-builtin", "-Wl,--no-as-needed", &library, "-Wl,-rpath,$ORIGIN"])
}

/// Records the program with options. Returns the report on the trace.
fn report(folder: &Folder, program: &Path, options: &[&str]) -> Value {
    let trace = folder.path("trace.mtf");
    let (program, given) = (program.display().to_string(), GIVEN.to_string());
    let mut words = vec!["record", "-q", "-o", &trace];
    words.extend(options);
    words.extend(["--", &program, &given]);
    hatf(words).exits(0);
    serde_json::from_slice(&hatf(["report", &trace, "--format", "json"]).exits(0).out).unwrap()
}

fn number(report: &Value, place: &str) -> u64 {
    report.pointer(place).and_then(Value::as_u64).unwrap()
}

/// Returns the allocations, their bytes and the frees. Checks that the trace contains the allocation of every freed
/// block.
fn sums(report: &Value) -> [u64; 3] {
    for place in ["/totals/unmatched_frees", "/totals/allocs_of_live_blocks", "/totals/lost"] {
        assert_eq!(number(report, place), 0, "{place}");
    }
    ["/totals/allocs", "/totals/bytes", "/totals/frees"].map(|place| number(report, place))
}

#[test]
fn threads_only() {
    let folder = Folder::new();
    let Some(program) = parts(&folder) else { return };
    let moved = (0..10).map(|n| 40 + 1000 * n).sum::<u64>() + 40;
    // Another thread freed the blocks that the thread gave away, but that thread's own blocks are not recorded.
    let worker = [GIVEN + 11, GIVEN * 300 + moved, GIVEN + 11];
    for names in ["worker-1", "worker*", "nobody,worker-1", "work*,w*"] {
        assert_eq!(sums(&report(&folder, &program, &["--only-threads", names])), worker, "{names}");
    }
    // A failed realloc ends nothing: its block stays live until it is freed.
    assert_eq!(number(&report(&folder, &program, &["--only-threads", "worker-1"]), "/calls/failed"), 1);
    let other = [GIVEN + 10, GIVEN * 70 + 10 * 310, GIVEN + 10];
    assert_eq!(sums(&report(&folder, &program, &["--only-threads", "other"])), other);
    assert_eq!(sums(&report(&folder, &program, &["--only-threads", "nobody"])), [0; 3]);
    // Only a name that matches no thread is reported.
    let program_name = program.display().to_string();
    let messages = |option| {
        hatf(["record", "-q", "-o", &folder.path("named.mtf"), option, "--", &program_name, "10"]).exits(0).err
    };
    assert!(messages("--only-threads=nobody").contains("no thread that --only-threads=nobody matches"));
    assert_eq!(messages("--only-threads=other"), "");
    // With stacks, each block of the thread has one, and the counts stay the same.
    assert_eq!(sums(&report(&folder, &program, &["--only-threads", "worker-1", "--stacks"])), worker);
    let shown = hatf(["report", &folder.path("trace.mtf")]).exits(0);
    shown.prints(r#"only: threads ["worker-1"]"#);
}

#[test]
fn modules_only() {
    let folder = Folder::new();
    let Some(program) = parts(&folder) else { return };
    let library = [GIVEN + 20, GIVEN * 500 + 20 * 13, GIVEN + 20];
    for options in [&["--only-modules", "libparts.so"][..], &["--only-modules=libparts*", "--stacks"]] {
        assert_eq!(sums(&report(&folder, &program, options)), library, "{options:?}");
    }
    // The modules in the stacks are known although the stacks were walked before.
    let trace = folder.path("trace.mtf");
    hatf(["symbolize", &trace, "-o", &trace]).exits(0);
    hatf(["sites", &trace, "--by", "allocated", "--group", "stack"])
        .exits(0)
        .prints("library_make")
        .prints("library_copy")
        .prints("strdup");
    // Blocks that strdup allocates for the program count as the program's, those for the library do not.
    let by_program = report(&folder, &program, &["--only-modules", "parts"]);
    let [allocs, ..] = sums(&by_program);
    // (The C library calls calloc for each thread that it creates.)
    assert_eq!(allocs - number(&by_program, "/calls/calloc"), GIVEN + 1 + 1 + 10 + 10 + GIVEN + 30);
    assert_eq!(number(&by_program, "/calls/failed"), 2);
    // Both options together select the allocations by the module in the thread.
    let both = report(&folder, &program, &["--only-threads=worker-1", "--only-modules=libparts.so"]);
    assert_eq!(sums(&both), [0; 3]);
}

/// An instruction belongs to the module now at its address, not to an earlier one.
#[test]
fn modules_that_are_unloaded() {
    let folder = Folder::new();
    let Some(program) = parts(&folder) else { return };
    let flags = ["-O1", "-shared", "-fPIC"];
    let plugins =
        ["first.so", "second.so"].map(|name| compiled_from(&source("plugin"), &folder, name, &flags).unwrap());
    let [first, second] = plugins.map(|plugin| plugin.display().to_string());
    let (trace, program) = (folder.path("trace.mtf"), program.display().to_string());
    let record = ["record", "-q", "-o", &trace, "--only-modules=second.so", "--", &program, "0"];
    hatf(record.into_iter().chain([&first, &second, &first, &second, &second].map(String::as_str))).exits(0);
    let report: Value = serde_json::from_slice(&hatf(["report", &trace, "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(sums(&report), [30, 30 * 7000, 30]);
}

#[test]
fn sizes_only() {
    let folder = Folder::new();
    let Some(program) = parts(&folder) else { return };
    // The times and the memory samples of a run on a loaded machine may take more bytes than addresses.
    let steady = ["--clock", "off", "--no-resident"];
    let whole = report(&folder, &program, &steady);
    let size = |folder: &Folder| std::fs::metadata(folder.join("trace.mtf")).unwrap().len();
    let whole_size = size(&folder);
    let sizes = report(&folder, &program, &[&steady[..], &["--sizes-only", "--stacks"]].concat());
    assert_eq!(sizes["sizes_only"], true);
    assert!(size(&folder) < whole_size);
    for place in ["/totals/allocs", "/totals/bytes", "/calls/malloc", "/calls/realloc", "/calls/failed"] {
        assert_eq!(number(&sizes, place), number(&whole, place), "{place}");
    }
    assert_eq!(sizes["sizes"], whole["sizes"]);
    assert_eq!(number(&sizes, "/totals/frees"), 0);
    assert_eq!(number(&sizes, "/peak/bytes"), 0);
    let trace = folder.path("trace.mtf");
    let shown = hatf(["report", &trace]).exits(0).prints("sizes only:");
    for nothing in ["STILL LIVE", "PEAK", "REALLOC\n", "LIVE AT THE END"] {
        assert!(!shown.text().contains(nothing), "{nothing}");
    }
    let shown = hatf(["sites", &trace]).exits(0).prints("sizes only:").prints("ALLOCATED");
    assert!(!shown.text().contains("LIVE AT THE END"));
    hatf(["sites", &trace, "--format", "folded", "--by", "allocated"]).exits(0);
    hatf(["sites", &trace, "--format", "folded"]).exits(2).says("--by allocated");
    // A converted trace contains only sizes as well.
    let copy = folder.path("copy.mtf");
    hatf(["convert", &trace, &copy]).exits(0);
    for command in [&["simulate"][..], &["replay"], &["diff", &trace], &["profile"], &["fragmentation"]] {
        hatf(command.iter().chain([&copy.as_str()])).exits(1).says("so it does not show when blocks end");
    }
    hatf(["convert", "--to", "hatf10", &trace, &folder.path("paper.mtf")]).exits(1).says("--sizes-only");
    // Usable sizes are recorded as well.
    let [whole, sizes] =
        [&["--usable"][..], &["--usable", "--sizes-only"]].map(|options| report(&folder, &program, options));
    for place in ["/usable/blocks", "/usable/asked", "/usable/usable"] {
        assert_eq!(number(&sizes, place), number(&whole, place), "{place}");
    }
    // Only the calls by one thread are recorded.
    let worker = report(&folder, &program, &["--sizes-only", "--only-threads", "worker-1"]);
    assert_eq!(number(&worker, "/totals/allocs"), GIVEN + 11);
}

#[test]
fn wrong_names() {
    for option in ["--only-threads", "--only-modules"] {
        for name in ["", "a/b", "a,,b"] {
            hatf(["record", option, name, "true"]).exits(2).says("without a path");
        }
    }
    hatf(["record", "--sizes-only", "--format", "hatf10", "true"]).exits(2).says("cannot be used with");
}
