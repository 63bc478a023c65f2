//! Scoped memory: the document's example and its simulations.
#![expect(clippy::unwrap_used)]

use std::path::Path;

use crate::common::hatf;
use hatf_research::scoped::{Variant, example};
use hatf_trace::event::{Call, Function};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Event, EventKind, EventSink as _};
use insta::assert_snapshot;
use metatf_test::{Folder, root, run, skip};

/// Writes a trace of the document's example and returns its path.
fn example_trace(folder: &Folder, variant: Variant, mc: u64) -> String {
    folder.write("example.mtf", example(variant, mc, Vec::new()).unwrap());
    folder.path("example.mtf")
}

#[test]
fn the_example() {
    let folder = Folder::new();
    for (name, variant) in [("figure1", Variant::Figure1), ("table2", Variant::Table2)] {
        let path = example_trace(&folder, variant, 10);
        let grid = ["--block", "64,256", "--intra", "first,best", "--inter", "capture,first,best"];
        let text = hatf([&["regions", "simulate", &path][..], &grid].concat()).exits(0).text();
        assert_snapshot!(name, text.replace(&path, name));
    }
}

#[test]
fn as_data_and_as_pictures() {
    let folder = Folder::new();
    let path = example_trace(&folder, Variant::Figure1, 30);
    let (five, six) = (folder.path("5.svg"), folder.path("6.svg"));
    let options = ["--block", "64,128", "--svg", &six, "--over-time", &five, "--format", "json"];
    let text = hatf([&["regions", "simulate", &path][..], &options].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["managers"][1]["block"], &json["trace"]["regions"]), (&128.into(), &33.into()));
    for (picture, shows) in [(five, ">64 first capture<"), (six, ">first capture<")] {
        let picture = std::fs::read_to_string(picture).unwrap();
        assert!(picture.contains(shows) && picture.ends_with("</svg>\n"), "{picture}");
    }
}

#[test]
fn by_mistake() {
    let folder = Folder::new();
    let path = example_trace(&folder, Variant::Figure1, 10);
    hatf(["regions", "simulate", &path, "--block", "0"]).exits(2);
    hatf(["regions", "simulate", &path, "--block", "16", "--oversize", "error"])
        .exits(2)
        .says("does not fit in a block of 16");
    hatf(["regions", "simulate", "/no/such/trace"]).exits(1).says("/no/such/trace");
    let heap = folder.path("heap.mtf");
    hatf(["convert", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst"), &heap]).exits(0);
    hatf(["regions", "simulate", &heap]).exits(1).says("not a trace of scoped memory");
    hatf(["report", &path]).exits(1).says("not a heap trace");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    hatf(["regions", "simulate", &path]).exits(1).says(&format!("hatf: {path}: offset "));
}

/// Writes the trace of a server: for each request, `handle` allocates and frees a line and a word, and `serve` replaces
/// its log. Each tenth request keeps a block.
fn server(path: &str) {
    let mut file = hatf_trace::trace::create(Path::new(path)).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let mut event = |kind, stack: &[u64]| writer.event(&Event { stack: stack.into(), ..Event::new(kind) }).unwrap();
    event(EventKind::Image { process: 1, path: b"/bin/server" }, &[]);
    event(EventKind::ModuleLoad { bias: 0, start: 0x1000, end: 0x2000, name: b"- /bin/server" }, &[]);
    for (frame, name) in [
        (0x1010, "main"),
        (0x1020, "serve"),
        (0x1024, "serve"),
        (0x1030, "handle"),
        (0x1032, "handle"),
        (0x1034, "handle"),
    ] {
        event(EventKind::Symbol { frame, line: 0, name: name.as_bytes() }, &[]);
    }
    let call = |address, size| EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) });
    let free = |address| EventKind::Free { address };
    event(call(0x10, 100), &[0x1020, 0x1010]);
    for request in 0..50 {
        event(call(0x100, 30), &[0x1030, 0x1024, 0x1010]);
        event(call(0x200, 10), &[0x1034, 0x1024, 0x1010]);
        if request % 10 == 0 {
            event(call(0x1000 + request, 1), &[0x1032, 0x1024, 0x1010]);
        }
        event(free(0x100), &[]);
        event(free(0x200), &[]);
        event(free(0x10), &[]);
        event(call(0x10, 100 + request), &[0x1020, 0x1010]);
    }
    event(free(0x10), &[]);
    writer.finish().unwrap();
    hatf_trace::trace::written(file, Path::new(path)).unwrap();
}

