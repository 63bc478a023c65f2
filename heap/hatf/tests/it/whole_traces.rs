//! Raw traces of programs are unchanged, byte for byte, after conversion to `heap.dtd` and back. They are the
//! beginnings in `data`, or longer traces in the directory `METATF_HEAP_DATA`. Every trace of the recorder keeps the
//! invariants.
#![expect(clippy::unwrap_used)]

use crate::common::invariants;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compiled, hatf};
use metatf_test::{Folder, root};

#[test]
fn raw_records_to_heap_and_back() {
    let folder = std::env::var_os("METATF_HEAP_DATA").map_or_else(|| root().join("heap/hatf/tests/data"), Into::into);
    let work = Folder::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(form) = ["raw32", "raw64"].into_iter().find(|form| name.contains(&format!(".{form}"))) else {
            continue;
        };
        let (heap, back) = (work.path("t.mtf"), format!("t.{form}"));
        hatf(["convert", "--strict", path.to_str().unwrap(), &heap]).exits(0);
        hatf(["convert", "--strict", &heap, &work.path(&back)]).exits(0);
        let mut original = std::fs::read(&path).unwrap();
        if name.ends_with(".zst") {
            original = zstd::stream::decode_all(&original[..]).unwrap();
        }
        assert!(original == work.read(&back), "{name} differs");
        let records = original.len() / if form == "raw32" { 32 } else { 64 };
        eprintln!("{name}: {records} records, {} bytes as heap.dtd", work.size("t.mtf"));
        seen += 1;
    }
    assert!(seen > 0, "the folder holds no raw trace");
}

/// Traces of programs that are hard to record keep the invariants, and so do the traces in the directory that
/// `METATF_TRACES` names.
#[test]
fn what_every_trace_keeps() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    let mut check = |what: &str, trace: &Path| {
        wrong.extend(invariants::broken(trace).into_iter().map(|line| format!("{what}: {line}")));
    };
    if let Some(traces) = std::env::var_os("METATF_TRACES") {
        traces_in(Path::new(&traces)).iter().for_each(|trace| check(&trace.display().to_string(), trace));
    }
    let programs: [(&str, &[&str], &[&str]); 3] = [
        ("many_threads", &["-O1"], &["2000"]),
        ("processes", &["-O1"], &["generations"]),
        ("hazards_of_threads", &["-O1"], &[]),
    ];
    for (name, flags, arguments) in programs {
        let Some(program) = compiled(&folder, name, flags) else { return };
        for options in [&[][..], &["--stacks"], &["--pages", "--usable"], &["--sample", "1KiB"]] {
            let of = Folder::new();
            let trace = of.path("trace.mtf");
            let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"));
            recorder.args(["record", "-q", "-o", &trace]).args(options).arg("--").arg(&program).args(arguments);
            let run = metatf_test::run(&mut recorder);
            assert!(Path::new(&trace).exists(), "{name} {options:?}: {}", run.err);
            for trace in traces_in(&of) {
                check(&format!("{name} {options:?} {}", trace.file_name().unwrap().display()), &trace);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the traces in a directory and its subdirectories.
fn traces_in(folder: &Path) -> Vec<PathBuf> {
    let mut traces = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            traces.extend(traces_in(&path));
        } else if path.extension().is_some_and(|extension| extension == "mtf") {
            traces.push(path);
        }
    }
    traces
}
