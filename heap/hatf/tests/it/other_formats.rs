//! Traces with other DTDs, read by record and field names, and logs of the Memory Pool System.
#![expect(clippy::unwrap_used)]

use crate::common::hatf;
use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_test::Folder;

/// Writes a trace with a DTD from JSON lines.
pub(super) fn trace(folder: &Folder, name: &str, dtd: &str, lines: &[String]) -> String {
    let schema = Schema::parse("theirs.dtd", dtd.as_bytes()).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for line in lines {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    folder.write(name, writer.finish().unwrap());
    folder.path(name)
}

pub(super) const THEIRS: &str = "section log 1 {
    when.width = 4; when.interpretation = none; when.role = \"time\"; when.unit = \"us\";
    tid.width = 2; tid.interpretation = none;
    ptr.width = 8; ptr.interpretation = none; old_ptr.width = 8; old_ptr.interpretation = none;
    bytes.width = 4; bytes.interpretation = none; text.width = 1; text.interpretation = none;
    Allocate: (tag, when, tid, bytes, ptr) { tag.value = 10; }
    Release: (tag, when, ptr) { tag.value = 11; }
    Resize: (tag, when, old_ptr, bytes, ptr) { tag.value = 12; }
    Message: (tag, when, text) { tag.value = 13; }
}";

