//! `hatf profile`: heap info blocks of real traces and of programs instrumented by clang.
#![expect(clippy::unwrap_used)]

use crate::common;

use crate::common::hatf;
use std::process::Command;

use insta::assert_snapshot;
use metatf_test::Folder;
use serde_json::Value;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

fn json(path: &str) -> Value {
    serde_json::from_str(&hatf(["profile", "show", path, "--format", "json"]).exits(0).text()).unwrap()
}

/// Returns the contexts of a profile, by number.
fn contexts(path: &str) -> Vec<Value> {
    let mut contexts = json(path)["contexts"].as_array().unwrap().clone();
    contexts.sort_by_key(|context| context["context"].as_u64());
    contexts
}

#[test]
fn profiles_of_programs() {
    let folder = Folder::new();
    for name in ["gawk.raw32.zst", "python_threads.raw64.zst"] {
        let (trace, profile) = (DATA.to_owned() + name, folder.path("p.mtf"));
        let made = hatf(["profile", &trace, "-o", &profile, "--tables", "1x1,3x1,61x4,16381x4"]).exits(0).text();
        let shown = hatf(["profile", "show", &profile, "--rows", "4"]).exits(0).text();
        let text = format!("{made}\n{shown}").replace(DATA, "").replace(&profile, "p.mtf");
        assert_snapshot!(format!("profile-{name}"), text);

        // A table that evicts nearly always yields the same profile, and so does a later merge.
        let (small, merged) = (folder.path("small.mtf"), folder.path("merged.mtf"));
        for evict in ["min", "lru", "fifo"] {
            let options = ["--sets", "2", "--ways", "1", "--evict", evict, "--format", "json", "--tables", "1x1"];
            let made = hatf([&["profile", &trace, "-o", &small][..], &options].concat()).exits(0).text();
            let made: Value = serde_json::from_str(&made).unwrap();
            assert!(made["lookups"]["evictions"].as_u64().unwrap() > 50, "{made}");
            assert_eq!(contexts(&small), contexts(&profile), "{evict}");
        }
        hatf(["profile", "merge", &small, "-o", &merged]).exits(0);
        assert_eq!(contexts(&merged), contexts(&profile));
    }
}

#[test]
fn two_runs() {
    let folder = Folder::new();
    let (trace, profile, both) = (DATA.to_owned() + "gawk.raw32.zst", folder.path("p.mtf"), folder.path("both.mtf"));
    hatf(["profile", &trace, "-o", &profile, "--tick", "1us"]).exits(0);
    hatf(["profile", "merge", &profile, &profile, "-o", &both]).exits(0);
    let (one, two) = (contexts(&profile), contexts(&both));
    assert_eq!(one.len(), two.len());
    for (one, two) in one.iter().zip(&two) {
        assert_eq!(one["alloc_count"].as_u64().map(|count| 2 * count), two["alloc_count"].as_u64());
        assert_eq!(one["max_size"], two["max_size"]);
    }
    let milliseconds = folder.path("ms.mtf");
    hatf(["profile", &trace, "-o", &milliseconds]).exits(0);
    hatf(["profile", "merge", &profile, &milliseconds, "-o", &both])
        .exits(1)
        .says("cannot merge profiles with different tick lengths");
}

/// Contexts are call stacks if the trace contains them.
#[test]
#[cfg(target_arch = "x86_64")]
fn stacks() {
    let folder = Folder::new();
    let Some(program) = common::compiled(&folder, "stacks", &["-O1"]) else { return };
    let (trace, profile) = (folder.path("trace.mtf"), folder.path("p.mtf"));
    let program = program.display().to_string();
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", &program]).exits(7);
    hatf(["profile", &trace, "-o", &profile]).exits(0);
    let profile = json(&profile);
    let contexts = profile["contexts"].as_array().unwrap();
    let of_program = |context: &Value| context["stack"].as_array().unwrap().iter().any(|f| f["module"] == program);
    assert!(contexts.iter().filter(|context| of_program(context)).count() > 10, "{profile}");
    assert!(profile["modules"].as_array().unwrap().iter().any(|module| module["path"] == program));
    assert_eq!(profile["trace"]["program"], program);
}

/// Converts `AllocCount` to `alloc_count`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

