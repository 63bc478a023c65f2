//! Call stacks: the recorded stacks are those that the C library's `backtrace` finds, and functions have names.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::common::{compiled, compiled_from, elf, hatf, source};
use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::stack_hash::StackHashes;
use hatf_trace::stacks::Stacks;
use hatf_trace::{Event, EventKind, EventSink as _, EventSource as _, Item};
use metatf_test::Folder;

/// Returns the stacks of a trace, by block size.
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
            // The innermost frames are two positions in one function.
            assert_eq!(stack[1..], frames[1..], "{flags:?}: {size}");
            checked += 1;
        }
        assert_eq!(checked, 32);
    }
}

/// Two runs have different addresses, but the same stack hashes.
#[test]
fn hashes_of_stacks_are_the_same_in_each_run() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O2", "-fPIE", "-pie"]) else { return };
    let program = program.display().to_string();
    let run = |name: &str| {
        let trace = folder.path(name);
        hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(7);
        let (mut known, mut hashes) = (Stacks::default(), StackHashes::default());
        let (mut reader, mut found) = (TraceReader::open(Path::new(&trace)).unwrap(), BTreeMap::new());
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            known.note(&event.kind);
            if let EventKind::Call(call) = event.kind {
                let number = known.number(event.stack);
                found.insert(call.size, hashes.of(&known, number));
            }
        }
        (found, stacks(Path::new(&trace)))
    };
    let ((first, addresses), (second, others)) = (run("first.mtf"), run("second.mtf"));
    assert_eq!(first, second);
    let paths: HashSet<_> = addresses.values().collect();
    assert_eq!(first.values().collect::<HashSet<_>>().len(), paths.len(), "{first:?}");
    assert!(paths.len() > 8, "{addresses:?}");
    if addresses == others {
        metatf_test::skip("programs lie at the same addresses in each run on this machine");
    }
}

/// Stacks are complete in a program linked for large pages, whose segments have gaps and of which the loader reports
/// one segment.
#[test]
fn stacks_of_a_program_with_gaps() {
    let gaps = "-Wl,-z,max-page-size=0x200000";
    for flags in [&["-O1", gaps][..], &["-O1", gaps, "-no-pie"], &["-O1", gaps, "-Wl,-z,noseparate-code"]] {
        let folder = Folder::new();
        let Some(program) = compiled(&folder, "stacks", flags) else { return };
        let Some(plugin) = compiled(&folder, "plugin", &["-O1", "-shared", "-fPIC", gaps]) else { return };
        let (trace, named) = (folder.path("trace.mtf"), folder.path("trace.sym.mtf"));
        let (program, plugin) = (program.display().to_string(), plugin.display().to_string());
        let run = hatf(["record", "--stacks", "-o", &trace, "--", &program]).exits(7);
        assert!(!run.err.contains("one frame"), "{}", run.err);
        let recorded = stacks(Path::new(&trace));
        for line in run.text().lines() {
            let (size, frames) = line.split_once(' ').unwrap();
            assert_eq!(recorded[&size.parse().unwrap()].len(), frames.split(' ').count(), "{flags:?}: {size}");
        }
        hatf(["symbolize", &trace]).exits(0);
        hatf(["sites", &named, "--by", "allocated", "--rows", "100"]).exits(0).prints("recursion at ");
        // The program is one module, whichever part is met first, and stays one when another is unloaded.
        hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program, &plugin]).exits(7);
        let (mut reader, mut modules, mut unloads) = (TraceReader::open(Path::new(&trace)).unwrap(), 0, 0);
        while let Some(item) = reader.next().unwrap() {
            let Item::Event(event) = item else { continue };
            match event.kind {
                EventKind::ModuleLoad { name, .. } if name.ends_with(b"/stacks") => {
                    modules += 1;
                    assert_ne!(name.starts_with(b"- "), has_build_id(&program), "{flags:?}");
                }
                EventKind::ModuleUnload { .. } => unloads += 1,
                _ => {}
            }
        }
        assert_eq!((modules, unloads), (1, 3), "{flags:?}");
    }
}

