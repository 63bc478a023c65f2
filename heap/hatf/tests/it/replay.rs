//! Replays with the system's allocator.

use std::process::Command;

use crate::common::hatf;
use hatf_host::replay::{Compiler, Cut, Look, Task, Touch, Worker, compare};
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function, UserMetadata};
use hatf_trace::forms::TraceReader;
use insta::assert_snapshot;
use metatf_test::Folder;

/// Directory of traces of programs, as compressed raw records.
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

#[test]
fn what_is_replayed() {
    let path = DATA.to_owned() + "perl_hash.raw32.zst";
    let options = ["--format", "json", "--runs", "2", "--touch", "usable"];
    let text = hatf([&["replay", &path][..], &options].concat()).exits(0).text();
    let outcome: serde_json::Value = serde_json::from_str(&text).unwrap();
    let of = |name: &str| outcome["trace"][name].as_u64().unwrap();
    let [system] = &outcome["outcomes"].as_array().unwrap()[..] else { panic!("{outcome}") };
    assert!(system["library"].as_str().unwrap().contains("libc"), "{system}");
    // All pages of all blocks were touched.
    let (peak, live) = (system["peak_resident"].as_u64().unwrap(), of("most_live_bytes"));
    assert!(peak > live / 2, "{peak} bytes resident, {live} live");
    let calls = system["latencies"].as_array().unwrap().iter().map(|latency| latency["calls"].as_u64().unwrap());
    assert_eq!(calls.sum::<u64>(), of("operations"));
}

/// If threads pass blocks to each other, a thread that frees a block waits for the thread that allocated it.
#[test]
fn several_threads() {
    const BLOCKS: u64 = 500;
    let by = |thread, kind| Event { thread, ..Event::new(kind) };
    for one_thread in [false, true] {
        let mut compiler = Compiler::new(Cut { one_thread, ..Cut::default() }).unwrap();
        for n in 0..BLOCKS {
            let address = 16 + 16 * (n % 100);
            let call = Call { size: n % 300, address, ..Call::new(Function::Malloc) };
            compiler.event(&by(n % 4, EventKind::Call(call))).unwrap();
            let moved = Call { old: address, size: n % 500, ..Call { function: Function::Realloc, ..call } };
            compiler.event(&by(n % 3, EventKind::Call(moved))).unwrap();
            compiler.event(&by((n + 1) % 4, EventKind::Free { address })).unwrap();
        }
        let operations = compiler.finish().unwrap();
        assert_eq!(operations.summary.threads, if one_thread { 1 } else { 4 });
        let worker = Worker::new(env!("CARGO_BIN_EXE_hatf").into(), vec!["__replay-worker".into()]);
        let task = Task { look: Look::Total, touch: Touch::Pages, nothing: false };
        let mut replays = 0;
        let system = ["system".parse().unwrap()];
        let comparison = compare(&worker, &operations, &system, 1, task, || replays += 1).unwrap();
        assert_eq!(replays, 5);
        let calls = comparison.outcomes[0].latencies.iter().map(|latency| latency.calls);
        assert_eq!(calls.sum::<u64>(), 3 * BLOCKS);
    }
}