/// For profiles of clang 19, all numbers are those that its `llvm-profdata show --memory` prints.
#[test]
fn raw_profiles_of_llvm() {
    let folder = Folder::new();
    for name in ["clang19", "clang19_histogram"] {
        let (raw, profile) = (format!("{DATA}{name}.memprofraw"), folder.path("p.mtf"));
        hatf(["convert", "--to", "heapprof", &raw, &profile]).exits(0).says("2 of 2 contexts");
        let contexts = contexts(&profile);
        let expected = std::fs::read_to_string(format!("{DATA}{name}.txt")).unwrap();
        let mut blocks = 0;
        for block in expected.split("MemInfoBlock:\n").skip(1) {
            let lines = block.lines().map(str::trim).map_while(|line| line.split_once(": "));
            let fields: Vec<(&str, &str)> = lines.collect();
            let context = contexts.iter().find(|of| of["alloc_count"] == fields[0].1.parse::<u64>().unwrap()).unwrap();
            blocks += 1;
            for (field, value) in fields {
                match field {
                    // An unknown type, the length of the histogram, and a former pointer.
                    "DataTypeId" => assert_eq!((value, context.get("data_type_id")), ("0", None)),
                    "AccessHistogramSize" | "AccessHistogram" => {}
                    "AccessHistogramValues" => {
                        let values: Vec<u64> = value.split(' ').map(|value| value.parse().unwrap()).collect();
                        assert_eq!(context["access_histogram"], Value::from(values));
                    }
                    _ => assert_eq!(context[snake(field)].to_string(), value, "{name}: {field}"),
                }
            }
        }
        assert_eq!(blocks, 2);
        assert_eq!(contexts[0].get("first_alloc_timestamp"), None);
        assert_eq!(contexts[0].get("total_percent_utilized"), None);
        let text = hatf(["profile", "show", &profile, "--depth", "2", "--advice"]).exits(0).text();
        assert_snapshot!(format!("profile-advice-{name}"), text.replace(&profile, "p.mtf"));
        hatf(["profile", "show", &profile, "--advice", "--cold-lifetime", "0.001", "--cold-density", "1e3"])
            .exits(0)
            .prints(
                "COLD (fewer than 1000 accesses per byte per second, lifetime of 0.001 s or more): 1 of 2 contexts",
            );
    }
}

/// Returns a raw profile of version 3 with a module of this build ID at `base` and one block for each stack.
fn raw(build_id: &str, base: u64, stacks: &[Vec<u64>]) -> Vec<u8> {
    let id: Vec<u8> =
        (0..build_id.len()).step_by(2).map(|n| u8::from_str_radix(&build_id[n..n + 2], 16).unwrap()).collect();
    let mut segments: Vec<u8> =
        [1, base, base + (1 << 24), base, id.len() as u64].iter().flat_map(|n| n.to_le_bytes()).collect();
    segments.extend(&id);
    segments.resize(8 + 64, 0);
    let (mut blocks, mut traces) = (Vec::new(), Vec::new());
    blocks.extend((stacks.len() as u64).to_le_bytes());
    traces.extend((stacks.len() as u64).to_le_bytes());
    for (number, stack) in (1_u64..).zip(stacks) {
        blocks.extend(number.to_le_bytes());
        blocks.extend([1; 132]);
        traces.extend([number, stack.len() as u64].iter().chain(stack).flat_map(|n| n.to_le_bytes()));
    }
    blocks.resize(blocks.len().next_multiple_of(8), 0);
    let offsets = [48, 48 + segments.len(), 48 + segments.len() + blocks.len()].map(|offset| offset as u64);
    let total = offsets[2] + traces.len() as u64;
    let magic = u64::from_le_bytes([0x81, 0x72, 0x66, 0x6f, 0x72, 0x70, 0x6d, 0xff]);
    let header = [magic, 3, total, offsets[0], offsets[1], offsets[2]];
    [header.iter().flat_map(|n| n.to_le_bytes()).collect(), segments, blocks, traces].concat()
}

/// Functions of imported frames are those of a trace's frames at the same offsets.
#[test]
#[cfg(target_arch = "x86_64")]
fn names_of_raw_frames() {
    let folder = Folder::new();
    let Some(program) = common::compiled(&folder, "stacks", &["-O1", "-Wl,--build-id"]) else { return };
    let program = program.display().to_string();
    let at = |name: &str| folder.path(name);
    hatf(["record", "--stacks", "-q", "-o", &at("t.mtf"), "--", &program]).exits(7);
    hatf(["symbolize", &at("t.mtf"), "-o", &at("s.mtf")]).exits(0);
    hatf(["profile", &at("s.mtf"), "-o", &at("p.mtf")]).exits(0);
    let recorded = json(&at("p.mtf"));
    let modules = recorded["modules"].as_array().unwrap();
    let id = modules.iter().find(|module| module["path"] == program).unwrap()["build_id"].as_str().unwrap();
    // The program's frames in a context, by file offset.
    let frames = |context: &Value| -> Vec<(u64, Value)> {
        let frames = context["stack"].as_array().unwrap().iter().filter(|frame| frame["module"] == program);
        frames.map(|frame| (frame["offset"].as_u64().unwrap(), frame["functions"].clone())).collect()
    };
    let expected: Vec<_> = recorded["contexts"].as_array().unwrap().iter().map(frames).collect();
    // A raw profile contains the addresses of calls, but a trace contains return addresses.
    let base = 0x7000_0000;
    let calls = |stack: &Vec<(u64, Value)>| stack.iter().map(|(offset, _)| base + offset - 1).collect();
    std::fs::write(at("r.memprofraw"), raw(id, base, &expected.iter().map(calls).collect::<Vec<_>>())).unwrap();
    hatf(["convert", &at("r.memprofraw"), "--binary", &program, &at("i.prof.mtf")]).exits(0);
    let found: Vec<Vec<(u64, Value)>> = contexts(&at("i.prof.mtf")).iter().map(frames).collect();
    // Contexts were shown by bytes and are numbered in that order.
    assert_eq!(found, expected);
    assert!(expected.iter().flatten().any(|(_, functions)| functions[0]["line"].as_u64() > Some(0)));

    let wrong = |binary: &str| hatf(["convert", "--to", "heapprof", &at("r.memprofraw"), "--binary", binary]).exits(1);
    wrong(env!("CARGO_BIN_EXE_hatf")).says("build id");
    wrong(&at("t.mtf")).says(&at("t.mtf"));
    wrong("/no/such/file").says("/no/such/file");
}

