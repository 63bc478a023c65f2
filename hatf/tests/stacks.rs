//! Call stacks: what is recorded is what the C library's own `backtrace` finds, and functions have their names.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{compiled, hatf};
use hatf::stacks::Stacks;
use hatf::trace::TraceReader;
use hatf::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

/// The stacks of a trace, by the size of the block.
fn stacks(trace: &Path) -> HashMap<u64, Vec<u64>> {
    let (mut reader, mut found) = (TraceReader::open(trace).unwrap(), HashMap::new());
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item
            && let EventKind::Call(call) = event.kind
        {
            found.insert(call.size, event.stack.to_vec());
        }
    }
    found
}

#[test]
fn stacks_are_those_of_the_c_library() {
    for flags in [&["-O2", "-fomit-frame-pointer"][..], &["-O0"], &["-O2", "-fno-omit-frame-pointer", "-static-libgcc"]]
    {
        let folder = Folder::new();
        let Some(program) = compiled(&folder, "stacks", flags) else { return };
        let trace = folder.path("trace.mtf");
        let program = program.display().to_string();
        let run = hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(7);
        let recorded = stacks(Path::new(&trace));
        let mut checked = 0;
        for line in run.text().lines() {
            let (size, frames) = line.split_once(' ').unwrap();
            let frames: Vec<u64> = frames.split(' ').map(|frame| u64::from_str_radix(frame, 16).unwrap()).collect();
            let stack = &recorded[&size.parse().unwrap()];
            // The innermost are two places in one function.
            assert_eq!(stack[1..], frames[1..], "{flags:?}: {size}");
            checked += 1;
        }
        assert_eq!(checked, 32);
    }
}

/// Deep stacks are cut at their outer end.
#[test]
fn the_deepest_frames_count() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    let trace = folder.path("trace.mtf");
    let program = program.display().to_string();
    hatf(["record", "--stacks=5", "-q", "-o", &trace, "--", &program]).exits(7);
    let recorded = stacks(Path::new(&trace));
    assert!(recorded.values().any(|stack| stack.len() == 5) && recorded.values().all(|stack| stack.len() <= 5));
}

#[test]
fn functions_have_names() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    let (trace, named) = (folder.path("trace.mtf"), folder.path("trace.sym.mtf"));
    let program = program.display().to_string();
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(7);
    hatf(["symbolize", &trace]).exits(0).says("frames have a function in");
    let mut reader = TraceReader::open(Path::new(&named)).unwrap();
    let (mut stacks, mut seen) = (Stacks::default(), HashMap::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        stacks.note(&event.kind);
        if let EventKind::Call(call) = event.kind {
            seen.insert(call.size, stacks.number(event.stack));
        }
    }
    // The first is in main, the fourth in a function with a variable-length array.
    let lines = |size| stacks.get(seen[&size]).flat_map(hatf::stacks::Location::lines).collect::<Vec<_>>();
    assert!(lines(5001)[0].starts_with("here at ") && lines(5001)[0].contains("stacks.c:"), "{:?}", lines(5001));
    assert!(lines(5001)[1].starts_with("main at "), "{:?}", lines(5001));
    assert!(lines(5004)[1].starts_with("variable at "), "{:?}", lines(5004));
    let sites = hatf(["sites", &named, "--by", "allocated", "--rows", "100"]).exits(0).text();
    assert!(sites.contains("recursion at "), "{sites}");
    let folded = hatf(["flame", &named, "--by", "allocated", "--folded"]).exits(0).text();
    assert!(
        folded.lines().any(|line| line.contains(";main;recursion;recursion;") && line.contains(";here ")),
        "{folded}"
    );
}

/// Traces without stacks say what to do.
#[test]
fn a_trace_without_stacks() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["record", "-q", "-o", &trace, "--", "true"]).exits(0);
    hatf(["symbolize", &trace]).exits(1).says("the trace has no stacks; hatf record --stacks records them");
    hatf(["sites", &trace]).exits(0).says("the trace has no stacks");
}

/// Shared objects come and go, at one address or several.
#[test]
fn modules_that_are_unloaded() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    let Some(plugin) = compiled(&folder, "plugin", &["-O1", "-shared", "-fPIC"]) else { return };
    let (trace, named) = (folder.path("trace.mtf"), folder.path("trace.sym.mtf"));
    let (program, plugin) = (program.display().to_string(), plugin.display().to_string());
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program, &plugin]).exits(7);
    hatf(["symbolize", &trace]).exits(0);
    let mut reader = TraceReader::open(Path::new(&named)).unwrap();
    let (mut stacks, mut loads, mut unloads, mut names) = (Stacks::default(), Vec::new(), Vec::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        stacks.note(&event.kind);
        match event.kind {
            EventKind::ModuleLoad { start, name, .. } if name.ends_with(plugin.as_bytes()) => loads.push(start),
            EventKind::ModuleUnload { start } => unloads.push(start),
            EventKind::Call(call) if call.size >= 9000 && call.size < 9003 => {
                let number = stacks.number(event.stack);
                names.push(stacks.name(number, 3).to_string());
            }
            _ => {}
        }
    }
    assert_eq!((loads.len(), &loads), (3, &unloads));
    assert_eq!(names, ["plugin <- plugins <- main <- .."; 3]);
}
