//! Strings in a trace that a terminal would interpret.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
use crate::common::hatf;
use hatf_trace::event::{Call, EventKind, EventSink as _, Function};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Event, trace};
use std::path::Path;

use metatf_test::Folder;
use serde_json::json;

/// Terminal control sequences, a forged line, and characters that reverse text.
const HOSTILE: &str = "a\x1b[31m\x1b]0;title\x07\rb\u{9b}2J\u{202e}\u{2066}\u{7f}\u{e0041}\nFORGED c";

/// Writes a trace in which every string is hostile.
pub(crate) fn hostile_trace(folder: &Folder, hostile: &str) -> String {
    let path = folder.path("hostile.mtf");
    let mut file = trace::create(path.as_ref()).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let about = json!({"command": [hostile], "program": hostile, hostile: hostile, "recording": {"host": hostile}});
    writer.user_metadata(about.as_object().unwrap()).unwrap();
    writer.comment(hostile.as_bytes()).unwrap();
    let name = hostile.as_bytes();
    let module = format!("0a1b /lib/{hostile}");
    let (mut time, stack) = (0, [0x1010, 0x1020, 0x9000]);
    let mut event = |thread, kind| {
        time += 1000;
        let stack = if matches!(kind, EventKind::Call(_)) { &stack[..] } else { &[] };
        writer.event(&Event { time, thread, stack: stack.into(), ..Event::new(kind) }).unwrap();
    };
    event(1, EventKind::Image { process: 1, path: name });
    event(1, EventKind::ModuleLoad { bias: 0x1000, start: 0x1000, end: 0x2000, name: module.as_bytes() });
    event(1, EventKind::Source { path: name });
    event(1, EventKind::Symbol { frame: 0x1010, line: 7, name });
    for thread in [1, 2] {
        event(thread, EventKind::ThreadStart { creator: 0, task: 9 });
        event(thread, EventKind::ThreadName { name });
        event(thread, EventKind::PhaseBegin { name });
        for number in 1..=40 {
            let call = Call {
                size: 100 * number,
                address: 0x10_0000 * thread + 0x1000 * number,
                ..Call::new(Function::Malloc)
            };
            event(thread, EventKind::Call(call));
            event(thread, EventKind::Mark { name });
        }
        (2..=40).for_each(|number| event(thread, EventKind::Free { address: 0x10_0000 * thread + 0x1000 * number }));
        event(thread, EventKind::PhaseEnd { name });
    }
    event(1, EventKind::Exit { status: 0 });
    writer.finish().unwrap();
    trace::written(file, path.as_ref()).unwrap();
    path
}

/// Every command that reads a trace prints control sequences as text, and JSON preserves their meaning.
#[test]
fn what_a_terminal_obeys_is_shown() {
    let folder = Folder::new();
    let trace = &*hostile_trace(&folder, HOSTILE);
    let [heap, model, lines, svg] = ["p.heapprof", "m.model", "t.jsonl", "t.svg"].map(|name| folder.path(name));
    let (heap, model, lines, svg) = (&*heap, &*model, &*lines, &*svg);
    let processes = &*folder.path("list");
    std::fs::create_dir(processes).unwrap();
    let listed = serde_json::json!({ "number": 1, "command": [HOSTILE], "trace": Path::new("..").join(Path::new(trace).file_name().unwrap()), "began_ns": 0 });
    std::fs::write(Path::new(processes).join("processes.jsonl"), listed.to_string()).unwrap();
    let runs: &[&[&str]] = &[
        &["report", trace],
        &["report", trace, "--format", "json"],
        &["report", trace, "--svg", svg],
        &["convert", trace, lines],
        &["simulate", trace],
        &["whatif", trace],
        &["regions", "infer", trace],
        &["regions", "infer", trace, "--format", "json"],
        &["profile", trace, "-o", heap],
        &["profile", "show", heap],
        &["profile", "show", heap, "--format", "json"],
        &["symbolize", trace, "-o", &folder.path("s.mtf")],
        &["sites", trace],
        &["sites", trace, "--format", "json"],
        &["sites", trace, "--format", "folded"],
        &["sites", trace, "--format", "svg", "-o", svg],
        &["diff", trace, trace],
        &["diff", trace, trace, "--format", "json"],
        &["dump", trace],
        &["churn", trace],
        &["leaks", trace],
        &["leaks", trace, "--format", "json"],
        &["leaks", trace, "--write-suppressions", &folder.path("s.supp")],
        &["processes", processes],
        &["processes", processes, "--format", "json"],
        &["fragmentation", trace],
        &["fragmentation", trace, "--format", "json"],
        &["model", "fit", trace, "-m", "cdf", "-o", model],
        &["model", "evaluate", trace, "--trials", "1", "-m", "cdf"],
        &["model", "generate", model, "-o", &folder.path("g.mtf")],
        &["replay", trace, "--with", "system"],
        &["cut", trace, "--records", "2..", "-o", &folder.path("c.mtf")],
        &["cut", trace, "--sample", "64", "-o", &folder.path("some.mtf")],
        &["convert", trace, &folder.path("c.mtf"), &folder.path("both.mtf"), "--as-is"],
        &["anonymize", trace, "-o", &folder.path("nameless.mtf"), "--check"],
    ];
    for run in runs {
        let done = hatf(*run);
        assert!(done.status <= 1, "{run:?}: {}", done.err);
        for text in [String::from_utf8(done.out).unwrap(), done.err.clone()] {
            let obeyed = text.chars().find(|c| metatf_cli::is_control(*c) && *c != '\n' && *c != '\t');
            assert_eq!(obeyed, None, "{run:?}: {text}");
            assert!(!text.lines().any(|line| line.starts_with("FORGED")), "{run:?}: {text}");
        }
        assert!(done.status == 0, "{run:?}: {}", done.err);
    }
    let names = hatf(["sites", trace, "--format", "json"]).exits(0).text();
    let names: serde_json::Value = serde_json::from_str(&names).unwrap();
    assert_eq!(names["sites"][0]["stack"][0]["functions"][0]["name"], HOSTILE);
    assert_eq!(names["report_version"], 1);
    // These commands print nothing from a trace, or only from one that they record or write. The screen of `hatf watch` is
    // tested in watch.rs. `sql` requires an engine that is missing here.
    let others = ["sql", "run", "record", "watch", "inspect", "agent", "cc", "recover", "tour", "help"];
    let help = hatf(["--help"]).exits(0).text();
    let commands = help.split("Options:").next().unwrap();
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().unwrap();
        assert!(others.contains(&name) || runs.iter().any(|run| run[0] == name), "`hatf {name}` is not run here");
    }
}