/// Returns lines for blocks that are allocated, freed and sometimes moved.
pub(super) fn lines() -> Vec<String> {
    let mut lines = Vec::new();
    let mut put = |record: &str, fields: String| {
        lines.push(format!(r#"{{"@section":"log","@record":"{record}",{fields}}}"#));
    };
    for block in 0..400 {
        let (ptr, bytes) = (0x10000 + 256 * block, 16 + block % 200);
        put("Allocate", format!(r#""when":{block},"tid":{},"bytes":{bytes},"ptr":{ptr}"#, 1 + block % 3));
        put("Message", format!(r#""when":{block},"text":7"#));
        if block % 4 == 0 {
            let moved = 0x90000 + 512 * block;
            put("Resize", format!(r#""when":{block},"old_ptr":{ptr},"bytes":{},"ptr":{moved}"#, 2 * bytes));
        } else if block % 4 != 1 {
            put("Release", format!(r#""when":{block},"ptr":{ptr}"#));
        }
    }
    lines
}

#[test]
fn a_trace_of_another_dtd_is_read_by_names() {
    let folder = Folder::new();
    let theirs = trace(&folder, "theirs.mtf", THEIRS, &lines());
    hatf(["report", &theirs])
        .exits(0)
        .says("theirs.mtf: interpreted by record names: Allocate allocates, Release frees, Resize reallocates; skipped: Message")
        .prints("400 malloc, 100 realloc, 200 free")
        // The last block is the 400th, at microsecond 399.
        .prints("399 us");
    // All heap trace commands accept the trace, and the report is that of a heap trace of the same calls.
    let ours = folder.path("ours.mtf");
    hatf(["convert", &theirs, &ours]).exits(0);
    let json = |trace: &str| {
        let text = hatf(["report", "--format", "json", trace]).exits(0).text();
        let from = text.find("\"peak\"").unwrap();
        text[from..].to_owned()
    };
    assert_eq!(json(&theirs), json(&ours));
    for command in [
        &["simulate", "--allocator", "bsd,first"][..],
        &["fragmentation"],
        &["whatif"],
        &["dump"],
        &["sites"],
        &["replay"],
    ] {
        hatf(command.iter().copied().chain([theirs.as_str()])).exits(0);
    }
    hatf(["model", "fit", &theirs, "-m", "cdf", "-o", &folder.path("model.json")]).exits(0);
    hatf(["profile", &theirs, "-o", &folder.path("profile.mtf")]).exits(0);
    hatf(["diff", &theirs, &ours]).exits(0);
    hatf(["symbolize", &theirs]).exits(1).says("the trace has no stacks");
    hatf(["convert", "--from", "heap", &theirs, &ours]).exits(1).says("--from named");
}

/// A record named after a function is a call to it.
#[test]
fn functions_keep_their_names() {
    let folder = Folder::new();
    let dtd =
        "section s 1 { size.width = 4; size.interpretation = none; address.width = 8; address.interpretation = none;
        malloc: (tag, size, address) { tag.value = 4; } calloc: (tag, size, address) { tag.value = 5; }
        posix_memalign: (tag, size, address) { tag.value = 6; } New: (tag, size, address) { tag.value = 7; } }";
    let line = |(n, record)| format!(r#"{{"@section":"s","@record":"{record}","size":8,"address":{}}}"#, 16 + 16 * n);
    let lines: Vec<_> = (0..).zip(["malloc", "calloc", "posix_memalign", "New"]).map(line).collect();
    let theirs = trace(&folder, "theirs.mtf", dtd, &lines);
    hatf(["report", &theirs]).exits(0).prints("2 malloc, 1 calloc, 1 aligned");
}

#[test]
fn what_cannot_be_read_by_names() {
    let folder = Folder::new();
    let record = |name: &str, fields: &str| {
        format!(
            "section s 1 {{ a.width = 4; a.interpretation = none; ptr.width = 4; ptr.interpretation = none; size.width = 4; size.interpretation = none;
            {name}: (tag, a, {fields}) {{ tag.value = 4; }} }}"
        )
    };
    for (dtd, problem) in [
        (
            record("tick", "ptr, size"),
            "no record name (tick) is a known name for an allocation or a free (malloc, alloc,",
        ),
        (record("alloc", "ptr"), "record alloc has no field for the size: expected one of size, bytes,"),
        (record("alloc", "size"), "record alloc has no field for the address: expected one of address,"),
        (record("realloc", "ptr, size"), "record realloc has no field for the old address"),
    ] {
        // A DTD must not declare unused fields.
        let used = dtd.rsplit("(tag").next().unwrap().to_owned();
        let dtd = ["ptr", "size"].iter().filter(|field| !used.contains(**field)).fold(dtd.clone(), |dtd, field| {
            dtd.replace(&format!(" {field}.width = 4; {field}.interpretation = none;"), "")
        });
        let theirs = trace(&folder, "theirs.mtf", &dtd, &[]);
        hatf(["report", &theirs]).exits(1).says("theirs.mtf: ").says(problem);
    }
}

/// Returns an event of a 64-bit little-endian log.
pub(super) fn event(code: u16, clock: u64, fields: &[u64]) -> Vec<u8> {
    let size = u16::try_from(16 + 8 * fields.len()).unwrap();
    let mut bytes = [code.to_le_bytes(), size.to_le_bytes()].concat();
    bytes.extend([0; 4]);
    for number in [&[clock], fields].concat() {
        bytes.extend(number.to_le_bytes());
    }
    bytes
}

/// Returns the times of mallocs and frees in a heap trace, relative to the first.
fn times(heap: &str) -> Vec<u64> {
    let lines = hatf(["convert", heap, "-", "--to", "jsonl"]).exits(0).text();
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut times = lines
        .filter(|line| ["malloc", "free"].map(|name| line["@record"] == name).contains(&true))
        .filter_map(|line| line["time"].as_u64())
        .collect::<Vec<_>>();
    let first = times[0];
    times.iter_mut().for_each(|time| *time -= first);
    times
}

#[test]
fn a_log_of_the_memory_pool_system() {
    const ALLOC: u16 = 0x2a;
    const FINISH: u16 = 0x2b;
    const FREE: u16 = 0x2c;
    let folder = Folder::new();
    let (pool, other) = (0x7000, 0x8000);
    // The events are not in clock order, as buffers are flushed kind by kind.
    let log = [
        event(FREE, 130, &[pool, 0x1000, 32]),
        event(FREE, 150, &[pool, 0x1000, 32]),
        event(FREE, 160, &[other, 0x5000, 48]),
        event(FREE, 190, &[pool, 0x1000, 64]),
        event(ALLOC, 100, &[pool, 0x1000, 32]),
        event(ALLOC, 110, &[pool, 0x2000, 40]),
        event(ALLOC, 120, &[other, 0x3000, 56]),
        event(FINISH, 140, &[pool, 0x9000]),
    ]
    .concat();
    folder.write("mps.log", &log);
    let (log_path, heap) = (folder.path("mps.log"), folder.path("heap.mtf"));
    hatf(["convert", "--from", "mps", &log_path, &heap])
        .exits(0)
        .says("3 PoolAlloc and 4 PoolFree events; 1 objects ended with their pool")
        .says("3 objects have no PoolAlloc event: 1 are treated as live from the start of the log, and 2 as");
    let lines = hatf(["convert", &heap, "-", "--to", "jsonl"]).exits(0).text();
    let seen: Vec<String> = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|line| ["malloc", "free"].map(|name| line["@record"] == name).contains(&true))
        .map(|line| format!("{} {} {}", line["@record"].as_str().unwrap(), line["address"], line["size"]))
        .collect();
    let expected = [
        ("malloc", 0x5000, "48"),
        ("malloc", 0x1000, "32"),
        ("malloc", 0x2000, "40"),
        ("malloc", 0x3000, "56"),
        ("free", 0x1000, "null"),
        ("malloc", 0x1000, "32"),
        ("free", 0x2000, "null"),
        ("free", 0x1000, "null"),
        ("malloc", 0x1000, "64"),
        ("free", 0x5000, "null"),
        ("free", 0x1000, "null"),
    ];
    assert_eq!(seen, expected.map(|(record, address, size)| format!("{record} {address} {size}")));
    hatf(["replay", &heap]).exits(0);
    // Without two readings of both clocks, times are ticks of the log's clock.
    assert_eq!(times(&heap), [0, 0, 10, 20, 30, 30, 40, 50, 50, 60, 90]);
    // The clock is a 4 GHz cycle counter: 4,000 ticks are a microsecond, which is one tick of the system's clock. The
    // readings are not in order of time either, and a repeated reading does not count.
    const INIT: u16 = 0x1d;
    const SYNC: u16 = 0x1c;
    let init = event(INIT, 90, &[2, 0, 64 << 32 | 19, 1_000_000]);
    let pairs = [(4_000_100, 1777), (100, 777), (4_000_100, 1777), (2_000_100, 1277)];
    let pairs = pairs.map(|(clock, system)| event(SYNC, clock, &[system])).concat();
    let object = [event(ALLOC, 1_000, &[pool, 0x1000, 32]), event(FREE, 4_001_000, &[pool, 0x1000, 32])].concat();
    folder.write("fast.log", [&init[..], &pairs, &object].concat());
    let fast = folder.path("fast.log");
    hatf(["convert", "--from", "mps", &fast, &heap]).exits(0).says("1 PoolAlloc").says("4000 times per microsecond");
    assert_eq!(times(&heap), [0, 1_000_000]);
    // If events of this kind were off, the system's clock is in microseconds, as it is everywhere except on old
    // systems.
    folder.write("fast.log", [&pairs[..], &object].concat());
    hatf(["convert", "--from", "mps", &fast, &heap]).exits(0).says("4000 times per microsecond");
    assert_eq!(times(&heap), [0, 1_000_000]);
    // Clocks with impossible values do not overflow.
    let wild = [event(INIT, 0, &[2, 0, 64 << 32, u64::MAX]), event(SYNC, 0, &[0]), event(SYNC, u64::MAX, &[u64::MAX])];
    folder.write("fast.log", [&wild.concat()[..], &object].concat());
    hatf(["convert", "--from", "mps", &fast, &heap]).exits(0);
    folder.write("fast.log", [&object[..], &event(SYNC, 7, &[7])].concat());
    hatf(["convert", "--from", "mps", &fast, &heap]).exits(0).says("times are in ticks of the log's clock");
    // A truncated log, a file in another format, and a missing file.
    folder.write("cut.log", &log[..log.len() - 3]);
    hatf(["convert", "--from", "mps", &folder.path("cut.log"), &folder.path("none.mtf")])
        .exits(1)
        .says("cut.log: offset ");
    assert!(!folder.join("none.mtf").exists());
    hatf(["convert", "--from", "mps", &heap, &folder.path("none.mtf")])
        .exits(1)
        .says("not a log of the Memory Pool System");
    hatf(["convert", "--from", "mps", &folder.path("no.log"), &folder.path("none.mtf")]).exits(1).says("no.log");
}