#[test]
fn by_mistake() {
    let folder = Folder::new();
    let trace = DATA.to_owned() + "gawk.raw32.zst";
    let profile = folder.path("p.mtf");
    hatf(["profile"]).exits(2).says("<TRACE>");
    hatf(["profile", &trace, "-o", &profile, "--sets", "0"]).exits(2);
    hatf(["profile", &trace, "-o", &profile, "--tables", "4"]).exits(2).says("expected SETSxWAYS");
    hatf(["profile", &trace, "-o", &profile, "--tick", "1s"]).exits(2).says("expected a duration from 1ns to 1ms");
    hatf(["profile", "/no/such/trace", "-o", &profile]).exits(1).says("/no/such/trace");
    assert!(!std::path::Path::new(&profile).exists());
    hatf(["profile", &trace, "-o", "/no/such/folder/p.mtf"]).exits(1).says("/no/such/folder/p.mtf");
    hatf(["profile", &trace, "-o", &profile]).exits(0);
    hatf(["profile", "show", &profile, "--by", "size"]).exits(2).says("total_size");
    let heap = folder.path("heap.mtf");
    hatf(["convert", &trace, &heap]).exits(0);
    hatf(["profile", "show", &heap]).exits(1).says(&format!("hatf: {heap}: not a heap profile"));
    hatf(["convert", &profile, &folder.path("a.jsonl")]).exits(1).says("not a heap trace");
    hatf(["report", &profile]).exits(1).says("not a heap trace");
    let piped = |from: &[&str]| {
        let mut convert = Command::new(env!("CARGO_BIN_EXE_hatf"));
        convert.args(["convert", "--to", "folded", "-"]).args(from);
        metatf_test::run_with(&mut convert, &std::fs::read(&heap).unwrap())
    };
    piped(&[]).exits(1).says("specify the format of the trace with --from");
    piped(&["--from", "heap"]).exits(0).says("-: ");
    let mut bytes = std::fs::read(&profile).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&profile, bytes).unwrap();
    hatf(["profile", "show", &profile]).exits(1).says(&format!("hatf: {profile}: offset "));
}

/// Blocks freed on a different CPU from the one that allocated them are counted, for the same thread and for another
/// one.
#[test]
fn processors() {
    let folder = Folder::new();
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/processors.c");
    let (program, trace, profile) = (folder.path("processors"), folder.path("t.mtf"), folder.path("p.mtf"));
    let mut compiler = std::process::Command::new("cc");
    let compiled = compiler.args(["-O1", "-fno-builtin", "-pthread", "-o", &program]).arg(source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let of = |options: &[&str]| {
        let command = [&["record", "--quiet"][..], options, &["-o", &trace, "--", &program]].concat();
        let said = hatf(command).exits(0).text();
        hatf(["profile", &trace, "-o", &profile]).exits(0);
        let column = |context: &Value, name| context[name].as_u64();
        let counts = [8001, 8002].map(|size| {
            let contexts = contexts(&profile);
            let context = contexts.iter().find(|context| context["max_size"] == size);
            context.map(|context| {
                assert_eq!(context["alloc_count"], 100);
                let cpus = [column(context, "alloc_cpu_id"), column(context, "dealloc_cpu_id")];
                (column(context, "num_migrated_cpu"), column(context, "num_same_alloc_cpu"), cpus[0] == cpus[1])
            })
        });
        (said, counts)
    };
    let (said, counts) = of(&["--processors"]);
    if said.trim() == "one" {
        metatf_test::skip("this process has one processor alone");
        return;
    }
    assert_eq!(counts, [Some((Some(100), Some(99), false)), Some((Some(0), Some(99), true))]);
    let events = hatf(["dump", &trace]).exits(0).text();
    let (on, calls) = (events.matches("on CPU").count(), events.matches("malloc(800").count());
    assert!((3..20).contains(&on), "{on} of {calls}: {events}");
    let (_, counts) = of(&[]);
    assert_eq!(counts, [Some((None, None, true)), Some((None, None, true))]);
}
