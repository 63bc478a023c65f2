//! Python frames: the recorded frames are those that Python itself reports.
//!
//! The interpreters are the system's `python3` and the colon-separated ones in the variable `HATF_TEST_PYTHONS`.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compiled_from, hatf, source};
use hatf_trace::event::Function;
use hatf_trace::forms::TraceReader;
use hatf_trace::stacks::{Stacks, is_python};
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Returns the interpreters with known frames.
fn pythons() -> Vec<String> {
    let named = std::env::var("HATF_TEST_PYTHONS").unwrap_or_default();
    let names = std::iter::once("/usr/bin/python3").chain(named.split(':').filter(|name| !name.is_empty()));
    let known = names.filter(|name| {
        let script = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))";
        Command::new(name).args(["-c", script]).status().is_ok_and(|status| status.success())
    });
    let known: Vec<_> = known.map(str::to_owned).collect();
    if known.is_empty() {
        skip("there is no Python 3.11, 3.12 or 3.13");
    }
    known
}

fn script(name: &str) -> PathBuf {
    source(name).with_extension("py")
}

/// A frame: whether it is a Python frame, and its name, which is `function@file:line` for Python.
type Frame = (bool, String);

/// Adds the stacks of a trace, by block size.
fn add_stacks(trace: &Path, found: &mut HashMap<u64, Vec<Frame>>) {
    let (mut reader, mut stacks) = (TraceReader::open(trace).unwrap(), Stacks::default());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        stacks.note(&event.kind);
        let EventKind::Call(call) = event.kind else { continue };
        let number = stacks.number(event.stack);
        let frames = stacks.get(number).map(|location| match is_python(location.address) {
            true => {
                assert_eq!(location.functions.len(), 1, "{location:?}");
                let function = &location.functions[0];
                (true, format!("{}@{}:{}", function.name, function.file, function.line))
            }
            false => (false, location.functions.last().map(|function| function.name.clone()).unwrap_or_default()),
        });
        found.entry(call.size).or_insert_with(|| frames.collect());
    }
}