/// The calls of a trace, without their addresses.
#[derive(Default)]
struct Requests {
    calls: Vec<(&'static str, u64)>,
}

impl EventSink for Requests {
    fn event(&mut self, event: &Event<'_>) -> hatf_trace::Result<()> {
        match event.kind {
            // A realloc without an old block is a malloc.
            EventKind::Call(Call { function, old: 0, size, .. }) if function.is_realloc() => {
                self.calls.push(("malloc", size));
            }
            EventKind::Call(Call { function, size, .. }) => self.calls.push((function.name(), size)),
            EventKind::Free { .. } => self.calls.push(("free", 0)),
            _ => {}
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> hatf_trace::Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, _: &UserMetadata) -> hatf_trace::Result<()> {
        Ok(())
    }
}

fn requests(path: &str) -> hatf_trace::Result<Vec<(&'static str, u64)>> {
    let mut requests = Requests::default();
    TraceReader::open(path.as_ref())?.give(&mut requests)?;
    Ok(requests.calls)
}

/// A recording of a replay contains the calls of the trace, in order.
#[test]
fn recording_a_replay() {
    let path = DATA.to_owned() + "perl_hash.raw32.zst";
    let mut compiler = Compiler::new(Cut::default()).unwrap();
    TraceReader::open(path.as_ref()).unwrap().give(&mut compiler).unwrap();
    let operations = compiler.finish().unwrap();
    let folder = Folder::new();
    let again = folder.path("again.mtf");
    let mut record = Command::new(env!("CARGO_BIN_EXE_hatf"));
    record.args(["record", "--quiet", "-o", &again, env!("CARGO_BIN_EXE_hatf"), "__replay-worker"]);
    let output = record.arg(operations.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (before, after) = (requests(&path).unwrap(), requests(&again).unwrap());
    // The replay makes other calls before and after.
    let found = after.windows(before.len()).position(|calls| calls == before);
    assert!(found.is_some(), "{} calls are not among the {} recorded", before.len(), after.len());
}

#[test]
fn as_text_and_as_a_picture() {
    let folder = Folder::new();
    let svg = folder.path("memory.svg");
    let path = DATA.to_owned() + "gawk.raw32.zst";
    let events = ["--records", "500..", "--runs", "2", "--svg", &svg];
    let text = hatf([&["replay", &path][..], &events[..]].concat()).exits(0).text();
    // Numbers differ from run to run, but words do not.
    const UNITS: [&str; 3] = ["B", "KiB", "MiB"];
    let words = |line: &str| {
        let words = line.split_whitespace().filter(|word| {
            !word.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '±') && !UNITS.contains(word)
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let head: Vec<_> = text.lines().take_while(|line| !line.starts_with("CALLS")).map(words).collect();
    assert_snapshot!(head.join("\n").replace(DATA, ""));
    let picture = std::fs::read_to_string(svg).unwrap();
    assert!(picture.contains(">live<") && picture.contains(">system<"), "{picture}");
}

#[test]
fn by_mistake() {
    let path = DATA.to_owned() + "gawk.raw32.zst";
    hatf(["replay", &path, "--with", "dlmalloc"])
        .exits(2)
        .says("expected system, jemalloc, mimalloc, tcmalloc or a path, found `dlmalloc`");
    hatf(["replay", &path, "--with", "x jemalloc=1"]).exits(2).says("expected VARIABLE=VALUE, found `x`");
    hatf(["replay", &path, "--with", "/no/lib.so"]).exits(2).says("/no/lib.so: No such file");
    hatf(["replay", &path, "--events", "9"]).exits(2).says("such as 1000..2000");
    hatf(["replay", &path, "--events", "9..3"]).exits(2).says("invalid range of records: 9 is greater than 3");
    hatf(["replay", "/no/such/trace"]).exits(1).says("/no/such/trace");
    // The file is not a library, so it cannot be preloaded.
    hatf(["replay", &path, "--with", &path]).exits(1).says("was not used");
}

/// Invalid traces are refused, and so are traces larger than the machine.
#[test]
fn traces_that_are_refused() {
    let folder = Folder::new();
    let trace = |text: &str| {
        let path = folder.path("trace.rep");
        std::fs::write(&path, text).unwrap();
        path
    };
    let twice = trace("0\n1\n3\n1\na 0 8\nf 0\nf 0\n");
    let run =
        |path: &str, more: &[&str]| hatf([&["replay", "--from", "malloclab", path, "--runs", "1"], more].concat());
    run(&twice, &[]).exits(1);
    let huge = trace("0\n1\n1\n1\na 0 100000000000000\n");
    run(&huge, &["--touch", "none"]).exits(1).says("system: the allocator could not allocate 100000000000000 bytes");
    run(&huge, &[]).exits(1).says("the replay would touch up to 90.9 TiB of live blocks").says("--max-memory");
}