#[test]
fn arenas_that_a_program_could_have() {
    let folder = Folder::new();
    let (path, scoped) = (folder.path("server.mtf"), folder.path("scoped.mtf"));
    server(&path);
    let text = hatf(["regions", "infer", &path, "--most-cost", "64", "-o", &scoped]).exits(0).text();
    assert_snapshot!("infer", text.replace(&path, "server.mtf"));
    // Each request is its own region.
    let json = hatf(["regions", "simulate", &scoped, "--format", "json"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let trace = &json["trace"];
    let [regions, objects, captured] = ["regions", "objects", "captured"].map(|key| trace[key].as_u64().unwrap());
    assert_eq!((regions, objects, captured), (50, 100, 100));
    // With enough space, one arena serves the complete program.
    let json = hatf(["regions", "infer", &path, "--most-cost", "100%", "--format", "json"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["arenas"][0]["context"], serde_json::json!(["handle", "serve", "main"]));
    let all = hatf(["regions", "infer", &path, "--most-cost", "1MiB", "--format", "json"]).exits(0).text();
    let all: serde_json::Value = serde_json::from_str(&all).unwrap();
    assert_eq!((&all["arenas"][0]["context"], &all["arenas"][0]["calls"]), (&serde_json::json!(["main"]), &1.into()));
    let no_stacks = folder.path("heap.mtf");
    hatf(["convert", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst"), &no_stacks]).exits(0);
    hatf(["regions", "infer", &no_stacks]).exits(1).says("the trace has no stacks, so calls are unknown");
    hatf(["regions", "infer", &path, "--most-cost", "lots"]).exits(2).says("expected a percentage or an amount");
}

/// Returns the arenas with their function, calls and saved frees, whether the result is exact, and its basis.
fn arenas(arguments: &[&str]) -> (Vec<(String, u64, u64)>, bool, String) {
    let text =
        hatf([&["regions", "infer", "--most-cost", "100KiB", "--format", "json"], arguments].concat()).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let arena = |arena: &serde_json::Value| {
        let [calls, frees] = ["calls", "frees_saved"].map(|key| arena[key].as_u64().unwrap());
        (arena["context"][0].as_str().unwrap().to_owned(), calls, frees)
    };
    let arenas = json["arenas"].as_array().unwrap().iter().map(arena).collect();
    (arenas, json["exact"].as_bool().unwrap(), json["by"].as_str().unwrap().to_owned())
}

/// In stacks, all calls of a function from one place look like one call. Function entries and exits distinguish them.
#[test]
fn exact_where_the_trace_has_functions() {
    if !cfg!(target_arch = "x86_64") || std::process::Command::new("gcc").arg("--version").output().is_err() {
        metatf_test::skip("there is no gcc for x86-64");
        return;
    }
    let folder = Folder::new();
    let (program, trace, scoped) = (folder.path("scopes"), folder.path("scopes.mtf"), folder.path("scoped.mtf"));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/scopes.c");
    hatf(["cc", "--functions", "gcc", "-O1", "-g", source, "-o", &program]).exits(0);
    let record = |arguments: &[&str]| {
        hatf([&["record", "-q", "--stacks", "-o", &trace, "--", &program], arguments].concat()).exits(0);
        hatf(["symbolize", &trace]).exits(0);
    };
    record(&[]);
    let symbolized = folder.path("scopes.sym.mtf");
    // With little space, each request has an arena for its line. The block that it keeps lives until the next request.
    let exact = ["--most-cost", "99", &symbolized];
    let found = hatf([&["regions", "infer", "-o", &scoped], &exact[..]].concat()).exits(0);
    found.prints("Exact: the trace records function entries and exits.").prints("request <- serve <- main");
    let (found, is_exact, by) = arenas(&[&symbolized]);
    assert_eq!((&*by, is_exact), ("functions", true));
    assert_eq!(found, [("main".to_owned(), 1, 200)], "with room, one arena has all");
    let text = hatf(["regions", "simulate", &scoped, "--format", "json"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let [regions, objects, captured] =
        ["regions", "objects", "captured"].map(|key| json["trace"][key].as_u64().unwrap());
    assert_eq!((regions, objects, captured), (100, 100, 100), "an arena for each request, with its line");
    // By stacks, there is one call of `request`, which would outlive all blocks.
    let (_, is_exact, by) = arenas(&["--by", "stacks", &symbolized]);
    assert_eq!((&*by, is_exact), ("stacks", false));
    hatf(["regions", "infer", "--by", "phases", &symbolized]).exits(1).says("the trace has no phases or marks");
    // Functions left by a longjmp do not end.
    record(&["jump"]);
    hatf(["regions", "infer", &symbolized])
        .exits(0)
        .prints("This is only a bound: the stacks of 200 objects lack functions");
}

/// Phases that nest and overlap, and marks, yield exact arenas.
#[test]
fn exact_where_the_trace_has_phases() {
    let folder = Folder::new();
    let path = folder.path("phases.mtf");
    let mut file = hatf_trace::trace::create(Path::new(&path)).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let mut event = |kind| writer.event(&Event { thread: 1, ..Event::new(kind) }).unwrap();
    let call = |address, size| EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) });
    let free = |address| EventKind::Free { address };
    for _ in 0..10 {
        event(EventKind::PhaseBegin { name: b"frame" });
        event(call(0x10, 100));
        event(EventKind::Mark { name: b"draw" });
        event(call(0x200, 10));
        event(free(0x200));
        // The end of the phase also ends the mark.
        event(free(0x10));
        event(EventKind::PhaseEnd { name: b"frame" });
        event(EventKind::PhaseEnd { name: b"unknown" });
    }
    event(EventKind::PhaseBegin { name: b"load" });
    event(call(0x30, 5));
    event(EventKind::PhaseEnd { name: b"load" });
    event(free(0x30));
    writer.finish().unwrap();
    hatf_trace::trace::written(file, Path::new(&path)).unwrap();
    let (found, exact, by) = arenas(&[&path]);
    assert_eq!((&*by, exact), ("phases", true));
    assert_eq!(found, [("phase frame".to_owned(), 10, 20)], "what `load` allocates outlives it");
    let text = hatf(["regions", "infer", &path, "--most-cost", "50"]).exits(0).text();
    assert_snapshot!("infer-phases", text.replace(&path, "phases.mtf"));
    hatf(["regions", "infer", "--by", "phases", &path]).exits(0).prints("phases.mtf, by phases: as requested by --by");
    hatf(["regions", "infer", "--by", "functions", &path]).exits(1).says("hatf cc --functions");
    hatf(["regions", "infer", "--by", "stacks", &path]).exits(1).says("the trace has no stacks, so calls are unknown");
}

/// A mark without an end and a phase with few objects do not replace stacks as the basis.
#[test]
fn what_says_little_is_not_gone_by() {
    let folder = Folder::new();
    let path = folder.path("marked.mtf");
    // Writes 100 objects, all with or all without stacks, `first` of them before the end of the phase.
    let write = |stack: &[u64], first: u64, mark: bool| {
        let mut file = hatf_trace::trace::create(Path::new(&path)).unwrap();
        let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
        let mut event = |kind, stack: &[u64]| writer.event(&Event { stack: stack.into(), ..Event::new(kind) }).unwrap();
        if mark {
            event(EventKind::Mark { name: b"start" }, &[]);
        } else {
            event(EventKind::PhaseBegin { name: b"start" }, &[]);
        }
        for number in 0..100 {
            if number == first {
                event(EventKind::PhaseEnd { name: b"start" }, &[]);
            }
            event(EventKind::Call(Call { address: 0x10, size: 8, ..Call::new(Function::Malloc) }), stack);
            event(EventKind::Free { address: 0x10 }, &[]);
        }
        writer.finish().unwrap();
        hatf_trace::trace::written(file, Path::new(&path)).unwrap();
    };
    let first_line = || {
        let text = hatf(["regions", "infer", &path]).exits(0).text();
        text.lines().next().unwrap().replace(&path, "marked.mtf")
    };
    let stack = [0x1000, 0x2000];
    write(&stack, 50, true);
    let little = "only 0.0% of the objects are allocated in functions, and 0.0% in phases or marks that end";
    assert_eq!(first_line(), format!("marked.mtf, by stacks: {little}"));
    write(&stack, 49, false);
    assert_eq!(first_line(), format!("marked.mtf, by stacks: {}", little.replace("and 0.0%", "and 49.0%")));
    write(&stack, 50, false);
    assert_eq!(first_line(), "marked.mtf, by phases: 50.0% of the objects are allocated in phases or marks that end");
    // Without stacks, there is no other basis.
    write(&[], 1, false);
    assert_eq!(first_line(), "marked.mtf, by phases: 1.0% of the objects are allocated in phases or marks that end");
}

/// By stacks, 100 calls from one place are one call, whose arena costs too much. By functions, each call is known. The
/// last line explains this and what to do.
#[test]
fn nothing_by_stacks_says_why() {
    let folder = Folder::new();
    let path = folder.path("calls.mtf");
    let mut file = hatf_trace::trace::create(Path::new(&path)).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let mut event =
        |kind, stack: &[u64]| writer.event(&Event { thread: 1, stack: stack.into(), ..Event::new(kind) }).unwrap();
    let call = |address, size| EventKind::Call(Call { address, size, ..Call::new(Function::Malloc) });
    event(EventKind::Enter { function: 0x3000 }, &[]);
    for number in 0..100 {
        event(EventKind::Enter { function: 0x1000 }, &[]);
        event(call(0x100, 30), &[0x1008, 0x3008]);
        // This block outlives its call.
        event(call(0x200 + number * 0x10, 10), &[0x1010, 0x3008]);
        event(EventKind::Free { address: 0x100 }, &[]);
        event(EventKind::Leave, &[]);
        if number > 0 {
            event(EventKind::Free { address: 0x200 + (number - 1) * 0x10 }, &[]);
        }
    }
    event(EventKind::Leave, &[]);
    writer.finish().unwrap();
    hatf_trace::trace::written(file, Path::new(&path)).unwrap();
    let infer = |by| hatf(["regions", "infer", "--by", by, &path, "--most-cost", "99"]).exits(0).text();
    let json = |by| {
        let run = hatf(["regions", "infer", "--by", by, &path, "--most-cost", "99", "--format", "json"]).exits(0);
        serde_json::from_slice::<serde_json::Value>(&run.out).unwrap()
    };
    assert_eq!(json("stacks")["arenas"].as_array().map(Vec::len), Some(0));
    assert_eq!(json("functions")["arenas"].as_array().map(Vec::len), Some(1));
    let (stacks, functions) = (infer("stacks"), infer("functions"));
    let last = stacks.lines().last().unwrap();
    assert!(
        last.contains("successive calls from one place can look like a single call")
            && last.contains("hatf cc --functions"),
        "{stacks}"
    );
    assert!(functions.ends_with("Exact: the trace records function entries and exits.\n"), "{functions}");
}

/// Figure 2 of the document, and the measures of its section 6: numbers and sizes of regions.
#[test]
fn methods_regions_and_calls() {
    let folder = Folder::new();
    let path = example_trace(&folder, Variant::Figure1, 3);
    let options = ["--block", "64", "--by", "method,region", "--calls"];
    let simulate = [&["regions", "simulate", &path][..], &options].concat();
    assert_snapshot!(hatf(simulate.iter().copied()).exits(0).text().replace(&path, "example"));
    let text = hatf(simulate.iter().copied().chain(["--format", "json"])).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let graph: Vec<String> = json["calls"]["graph"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let edge = |caller, call_site, callee, calls| {
        format!(r#"{{"caller":"{caller}","call_site":"{call_site}","callee":"{callee}","calls":{calls}}}"#)
    };
    let expected = [edge("m0", "m0_2", "m1", 1), edge("m0", "m0_3", "m2", 1), edge("m1", "m1_5", "m2", 3)];
    assert_eq!(graph, expected);
    let manager = &json["managers"][0];
    let sum = |list: &str, of: &str| -> u64 {
        manager[list].as_array().unwrap().iter().map(|part| part[of].as_u64().unwrap()).sum()
    };
    for (of, total) in [
        ("objects", &json["trace"]["objects"]),
        ("bytes", &json["trace"]["bytes"]),
        ("intra_sum", &manager["intra_sum"]),
    ] {
        assert_eq!([sum("methods", of), sum("regions", of)], [total.as_u64().unwrap(); 2], "{of}");
    }
    assert_eq!((sum("methods", "regions"), manager["regions"].as_array().unwrap().len()), (6, 6));
}

/// C and C++ programs that do the same as the Rust example have the same simulations.
#[test]
fn from_c_and_cpp() {
    let folder = Folder::new();
    let rust = example_trace(&folder, Variant::Figure1, 10);
    let simulated = |path: &str| {
        let options =
            ["--block", "64,256", "--inter", "capture,first", "--by", "method,region", "--calls", "--format", "json"];
        let text = hatf([&["regions", "simulate", path][..], &options].concat()).exits(0).text();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()
    };
    let dtd = std::fs::read(root().join("dtds/scoped-log.dtd")).unwrap();
    let dtd = metatf_parser::parse("scoped-log.dtd", &dtd).dtd.unwrap();
    let options = metatf_codegen::Options {
        emitters: Some("scoped".to_owned()),
        ..metatf_codegen::Options::new("scoped-log.dtd")
    };
    folder.write("scoped.h", metatf_codegen::generate_c(&dtd, &options).unwrap());
    for (compiler, flags) in [("cc", &["-std=c99"][..]), ("c++", &["-std=c++11", "-x", "c++"])] {
        let source = root().join("heap/hatf/tests/programs/scoped.c");
        let mut compile = std::process::Command::new(compiler);
        compile.current_dir(folder.as_ref()).args(["-Wall", "-Wextra", "-Werror", "-pthread", "-DSCOPED_POSIX", "-I."]);
        let Ok(compiled) = compile.args(flags).arg(source).args(["-o", "program"]).output() else {
            skip(&format!("there is no {compiler}"));
            continue;
        };
        assert!(compiled.status.success(), "{compiler}: {}", String::from_utf8_lossy(&compiled.stderr));
        let trace = folder.path(&format!("{compiler}.mtf"));
        let mut program = std::process::Command::new(folder.path("program"));
        run(program.env("METATF_TELEMETRY_FILENAME", &trace).env("METATF_TELEMETRY_CONTROL", "all")).exits(0);
        assert_eq!(simulated(&trace), simulated(&rust), "{compiler}");
    }
}