/// Records a script that prints the size and the frames of blocks. Checks that the frames in the traces of all its
/// processes are the printed ones, and returns the number of blocks.
fn check_frames(python: &str, name: &str, blocks: &str) -> usize {
    let folder = Folder::new();
    let (trace, named) = (folder.path("trace.mtf"), folder.path("named.mtf"));
    let script = script(name).display().to_string();
    let run = hatf(["record", blocks, "--stacks=256", "-q", "-o", &trace, "--", python, &script]).exits(0);
    hatf(["symbolize", &trace, "-o", &named]).exits(0);
    let children: Vec<_> = std::fs::read_dir(folder.path("trace.processes"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mtf"))
        .collect();
    let mut checked = 0;
    for trace in [trace, named] {
        let mut recorded = HashMap::new();
        children
            .iter()
            .map(PathBuf::as_path)
            .chain([Path::new(&trace)])
            .for_each(|trace| add_stacks(trace, &mut recorded));
        checked = 0;
        for line in run.text().lines() {
            let (size, frames) = line.split_once('\t').unwrap();
            let stack = &recorded[&size.parse().unwrap()];
            let python: Vec<_> =
                stack.iter().filter(|(is_python, _)| *is_python).map(|(_, name)| name.as_str()).collect();
            assert_eq!(python, frames.split('\t').collect::<Vec<_>>(), "{size}: {stack:?}");
            assert!(stack.iter().all(|(_, name)| name != "_PyEval_EvalFrameDefault"), "{stack:?}");
            // Native frames allocate, and start the thread.
            assert!(!stack.first().unwrap().0 && !stack.last().unwrap().0, "{stack:?}");
            // `sorted` is native and calls back.
            let key = stack.iter().position(|(_, name)| name.starts_with("keys.<locals>.key@"));
            assert!(key.is_none_or(|key| !stack[key + 1].0), "{stack:?}");
            checked += 1;
        }
    }
    checked
}

/// Frames are correct for each kind of function, and for code that is repeatedly created and freed.
#[test]
fn frames_are_those_that_python_says() {
    for python in pythons() {
        for blocks in ["--python", "--python=objects"] {
            assert_eq!(check_frames(&python, "frames", blocks), 270);
        }
    }
}

/// A cached stack is never returned for another one, although frames, code objects and strings reuse memory: in
/// recursion, generators, coroutines, after exceptions, in threads, in handlers of signals, and in a forked child.
#[test]
fn frames_that_reuse_memory() {
    for python in pythons() {
        for blocks in ["--python=arenas", "--python=objects"] {
            assert_eq!(check_frames(&python, "reused_frames", blocks), 3_315);
        }
    }
}

/// The arenas of small objects are blocks, which end when Python unmaps them. With `objects`, each object is a block.
#[test]
fn arenas_are_blocks() {
    for python in pythons() {
        let folder = Folder::new();
        let (trace, script) = (folder.path("trace.mtf"), folder.path("objects.py"));
        let text = "\
import mmap
kept = [(number,) for number in range(200_000)]
del kept
with mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as private:
    private.resize(1 << 21)
";
        std::fs::write(&script, text).unwrap();
        let record = |blocks: &str| {
            hatf(["record", blocks, "-q", "-o", &trace, "--", &python, &script]).exits(0);
            let report = hatf(["report", &trace]).exits(0).text();
            assert!(report.contains("contradictions: 0"), "{report}");
            let (mut reader, mut stacks) = (TraceReader::open(Path::new(&trace)).unwrap(), Stacks::default());
            // The live arenas, and the numbers of arenas, of other blocks and of arenas that ended.
            let (mut live, mut arenas, mut others, mut ended) = (HashSet::new(), 0, 0, 0);
            while let Some(item) = reader.next().unwrap() {
                let Item::Event(event) = item else { continue };
                stacks.note(&event.kind);
                if let EventKind::Free { address } = event.kind {
                    ended += u64::from(live.remove(&address));
                }
                let EventKind::Call(call) = event.kind else { continue };
                if (call.function, call.detail, call.size) == (Function::Memalign, 4096, 1 << 20) {
                    let number = stacks.number(event.stack);
                    assert!(arenas == 0 || stacks.get(number).any(|location| is_python(location.address)));
                    arenas += 1;
                    live.insert(call.address);
                } else {
                    others += u64::from(call.address != 0);
                }
            }
            (arenas, ended, others)
        };
        let (arenas, ended, others) = record("--python");
        // 200,000 tuples of 48 bytes and numbers of 28, in arenas of a million bytes.
        assert!((12..25).contains(&arenas) && ended > 8 && others < 20_000, "{arenas} {ended} {others}");
        let (arenas, _, others) = record("--python=objects");
        assert!(arenas < 2 && others > 400_000, "{arenas} {others}");
    }
}

/// In a stack with Python code, the interpreter's own functions and extensions are folded, so the user's line is shown.
#[test]
fn own_functions_are_pythons() {
    for python in pythons() {
        let folder = Folder::new();
        let (trace, script) = (folder.path("trace.mtf"), folder.path("own.py"));
        std::fs::write(&script, "def make(size):\n    return bytearray(size)\n\nkept = make(64 << 20)\n").unwrap();
        hatf(["record", "--python=objects", "-q", "-o", &trace, "--", &python, &script]).exits(0);
        let first = |options: &[&str]| {
            let run = hatf(["sites", "--by", "allocated", &trace].iter().chain(options)).exits(0);
            run.text().lines().skip_while(|line| !line.contains("with callees")).nth(1).unwrap_or_default().to_owned()
        };
        let own = first(&[]);
        assert!(own.contains(&format!("make at {script}:2")), "{own}");
        // With these options, only functions that the user names are folded.
        for options in [&["--whole"][..], &["--project", "Array"]] {
            let native = first(options);
            assert!(native.contains("PyByteArray_") && !native.contains("make"), "{native}");
        }
    }
}

/// Frames are recorded in signal handlers at any point of the interpreter and of hooks.
#[test]
fn frames_in_handlers_of_signals() {
    for python in pythons() {
        let folder = Folder::new();
        let Some(library) = compiled_from(&source("interrupted"), &folder, "interrupted.so", &["-shared", "-fPIC"])
        else {
            return;
        };
        let (trace, script, library) =
            (folder.path("trace.mtf"), script("interrupted").display().to_string(), library.display().to_string());
        let run = hatf([
            "record",
            "--python=objects",
            "--pages",
            "--profile",
            "fast",
            "-o",
            &trace,
            "--",
            &python,
            &script,
            &library,
        ])
        .exits(0)
        .says(" 0 lost");
        let handled: u64 = run.text().trim().parse().unwrap();
        let (mut reader, mut stacks, mut mapped, mut with_python) =
            (TraceReader::open(Path::new(&trace)).unwrap(), Stacks::default(), 0, 0);
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            stacks.note(&event.kind);
            if let EventKind::Pages(hatf_trace::event::Pages::Map { length: 4096, .. }) = event.kind {
                mapped += 1;
                let number = stacks.number(event.stack);
                with_python += u64::from(stacks.get(number).any(|location| is_python(location.address)));
            }
        }
        assert!(mapped >= handled && handled > 10 && with_python > handled / 2, "{handled} {mapped} {with_python}");
    }
}

/// If there is no Python, a message says so.
#[test]
fn where_there_is_no_python() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["record", "--python", "-o", &trace, "--", "/bin/true"]).exits(0).says("no Python was found");
}
