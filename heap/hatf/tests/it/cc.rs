//! Programs built by `hatf cc`: their loads and stores are counted, and blocks that other code may have accessed are
//! marked as unknown.
#![expect(clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use crate::common::hatf;
use hatf_trace::event::Accesses;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

/// Builds a program with GCC. Returns `None` if there is no GCC.
fn built(folder: &Folder, source: &str, options: &[&str]) -> Option<String> {
    built_by("gcc", folder, source, options)
}

fn built_by(compiler: &str, folder: &Folder, source: &str, options: &[&str]) -> Option<String> {
    if !cfg!(target_arch = "x86_64") || Command::new(compiler).arg("--version").output().is_err() {
        metatf_test::skip(&format!("there is no {compiler} for x86-64"));
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let program = folder.path("program");
    let command = [compiler, "-O1", "-g", "-pthread", source.to_str().unwrap(), "-o", &program];
    hatf(["cc"].into_iter().chain(options.iter().copied()).chain(command)).exits(0);
    Some(program)
}

/// Returns the access counts recorded at the end of each block or of the program, by block size.
fn counted(trace: &Path) -> HashMap<u64, Vec<Accesses>> {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut live, mut counted) = (HashMap::new(), HashMap::<u64, Vec<Accesses>>::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) => {
                live.remove(&call.old);
                live.insert(call.address, call.size);
            }
            EventKind::Free { address } => drop(live.remove(&address)),
            EventKind::Accesses(accesses) => {
                if let Some(size) = live.get(&accesses.address) {
                    counted.entry(*size).or_default().push(accesses);
                }
            }
            _ => {}
        }
    }
    counted
}

fn granules(accesses: &Accesses, size: u64) -> u64 {
    (accesses.address + size - 1) / 64 - accesses.address / 64 + 1
}

#[test]
fn each_block_has_its_counts() {
    has_its_counts("gcc");
}

/// Clang inserts the same calls.
#[test]
fn each_block_has_its_counts_by_clang() {
    has_its_counts("clang");
}

fn has_its_counts(compiler: &str) {
    let folder = Folder::new();
    let Some(program) = built_by(compiler, &folder, "accesses.c", &[]) else { return };
    assert!(Command::new(&program).status().unwrap().success(), "it runs by itself");
    let trace = folder.path("accesses.mtf");
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", &program]).exits(0);
    let counted = counted(Path::new(&trace));
    let of = |size: u64| counted.get(&size).map(Vec::as_slice).unwrap_or_default();
    for (size, loads, stores) in [(33, 31, 0), (31, 0, 31)] {
        assert_eq!(of(size).len(), 50);
        for accesses in of(size) {
            assert_eq!((accesses.loads, accesses.stores, accesses.reached), (loads, stores, false), "{accesses:?}");
            assert_eq!((accesses.granules, accesses.address % 32), (granules(accesses, size), 0));
        }
    }
    let one = |size: u64| {
        assert_eq!(of(size).len(), 1, "{size}");
        of(size)[0]
    };
    let two = |size: u64| {
        assert_eq!(of(size).len(), 2, "{size}");
        *of(size).first_chunk::<2>().unwrap()
    };
    let never = one(1100);
    assert_eq!((never.loads, never.stores, never.touched, never.reached), (0, 0, 0, false), "live at the end");
    let [copied, other] = &two(1200);
    let all = granules(copied, 1200);
    assert_eq!((copied.loads, copied.stores, copied.touched, copied.reached), (2 * all, all + 1, all, false));
    assert_eq!((other.loads, other.stores, other.reached), (0, granules(other, 1200), false));
    // `qsort` allocates its own block.
    let [of_qsort, sorted] = &two(1300);
    assert!(of_qsort.reached && sorted.reached, "qsort is of the C library");
    assert!(sorted.stores == 325 && sorted.loads > 600, "it calls the program's own code: {sorted:?}");
    assert!(one(1400).reached, "a structure on the stack has its address");
    let aligned = one(1500);
    assert_eq!((aligned.loads, aligned.stores), (1, granules(&aligned, 1500)), "realloc copies it");
    let moved = one(1501);
    assert_eq!((moved.loads, moved.stores, moved.reached), (2, 1, false), "realloc has written it");
    let large = one(200_000_000);
    assert_eq!((large.loads, large.stores, large.touched), (2, 1, 2));
    assert_eq!(large.granules, granules(&large, 200_000_000));
    for accesses in of(1700) {
        assert_eq!((accesses.loads, accesses.stores, accesses.touched, accesses.reached), (1000, 1000, 1, false));
    }
    assert_eq!(of(1700).len(), 2);
}

/// The profile shows which blocks are never read.
#[test]
fn the_profile_says_what_is_never_read() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "accesses.c", &[]) else { return };
    let (trace, profile) = (folder.path("a.mtf"), folder.path("a.prof.mtf"));
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", &program]).exits(0);
    hatf(["profile", &trace, "-o", &profile, "--tables", "1x1"]).exits(0);
    let json = hatf(["profile", "show", &profile, "--format", "json"]).exits(0);
    let json: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
    let reads = |size: u64| {
        let of = |context: &&serde_json::Value| context["max_size"] == size;
        let context = json["contexts"].as_array().unwrap().iter().find(of).unwrap();
        context["reads"].as_str().unwrap().to_owned()
    };
    assert_eq!(reads(31), "only_written");
    assert_eq!(reads(33), "read");
    assert_eq!(reads(1100), "never_accessed");
    assert_eq!(reads(1400), "unknown");
    let text = hatf(["profile", "show", &profile, "--unread"]).exits(0);
    let text = text.prints("NEVER ACCESSED: ").prints("WRITTEN AND NEVER READ: ").text();
    let row = |line: &str| line.split_whitespace().take(3).eq(["1,550", "50", "50"]);
    assert!(text.lines().any(row), "{text}");
}