/// Returns whether the linker has put a build ID into a program.
fn has_build_id(program: &str) -> bool {
    std::fs::read(program).unwrap().windows(16).any(|bytes| bytes == b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")
}

/// Code without unwind tables ends stacks, and a message says so.
#[test]
fn stacks_of_one_frame_are_told() {
    let folder = Folder::new();
    let flags = ["-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let Some(program) = compiled(&folder, "many_stacks", &flags) else { return };
    let (trace, program) = (folder.path("trace.mtf"), program.display().to_string());
    let run = |stacks| hatf(["record", stacks, "-o", &trace, "--", &program]).exits(7);
    run("--stacks").says("most stacks have only one frame (32768 of 327").says("no unwind tables");
    // The user has requested one frame.
    assert!(!run("--stacks=1").err.contains("one frame"));
}

/// If there are more stacks than the table initially holds, each one is recorded and distinct.
#[test]
fn as_many_stacks_as_there_are() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "many_stacks", &["-O0"]) else { return };
    let trace = folder.path("trace.mtf");
    hatf(["record", "--stacks", "-o", &trace, "--", &program.display().to_string()]).exits(7).says(" 0 lost");
    let recorded = stacks(Path::new(&trace));
    let found: HashSet<_> = (1 << 15..1 << 16).map(|size| &recorded[&size]).collect();
    assert_eq!(found.len(), 1 << 15);
    assert!(found.iter().all(|stack| stack.len() > 15));
}

/// Frames shared with the previous stack are not walked again, but no stack is mistaken for another.
#[test]
fn each_path_has_its_stack() {
    const HANDLER: u64 = (1 << 16) + 1;
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "paths", &["-O1"]) else { return };
    let (trace, program) = (folder.path("trace.mtf"), program.display().to_string());
    for arguments in [&["--stacks=200"][..], &["--stacks=200", "signals"]] {
        let (options, words) = arguments.split_at(1);
        let words = options.iter().copied().chain(["-q", "-o", &trace, "--", &program]).chain(words.iter().copied());
        hatf(["record"].into_iter().chain(words)).exits(7);
        let (mut reader, mut stacks, mut paths) =
            (TraceReader::open(Path::new(&trace)).unwrap(), HashMap::new(), HashMap::new());
        while let Some(item) = reader.next().unwrap() {
            if let Item::Event(event) = item
                && let EventKind::Call(call) = event.kind
                && call.size != HANDLER
                && event.stack.len() > 4
            {
                let stack = event.stack.to_vec();
                assert_eq!(*paths.entry(call.size).or_insert_with(|| stack.clone()), stack);
                assert_eq!(*stacks.entry(stack).or_insert(call.size), call.size);
            }
        }
        assert!(paths.len() > 1_000, "{}", paths.len());
    }
}

/// Deep stacks are truncated at their outer end.
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
    hatf(["symbolize", &trace]).exits(0).says("frames have a function name in");
    let mut reader = TraceReader::open(Path::new(&named)).unwrap();
    let (mut stacks, mut seen) = (Stacks::default(), HashMap::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        stacks.note(&event.kind);
        if let EventKind::Call(call) = event.kind {
            seen.insert(call.size, stacks.number(event.stack));
        }
    }
    // The first block is from main, and the fourth from a function with a variable-length array.
    let lines = |size| stacks.get(seen[&size]).flat_map(hatf_trace::stacks::Location::lines).collect::<Vec<_>>();
    assert!(lines(5001)[0].starts_with("here at ") && lines(5001)[0].contains("stacks.c:"), "{:?}", lines(5001));
    assert!(lines(5001)[1].starts_with("main at "), "{:?}", lines(5001));
    assert!(lines(5004)[1].starts_with("variable at "), "{:?}", lines(5004));
    let sites = hatf(["sites", &named, "--by", "allocated", "--group", "stack", "--rows", "100"]).exits(0).text();
    assert!(sites.contains("recursion at "), "{sites}");
    let folded = hatf(["sites", &named, "--by", "allocated", "--format", "folded"]).exits(0).text();
    assert!(
        folded.lines().any(|line| line.starts_with("main;recursion;recursion;") && line.contains(";here ")),
        "{folded}"
    );
}

/// For traces without stacks, a message says what to do.
#[test]
fn a_trace_without_stacks() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["record", "-q", "-o", &trace, "--", "true"]).exits(0);
    hatf(["symbolize", &trace]).exits(1).says("the trace has no stacks; record it with hatf record --stacks");
    hatf(["sites", &trace]).exits(0).says("the trace has no stacks");
}

/// Shared objects are loaded and unloaded at one address or several.
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

/// Records a program and symbolizes the trace. Returns the symbolized trace.
fn named(program: &Path, trace: &str) -> String {
    hatf(["record", "--stacks", "-q", "-o", trace, "--", &program.display().to_string()]).exits(7);
    hatf(["symbolize", trace]).exits(0);
    trace.replace(".mtf", ".sym.mtf")
}

/// Returns the differing sites: the allocating function, and the changes in blocks and bytes. On a busy machine, a block
/// may live longer than a short-lived block, so sites that differ only in this measure are left out.
fn differing(before: &str, after: &str) -> Vec<(String, i64, i64)> {
    let json = hatf(["diff", before, after, "--by", "allocated", "--format", "json"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = |site: &serde_json::Value| {
        let change = &site["change"]["allocated"];
        let name = site["stack"][0]["functions"][0]["name"].as_str().unwrap_or_default().to_owned();
        (name, change["blocks"].as_i64().unwrap(), change["bytes"].as_i64().unwrap())
    };
    let none = serde_json::json!({"blocks": 0, "bytes": 0});
    let differs = |site: &&serde_json::Value| {
        site["change"].as_object().unwrap().iter().any(|(measure, change)| measure != "short" && *change != none)
    };
    json["sites"].as_array().unwrap().iter().filter(differs).map(row).collect()
}

/// Addresses differ from run to run, but sites do not.
#[test]
fn two_runs_of_one_program_do_not_differ() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    let (one, two) = (folder.path("one.mtf"), folder.path("two.mtf"));
    let (named_one, named_two) = (named(&program, &one), named(&program, &two));
    for (before, after) in [(&named_one, &named_two), (&one, &two), (&one, &named_two)] {
        assert_eq!(differing(before, after), []);
        let text = hatf(["diff", before, after, "--fail-over", "0%"]).exits(0).text();
        assert_eq!(text.matches("\n  no difference\n").count(), 4, "{text}");
    }
    let by_offset = hatf(["diff", "--symbols", "none", &one, &two]).exits(0).says("matched by build ID and offset");
    assert_eq!(by_offset.text().matches("\n  no difference\n").count(), 4, "{}", by_offset.text());
}

/// If a program is changed at one place and recompiled, only that place differs.
#[test]
fn the_site_that_changed_is_named() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stacks", &["-O1"]) else { return };
    // The variant has other lines, another name, and one function that allocates more.
    let text = std::fs::read_to_string(source("stacks")).unwrap();
    let changed =
        text.replace("static void right(void) {\n", "\n\nstatic void right(void) {\n    free(block = malloc(200));\n");
    assert_ne!(text, changed);
    folder.write("changed.c", changed);
    let Some(variant) = compiled_from(&folder.join("changed.c"), &folder, "variant", &["-O1"]) else { return };
    let (before, after) = (named(&program, &folder.path("one.mtf")), named(&variant, &folder.path("two.mtf")));
    assert_eq!(differing(&before, &after), [("right".to_owned(), 13, 2600)]);
    assert_eq!(differing(&after, &before), [("right".to_owned(), -13, -2600)]);
    let failing =
        |by: &str, limit: &str, code| hatf(["diff", &before, &after, "--by", by, "--fail-over", limit]).exits(code);
    let run = failing("allocated", "0.5%", 1).says("bytes allocated grew from ").says("more than the limit of 0.5%");
    run.says("largest contribution: +2,600 bytes by right <- main <- ");
    failing("allocated", "2600", 0);
    failing("allocated", "2599", 1).says("more than the limit of 2,599");
    failing("allocated", "2MiB", 0);
    failing("leaked", "0%", 0);
    // A decrease does not fail.
    hatf(["diff", &after, &before, "--fail-over", "0%"]).exits(0);
}

/// Traces without events and traces without stacks can be compared.
#[test]
fn differences_of_traces_that_lack_something() {
    let folder = Folder::new();
    let (empty, plain) = (folder.path("empty.jsonl"), folder.path("plain.mtf"));
    folder.write("empty.jsonl", "");
    hatf(["record", "-q", "-o", &plain, "--", "ls"]).exits(0);
    let sample = metatf_test::root().join("docs/samples/sites.jsonl").display().to_string();
    let run = |before: &str, after: &str, code| hatf(["diff", before, after, "--from", "jsonl"]).exits(code).text();
    assert_eq!(run(&empty, &empty, 0).matches("no difference").count(), 4);
    let [grown, gone] = [run(&empty, &sample, 0), run(&sample, &empty, 0)]
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(grown.contains("new +4 copy at words.c:12") && gone.contains("gone -4 copy at"), "{gone}");
    let without = hatf(["diff", &plain, &sample]).exits(0).says("plain.mtf: the trace has no stacks");
    assert!(without.text().contains("by size") && !without.text().contains("by stack"));
    let json = hatf(["diff", &plain, &sample, "--format", "json"]).exits(0).text();
    assert!(json.contains("\"sites\": null"), "{json}");
    // An increase from zero exceeds any percentage.
    hatf(["diff", &empty, &sample, "--from", "jsonl", "--fail-over", "1000%"])
        .exits(1)
        .says("(new), more than the limit of 1000%");
    // A missing input is named.
    hatf(["diff", &plain, "/nothing.mtf"]).exits(1).says("/nothing.mtf: ");
}