/// Programs run and counts are correct with limited address space, in samples and in a child process.
#[test]
fn in_other_circumstances() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "accesses.c", &["--functions"]) else { return };
    let trace = folder.path("b.mtf");
    let limited = format!("ulimit -v 1500000; exec {program}");
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", "/bin/sh", "-c", &limited]).exits(0);
    assert_eq!(counted(Path::new(&trace)).get(&31).unwrap().len(), 50);
    hatf(["record", "-q", "--stacks", "--sample", "1KiB", "-o", &trace, "--", &program]).exits(0);
    hatf(["record", "-q", "-o", &trace, "--", &program]).exits(0);
    assert!(counted(Path::new(&trace)).is_empty(), "whose code allocated a block is known by its stack");
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", &program, "fork"]).exits(0);
    let processes = Path::new(&trace).with_extension("processes");
    let child = std::fs::read_dir(processes).unwrap().map(|entry| entry.unwrap().path());
    let child = child.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "mtf")).unwrap();
    let [accesses] = counted(&child)[&1600][..] else { panic!("one block") };
    assert_eq!((accesses.loads, accesses.stores, accesses.reached), (0, 1, false));

    let (mut depth, mut entered) = (0_i64, 0);
    let mut reader = TraceReader::open(Path::new(&trace)).unwrap();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Enter { function } => {
                assert_ne!(function, 0);
                (depth, entered) = (depth + 1, entered + 1);
            }
            EventKind::Leave => depth -= 1,
            _ => {}
        }
    }
    assert!(entered > 3 && depth == 0, "{entered} functions were entered, {depth} not left");
}

#[test]
fn what_is_no_compiler() {
    hatf(["cc", "true", "x.c"]).exits(2).says("neither GCC nor Clang");
    hatf(["cc", "no-such-compiler", "x.c"]).exits(1).says("cannot run no-such-compiler");
    hatf(["cc"]).exits(2);
}

/// Reads near the pointers that a program passes to the C library stop at the end of mapped memory, and blocks after
/// such pointers are still found.
#[test]
fn pointers_near_memory_that_is_not_there() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "pointers.c", &[]) else { return };
    let plugin = folder.path("plugin.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/pointers_plugin.c");
    let command = ["cc", "gcc", "-O1", "-shared", "-fPIC", source.to_str().unwrap(), "-o", &plugin];
    hatf(command).exits(0);
    let trace = folder.path("pointers.mtf");
    // Few variables are in the environment, so the stack ends soon after the arguments.
    let run = |command: &[&str]| metatf_test::run(Command::new("env").args(["-i", "PATH=/bin:/usr/bin"]).args(command));
    for (which, sizes) in [("ends", &[][..]), ("thread", &[2100]), ("coroutine", &[2200]), ("library", &[2300])] {
        let bare = [&*program, which, &plugin];
        run(&bare).exits(7);
        let record = [env!("CARGO_BIN_EXE_hatf"), "record", "-q", "--stacks", "-o", &trace, "--"];
        run(&[&record[..], &bare].concat()).exits(7);
        let counted = counted(Path::new(&trace));
        for size in sizes {
            assert!(counted[size].last().unwrap().reached, "{which}: {:?}", counted[size].last());
        }
        if which == "library" {
            let hidden = counted[&2300].iter().filter(|accesses| !accesses.reached).count();
            assert_eq!((counted[&2300].len(), hidden), (100, 99), "the library's code is instrumented");
        }
    }
}

/// As in the paper on CHAM, blocks can be freed at their last access, even if the program never frees them.
#[test]
fn blocks_can_be_freed_where_they_are_last_accessed() {
    let folder = Folder::new();
    let Some(program) = built(&folder, "last_access.c", &[]) else { return };
    let (trace, early) = (folder.path("a.mtf"), folder.path("early.mtf"));
    hatf(["record", "-q", "--stacks", "-o", &trace, "--", &program]).exits(0);
    let run = hatf(["convert", "--free-at-last-access", &trace, &early]).exits(0);
    run.says("blocks now end at their last access; the program freed 1 of them later");
    // Block sizes in the order of allocations and frees.
    let mut reader = TraceReader::open(Path::new(&early)).unwrap();
    let (mut live, mut order) = (HashMap::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) => {
                live.insert(call.address, call.size);
                order.push((call.size, '+'));
            }
            EventKind::Free { address } => order.extend(live.remove(&address).map(|size| (size, '-'))),
            _ => {}
        }
    }
    order.retain(|(size, _)| matches!(size, 17..=19 | 1000 | 1100 | 1200));
    let place = |of: (u64, char)| order.iter().position(|other| *other == of).unwrap();
    assert!(place((1200, '-')) < place((17, '+')), "it is never accessed: {order:?}");
    assert!((place((1200, '+'))..place((17, '+'))).contains(&place((1000, '-'))), "{order:?}");
    assert!((place((18, '+'))..place((19, '+'))).contains(&place((1100, '-'))), "{order:?}");
    // Models can be fitted to the new trace. A trace without access counts is refused.
    hatf(["model", "fit", &early, "-m", "cdf", "-o", &folder.path("model.json")]).exits(0);
    let gawk = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/gawk.raw32.zst");
    hatf(["convert", "--free-at-last-access", gawk, &early]).exits(1).says("hatf cc");
    hatf(["convert", "--free-at-last-access", &trace, "-", "--to", "raw32"])
        .exits(2)
        .says("requires one input and heap output");
    hatf(["convert", "--free-at-last-access", &trace, "-", "--to", "pprof"])
        .exits(2)
        .says("requires one input and heap output");
}