/// A report contains the sites that `hatf sites` prints.
#[test]
fn a_report_has_sites() {
    let sample = metatf_test::root().join("docs/samples/sites.jsonl").display().to_string();
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["convert", &sample, &trace]).exits(0);
    insta::assert_snapshot!("report-sites", hatf(["report", &trace]).exits(0).text());
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&hatf([arguments, &["--format", "json", &trace]].concat()).exits(0).text()).unwrap()
    };
    let (report, sites) = (json(&["report"]), json(&["sites"]));
    for measure in ["peak", "leaked", "allocated", "temporary"] {
        for row in report["sites"][measure].as_array().unwrap() {
            let functions = |site: &serde_json::Value| -> Vec<serde_json::Value> {
                let frames = site["stack"].as_array().unwrap().iter();
                frames
                    .flat_map(|frame| frame["functions"].as_array().unwrap().iter().map(|f| f["name"].clone()))
                    .collect()
            };
            let names: Vec<_> = row["functions"].as_array().unwrap().clone();
            let known: Vec<_> = names.iter().filter(|name| !name.as_str().unwrap().contains('+')).cloned().collect();
            let site = sites["sites"].as_array().unwrap().iter().find(|site| functions(site) == known).unwrap();
            assert_eq!((&row["bytes"], &row["blocks"]), (&site[measure]["bytes"], &site[measure]["blocks"]));
        }
    }
    hatf(["report", "--threads", "1", &trace])
        .exits(0)
        .prints("SITES: 3 stacks; to print all of them in full, run hatf sites");
}

/// `hatf dump` prints the events of the trace with their stacks.
#[test]
fn events_have_stacks() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    hatf(["convert", &metatf_test::root().join("docs/samples/sites.jsonl").display().to_string(), &trace]).exits(0);
    let dump = |arguments: &[&str]| hatf([&["dump", &trace][..], arguments].concat()).exits(0).text();
    let all = dump(&[]);
    assert_eq!((all.matches(" malloc ").count(), all.matches(" free of ").count()), (6, 3), "{all}");
    assert!(all.contains("copy at words.c:12\n") && all.contains("  add_word at words.c:30\n"), "{all}");
    // Modules and symbols count as records and are read wherever the output begins.
    let numbers: Vec<_> = dump(&["--start", "16", "--head", "2", "--depth", "1"])
        .lines()
        .filter(|line| line.contains("malloc"))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert_eq!(numbers, ["16", "17"]);
    assert!(dump(&["--start", "16", "--head", "1"]).contains("main at words.c:58"));
    let block = dump(&["--address", "0x14000", "--depth", "0"]);
    assert_eq!(block.lines().count(), 2, "{block}");
    assert_eq!(dump(&["--head", "0"]), "");
    hatf(["dump", "/nothing.mtf"]).exits(1).says("/nothing.mtf: ");
}

/// A forked process has met all of its frames before the fork, but its trace contains their modules.
#[test]
fn frames_of_a_forked_process_are_in_modules() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "forked", &[]) else { return };
    let trace = folder.path("trace.mtf");
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    let forked = folder.path("trace.processes/2-forked.mtf");
    let sites = hatf(["sites", "--symbols", "none", &forked, "--group", "stack"]).exits(0).text();
    assert!(sites.contains("forked+0x") && sites.contains("libc.so") && !sites.contains("  0x"), "{sites}");
}

/// Writes a program file and a trace with a frame in each of its first functions. Returns the trace.
fn trace_of(folder: &Folder, name: &str, file: &[u8], frames: u64) -> String {
    let (program, trace) = (folder.path(name), folder.path(&format!("{name}.mtf")));
    std::fs::write(&program, file).unwrap();
    let mut file = std::fs::File::create(&trace).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let loaded = format!("- {program}");
    let load = EventKind::ModuleLoad { bias: 0, start: 0x1000, end: 0x1000 + 16 * frames + 1, name: loaded.as_bytes() };
    writer.event(&Event::new(load)).unwrap();
    for at in 0..frames {
        let stack = [0x1000 + 16 * at + 8];
        let free = EventKind::Free { address: 4096 };
        writer.event(&Event { stack: (&stack).into(), ..Event::new(free) }).unwrap();
    }
    writer.finish().unwrap();
    trace
}

/// Sizes that program files claim are not trusted, and unsuitable files that they name are not opened.
#[test]
fn files_that_lie() {
    // The memory of other tests' programs must not count.
    if !metatf_test::alone("stacks::files_that_lie") {
        return;
    }
    let folder = Folder::new();
    let refused = |name: &str, sections: Vec<elf::Section<'_>>, why: &str| {
        let trace = trace_of(&folder, name, &elf::program(sections), 1);
        hatf(["symbolize", &trace]).exits(1).says(why).says("0 of 1 frames have a function");
    };
    let huge = elf::compressed(".debug_info", 1 << 40, vec![0; 64]);
    refused("huge", vec![huge], "section .debug_info claims 1099511627776 bytes, which is too many for its file");

    // 1 MB decompresses to 1 GB, which the header does not state.
    let mut zeros = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let mebibyte = vec![0; 1 << 20];
    (0..1000).for_each(|_| zeros.write_all(&mebibyte).unwrap());
    let zeros = elf::compressed(".debug_info", 1000, zeros.finish().unwrap());
    refused("zeros", vec![zeros], "zeros: a frame has no name: compressed section .debug_info is corrupt");
    // SAFETY: zeros are a valid structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the result has a valid location.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) }, 0);
    assert!(usage.ru_maxrss < 600 << 10, "{} KiB", usage.ru_maxrss);

    let pipe = Command::new("mkfifo").arg(folder.join("pipe.debug")).status().unwrap();
    assert!(pipe.success());
    refused("pipe", vec![elf::debug_link("pipe.debug")], "pipe.debug is not a file");
    assert!(Command::new("mkfifo").arg(folder.join("package.dwp")).status().unwrap().success());
    refused("package", vec![], "package.dwp is not a file");

    let inner = Folder::new();
    let outside = folder.join("outside.debug");
    std::fs::write(&outside, elf::program(vec![])).unwrap();
    let up = format!("../{}/outside.debug", outside.parent().unwrap().file_name().unwrap().display());
    let trace = trace_of(&inner, "up", &elf::program(vec![elf::debug_link(&up)]), 1);
    hatf(["symbolize", &trace]).exits(1).says("outside the directories for debug information");
}

/// Names longer than a trace permits are truncated, even if they are short until they are demangled.
#[test]
fn names_without_end() {
    let folder = Folder::new();
    let long = [b'x'; 70_000];
    // Each argument of `f` contains the previous one twice.
    let digit = |at: u8| char::from_digit(u32::from(at), 36).unwrap().to_ascii_uppercase();
    let twice: String = (1..22).map(|at| format!("S0_IS{0}_S{0}_E", digit(at))).collect();
    let doubled = format!("_Z1fI1AIiiE{twice}Evv");
    let names = [&long[..], doubled.as_bytes(), b"plain"];
    let file = elf::program(
        [vec![elf::bytes(".text", vec![0x90; 64])], elf::functions(&names).into()].into_iter().flatten().collect(),
    );
    let trace = trace_of(&folder, "names", &file, 3);
    hatf(["symbolize", &trace]).exits(0).says("3 of 3 frames have a function");
    let mut reader = TraceReader::open(Path::new(&trace.replace(".mtf", ".sym.mtf"))).unwrap();
    let mut names = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Event(event) = item
            && let EventKind::Symbol { name, .. } = event.kind
        {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names.sort_by_key(String::len);
    assert_eq!((&*names[0], names[1].len(), names[2].len()), ("plain", 1024, 1024));
}

/// A directory of `--symbols` takes the place of `/` for its files. Without a build ID, a file of this machine may be
/// another program, so it is not used.
#[test]
fn files_of_the_recorded_machine() {
    let folder = Folder::new();
    let sections = |name: &'static [u8]| {
        let text = elf::bytes(".text", vec![0x90; 64]);
        elf::program([vec![text], elf::functions(&[name]).into()].into_iter().flatten().collect())
    };
    let trace = trace_of(&folder, "program", &sections(b"of_this_machine"), 1);
    let named = |options: &[&str]| hatf([&["dump", &trace], options].concat()).exits(0);
    named(&[]).prints("of_this_machine");
    let below = folder.join("machine").join(folder.join("program").strip_prefix("/").unwrap());
    std::fs::create_dir_all(below.parent().unwrap()).unwrap();
    let machine = folder.path("machine");
    let without = named(&["--symbols", &machine]).says("machine").says("does not exist");
    assert!(!without.text().contains("of_this_machine"));
    std::fs::write(&below, sections(b"of_the_other")).unwrap();
    let other = named(&["--symbols", &machine]).prints("of_the_other");
    assert!(!other.text().contains("of_this_machine"));
    assert!(!named(&["--symbols", "none"]).text().contains("of_"));
    hatf(["dump", &trace, "--symbols", "none", "--symbols", &machine]).exits(2).says("cannot be combined");
    hatf(["dump", &trace, "--symbols", &folder.path("missing")]).exits(1).says("--symbols ").says("No such file");
    let map = folder.path("map");
    std::fs::write(&map, "7000 100 f\n").unwrap();
    hatf(["dump", &trace, "--symbols", &map, "--symbols", &map]).exits(2).says("only one file can be a map");
}

/// A perf map in a directory where anybody may write is used only if it belongs to the user.
#[test]
fn perf_maps_of_others() {
    let folder = Folder::new();
    let trace = folder.path("t.mtf");
    // No process has this ID.
    let process = 4_194_304 + u64::from(std::process::id());
    let mut file = std::fs::File::create(&trace).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    writer.event(&Event::new(EventKind::Image { process, path: b"node" })).unwrap();
    let stack = [0x7010];
    writer.event(&Event { stack: (&stack).into(), ..Event::new(EventKind::Free { address: 4096 }) }).unwrap();
    writer.finish().unwrap();
    let (map, own) = (format!("/tmp/perf-{process}.map"), folder.path("own"));
    std::fs::write(&own, "7000 100 f\n").unwrap();
    std::os::unix::fs::symlink(&own, &map).unwrap();
    let linked = hatf(["symbolize", &trace]);
    std::fs::remove_file(&map).unwrap();
    linked.exits(1).says("0 of 1 frames");
    assert!(Command::new("mkfifo").arg(&map).status().unwrap().success());
    let pipe = hatf(["symbolize", &trace]);
    std::fs::remove_file(&map).unwrap();
    pipe.exits(1).says("it is not a regular file of this user or root").says("0 of 1 frames");
    std::fs::copy(&own, &map).unwrap();
    let mine = hatf(["symbolize", &trace]);
    // Only root can give a file away.
    let given = std::os::unix::fs::chown(&map, Some(12345), None).is_ok();
    let other = hatf(["symbolize", &trace]);
    std::fs::remove_file(&map).unwrap();
    mine.exits(0).says("1 of 1 frames");
    if given {
        other.exits(1).says("it is not a regular file of this user or root").says("0 of 1 frames");
    }
    hatf(["symbolize", &trace, "--symbols", &own]).exits(0).says("1 of 1 frames");
}

/// If another stack next to the current one is unmapped, cached information about its memory is discarded.
#[test]
fn stacks_that_are_unmapped() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "unmapped", &["-O1"]) else { return };
    let trace = folder.path("unmapped.mtf");
    for more in [&[][..], &["map"]] {
        let arguments = ["record", "--stacks", "-o", &trace, "--", program.to_str().unwrap()];
        hatf([&arguments[..], more].concat()).exits(7).says(", 0 lost");
    }
}

/// On one-page coroutine stacks and in a handler on a small stack, work that needs space is done elsewhere.
#[test]
fn stacks_of_one_page() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "small_stacks", &["-O1"]) else { return };
    let trace = folder.path("small.mtf");
    for more in [&[][..], &["handler"]] {
        let arguments = ["record", "--stacks", "-o", &trace, "--", program.to_str().unwrap()];
        hatf([&arguments[..], more].concat()).exits(7).says(", 0 lost");
        let found = stacks(Path::new(&trace));
        for size in [11, 22, 33] {
            assert!(found[&size].len() >= 3, "{size}: {:x?}", found[&size]);
        }
    }
}
