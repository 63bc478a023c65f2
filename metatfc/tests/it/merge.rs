//! `merge`: clocks, order, tables, DTDs of several versions, and processes that run at the same time. The file has over
//! 400 lines, because each case is next to the traces that it needs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use crate::common::{NO_STACK, metatfc, run, written};
use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use metatf_test::Folder;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Events with a separate clock per trace.
const EVENTS: &str = "\
time.width = 4; time.interpretation = delta 0; time.source = \"clock\";
section events 1 {
    step: (time, thread, number) {
        tag.value = 4;
        thread.width = 1; thread.interpretation = none;
        number.width = 2; number.interpretation = none;
    }
    note: vfield { tag.value = 5; vfield.data.format = \"utf8\"; }
    sync: (time, wall) {
        tag.value = 6; tag.source = \"clock_sync\";
        wall.width = 8; wall.interpretation = none; wall.source = \"wall\";
    }
}
";

fn step(time: u64, thread: u64, number: u64) -> String {
    format!(
        "{{\"@section\":\"events\",\"@record\":\"step\",\"time\":{time},\"thread\":{thread},\"number\":{number}}}\n"
    )
}

fn sync(time: u64, wall: u64) -> String {
    format!("{{\"@section\":\"events\",\"@record\":\"sync\",\"time\":{time},\"wall\":{wall}}}\n")
}

fn note(text: &str) -> String {
    format!("{{\"@section\":\"events\",\"@record\":\"note\",\"vfield\":\"{text}\"}}\n")
}

fn folder() -> Folder {
    let here = Folder::new();
    here.write("events.dtd", EVENTS);
    here
}

fn encode(here: &Folder, name: &str, lines: &str) {
    run(here, &["convert", "--dtd", "events.dtd", "-", name], lines.as_bytes()).exits(0);
}

fn lines(here: &Folder, name: &str) -> Vec<Value> {
    let text = metatfc(here, &["dump", "--format", "jsonl", name]).exits(0).text();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(lines: &[Value], field: &str) -> Vec<u64> {
    lines.iter().filter_map(|line| line[field].as_u64()).collect()
}

/// All clocks are converted to the clock of the trace that began first. Times between two clock comparisons are
/// interpolated linearly.
#[test]
fn clocks_are_brought_together() {
    let here = &folder();
    // The first trace began at wall-clock time 1000. The clock of the second began at 1100 and is slow at first: 100 of
    // its units are 200.
    encode(here, "a.mtf", &[sync(0, 1000), step(50, 1, 0), step(250, 1, 2), step(290, 1, 4), step(500, 1, 6)].concat());
    encode(here, "b.mtf", &[sync(0, 1100), step(50, 2, 1), step(90, 2, 3), sync(100, 1300), step(150, 2, 5)].concat());
    metatfc(here, &["sort", "a.mtf", "b.mtf", "-o", "both.mtf"]).exits(0);
    let both = lines(here, "both.mtf");
    assert_eq!(numbers(&both, "number"), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers(&both, "time"), [0, 50, 100, 200, 250, 280, 290, 300, 350, 500]);
    assert!(
        both.iter()
            .filter(|line| !line["wall"].is_null())
            .all(|line| line["wall"] == line["time"].as_u64().unwrap() + 1000)
    );
    // The order of the inputs does not matter, and a merged trace can be merged again.
    metatfc(here, &["sort", "b.mtf", "a.mtf", "-o", "again.mtf"]).exits(0);
    assert_eq!(lines(here, "again.mtf"), both);
    encode(here, "c.mtf", &[sync(0, 1260), step(0, 3, 100)].concat());
    metatfc(here, &["sort", "c.mtf", "both.mtf", "-o", "three.mtf"]).exits(0);
    assert_eq!(numbers(&lines(here, "three.mtf"), "number"), [0, 1, 2, 100, 3, 4, 5, 6]);
    // The times are now in order.
    metatfc(here, &["sort", "three.mtf", "-o", "sorted.mtf"]).exits(0);
    assert_eq!(lines(here, "sorted.mtf"), lines(here, "three.mtf"));
}

#[test]
fn one_trace_stays_as_it_is() {
    let here = &folder();
    encode(
        here,
        "a.mtf",
        &[note("first"), sync(3, 1000), step(5, 1, 0), note("behind"), sync(9, 2000), step(9, 1, 1)].concat(),
    );
    metatfc(here, &["sort", "a.mtf", "-o", "one.mtf"]).exits(0);
    metatfc(here, &["convert", "a.mtf", "recoded.mtf"]).exits(0);
    metatfc(here, &["diff", "one.mtf", "recoded.mtf"]).exits(0);
    // The result is the same with pipes.
    let bytes = here.read("a.mtf");
    let piped = run(here, &["sort", "-", "-o", "-"], &bytes).exits(0);
    here.write("piped.mtf", &piped.out);
    metatfc(here, &["diff", "--order", "one.mtf", "piped.mtf"]).exits(0);
}

/// Splitting a trace by thread and merging the parts restores it, including tables and records without a time. Records
/// without a time stay after their predecessors.
#[test]
fn pieces_become_the_trace_again() {
    let here = &Folder::new();
    here.write(
        "events.dtd",
        "time.width = 2; time.interpretation = delta 0;
        section events 1 {
            step: (time, thread, name) { tag.value = 4; thread.width = 1; thread.interpretation = none;
                name.width = 1; name.interpretation = sectionOffset 2; }
            more: (thread, number) { tag.value = 5; thread.width = 1; thread.interpretation = none; number.width = 1;
                number.interpretation = none; }
        }
        section names 2 { text: vfield { vfield.data.format = \"utf8\"; } }",
    );
    let (mut all, mut pieces) = (Vec::new(), vec![String::new(); 3]);
    let mut random = 1_u64;
    let mut events = Vec::new();
    for number in 0..600_u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Times are repeated; at equal times, records of earlier threads come first.
        events.push((random >> 56, (random >> 40) % 3, number));
    }
    events.sort_by_key(|event| (event.0, event.1));
    let mut tables: Vec<Vec<u64>> = vec![Vec::new(); 3];
    let offset = |table: &mut Vec<u64>, name: u64| {
        let at = table.iter().position(|known| *known == name).unwrap_or_else(|| {
            table.push(name);
            table.len() - 1
        });
        3 * at
    };
    for (time, thread, number) in events {
        let piece = usize::try_from(thread).unwrap();
        let name = offset(&mut tables[piece], 10 + number % 7);
        writeln!(
            pieces[piece],
            r#"{{"@section":"events","@record":"step","time":{time},"thread":{thread},"name":{name}}}"#
        )
        .unwrap();
        all.push(format!("step {time} {thread} {}", 10 + number % 7));
        if number % 4 == 0 {
            writeln!(
                pieces[piece],
                r#"{{"@section":"events","@record":"more","thread":{thread},"number":{}}}"#,
                number % 200
            )
            .unwrap();
            all.push(format!("more {thread} {}", number % 200));
        }
    }
    for (thread, (piece, table)) in pieces.iter().zip(&tables).enumerate() {
        let mut text = String::new();
        for name in table {
            writeln!(text, r#"{{"@section":"names","@record":"text","@shared":true,"vfield":"{name}"}}"#).unwrap();
        }
        text.push_str(piece);
        encode(here, &format!("{thread}.mtf"), &text);
    }
    let found = |name: &str| {
        let text = metatfc(here, &["dump", "--resolve", "--format", "jsonl", name]).exits(0).text();
        let line = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            match line["@record"].as_str() {
                Some("step") => {
                    let name = line["name"]["element"]["vfield"].as_str().unwrap();
                    format!("step {} {} {name}", line["time"], line["thread"])
                }
                _ => format!("more {} {}", line["thread"], line["number"]),
            }
        };
        text.lines().map(line).collect::<Vec<_>>()
    };
    metatfc(here, &["sort", "--by", "time", "0.mtf", "1.mtf", "2.mtf", "-o", "all.mtf"]).exits(0);
    assert_eq!(found("all.mtf"), all);
    // Each of the seven names is stored once.
    let names = metatfc(here, &["dump", "--all", "--section", "names", "--format", "jsonl", "all.mtf"]).exits(0).text();
    assert_eq!(names.lines().count(), 7, "{names}");
}

/// An unordered trace is sorted first, in parts if necessary, with the same result as `sort`.
#[test]
fn traces_out_of_order_are_sorted() {
    let here = &folder();
    let (mut a, mut b) = (String::new(), String::new());
    for number in 0..30_000_u64 {
        a.push_str(&step(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44, 1, number % 60_000));
        b.push_str(&step(number * 30, 2, number % 60_000));
    }
    encode(here, "a.mtf", &a);
    encode(here, "b.mtf", &b);
    encode(here, "ab.mtf", &(a + &b));
    metatfc(here, &["sort", "ab.mtf", "-o", "sorted.mtf"]).exits(0);
    for memory in ["1", "100"] {
        metatfc(here, &["sort", "--by", "time", "--memory", memory, "a.mtf", "b.mtf", "-o", "merged.mtf"]).exits(0);
        metatfc(here, &["diff", "--order", "sorted.mtf", "merged.mtf"]).exits(0);
    }
}

/// There may be more input traces than can be open at the same time.
#[test]
fn hundreds_of_traces() {
    let here = &folder();
    let names: Vec<String> = (0..300).map(|n| format!("{n}.mtf")).collect();
    encode(here, "0.mtf", &[step(0, 0, 0), step(300, 0, 300), step(600, 0, 600)].concat());
    for (number, name) in (0_u64..).zip(&names).skip(1) {
        // The traces differ only in their times. The numbers in a trace are 300 apart.
        encode(
            here,
            name,
            &[step(number, 0, number), step(number + 300, 0, number + 300), step(number + 600, 0, number + 600)]
                .concat(),
        );
    }
    let mut args = vec!["sort", "--by", "time", "--source", "from", "-o", "all.mtf"];
    args.extend(names.iter().map(String::as_str));
    metatfc(here, &args).exits(0);
    let all = lines(here, "all.mtf");
    assert_eq!(numbers(&all, "number"), (0..900).collect::<Vec<_>>());
    assert!(all.iter().zip(0..900).all(|(line, number)| line["from"] == number % 300 + 1));
}

/// `--source` stores the number of the trace in an existing or a new field.
#[test]
fn sources_are_told_apart() {
    let here = &folder();
    encode(here, "a.mtf", &[sync(0, 1000), step(10, 1, 0), note("of a"), step(30, 1, 2)].concat());
    encode(here, "b.mtf", &[sync(0, 1000), step(20, 1, 1), note("of b")].concat());
    metatfc(here, &["sort", "a.mtf", "b.mtf", "--source", "process", "-o", "both.mtf"]).exits(0);
    let both = lines(here, "both.mtf");
    let found: Vec<(u64, &str)> =
        both.iter().map(|line| (line["process"].as_u64().unwrap(), line["@record"].as_str().unwrap())).collect();
    let wanted = [(1, "sync"), (2, "sync"), (1, "step"), (1, "note"), (2, "step"), (2, "note"), (1, "step")];
    assert_eq!(found, wanted);
    metatfc(here, &["show", "both.mtf"]).exits(0).prints("The number of the trace");
    metatfc(here, &["sort", "a.mtf", "b.mtf", "--source", "thread", "-o", "both.mtf"]).exits(0);
    assert_eq!(numbers(&lines(here, "both.mtf"), "thread"), [1, 2, 1]);
    metatfc(here, &["sort", "a.mtf", "--source", "no-name", "-o", "both.mtf"]).exits(2).says("--source no-name");
    metatfc(here, &["sort", "a.mtf", "--source", "vfield", "-o", "both.mtf"]).exits(2).says("--source vfield");
}

/// Spans and strings with the same number in two traces are distinguished, even in a trace viewer.
#[test]
fn spans_and_labels_of_two_processes() {
    let here = &Folder::new();
    here.write(
        "events.dtd",
        "time.width = 2; time.interpretation = none; time.role = \"time\"; id.width = 1; id.interpretation = none;
        id.role = \"span\"; name.width = 1; name.interpretation = none; name.role = \"string_id\";
        section s 1 {
            named: (name, vfield) { tag.value = 4; vfield.data.format = \"utf8\"; vfield.data.role = \"string\"; }
            begin: (time, id, name) { tag.value = 5; tag.span = \"begin\"; }
            end: (time, id) { tag.value = 6; tag.span = \"end\"; }
            label: (name, address) { tag.value = 7; address.width = 1; address.interpretation = none; address.role = \"labelled\"; }
        }",
    );
    let line = |record: &str, fields: &str| format!("{{\"@section\":\"s\",\"@record\":\"{record}\",{fields}}}\n");
    for (file, name, begin, end) in [("a.mtf", "GET", 10, 50), ("b.mtf", "PUT", 20, 120)] {
        let lines = [
            line("named", &format!("\"name\":1,\"vfield\":\"{name}\"")),
            line("begin", &format!("\"time\":{begin},\"id\":9,\"name\":1")),
            line("end", &format!("\"time\":{end},\"id\":9")),
            line("label", "\"name\":1,\"address\":64"),
        ];
        encode(here, file, &lines.concat());
    }
    metatfc(here, &["sort", "--by", "time", "--source", "from", "a.mtf", "b.mtf", "-o", "both.mtf"]).exits(0);
    let spans = metatfc(here, &["stat", "--spans", "--format", "json", "both.mtf"]).exits(0).text();
    let spans: Value = serde_json::from_str(&spans).unwrap();
    let kinds: Vec<_> = spans["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| (kind["name"].clone(), kind["total_ns"].clone()))
        .collect();
    assert!(kinds.contains(&(json!("GET"), json!(40))) && kinds.contains(&(json!("PUT"), json!(100))), "{spans}");
    let chrome = metatfc(here, &["dump", "--format", "chrome", "both.mtf"]).exits(0).text();
    assert!(chrome.contains("\"pid\":1") && chrome.contains("\"pid\":2"), "{chrome}");
    let labels =
        metatfc(here, &["dump", "--resolve", "--record", "label", "--format", "jsonl", "both.mtf"]).exits(0).text();
    let labels: Vec<Value> = labels.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(labels.iter().map(|line| line["address"]["label"].clone()).collect::<Vec<_>>(), ["GET", "PUT"]);
}

/// Creates a trace without clock_sync records, whose user metadata contains its start.
fn with_start(here: &Folder, name: &str, start: u64, times: &[u64]) {
    let schema = Schema::parse("events.dtd", EVENTS.as_bytes()).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let json = format!(r#"{{"telemetry":{{"start_wall_ns":{start},"name":"{name}"}}}}"#);
    writer.inner().user_metadata(&json).unwrap();
    for time in times {
        let mut owned = OwnedRecord::default();
        [*time, 1, *time].into_iter().for_each(|number| owned.push_number(number));
        writer.record(1, 3, &owned).unwrap();
    }
    here.write(name, writer.finish().unwrap());
}

fn user_metadata(here: &Folder, name: &str) -> Vec<Value> {
    let mut trace = Trace::open(here.join(name)).unwrap();
    while trace.next_entry().unwrap().is_some() {}
    let all = trace.reader().container().user_metadata();
    all.iter().map(|json| serde_json::from_slice(json).unwrap()).collect()
}

/// The start of a clock can also come from user metadata. The merged trace has the start of the trace that began first.
#[test]
fn user_metadata_says_what_was_merged() {
    let here = &folder();
    with_start(here, "late.mtf", 5000, &[1, 20]);
    with_start(here, "early.mtf", 4990, &[5, 20]);
    metatfc(here, &["sort", "late.mtf", "early.mtf", "-o", "both.mtf"]).exits(0);
    assert_eq!(numbers(&lines(here, "both.mtf"), "time"), [5, 11, 20, 30]);
    let user = user_metadata(here, "both.mtf");
    assert_eq!(user[0], json!({"telemetry": {"start_wall_ns": 4990, "name": "early.mtf"}}));
    let trace = |number: u64, name: &str, start: u64| json!({"number": number, "name": name, "records": 2, "user": {"telemetry": {"start_wall_ns": start, "name": name}}});
    let traces = [trace(1, "late.mtf", 5000), trace(2, "early.mtf", 4990)];
    assert_eq!(user[1..], [json!({"merge": {"traces": traces}})]);
    // A merged trace can be merged again.
    with_start(here, "last.mtf", 5001, &[0]);
    metatfc(here, &["sort", "last.mtf", "both.mtf", "-o", "three.mtf"]).exits(0);
    assert_eq!(numbers(&lines(here, "three.mtf"), "time"), [5, 11, 11, 20, 30]);
    metatfc(here, &["sort", "late.mtf", "-o", "one.mtf"]).exits(0);
    assert_eq!(user_metadata(here, "one.mtf"), user_metadata(here, "late.mtf"));
}

/// Records of an older DTD are converted to a newer one by name, in any order. Records with a different meaning are
/// refused.
#[test]
fn versions_of_a_dtd() {
    let here = &folder();
    let newer = EVENTS
        .replace("number.interpretation = none;", "number.interpretation = none; number.was = \"count\";")
        .replace("    note:", "    stop: (time) { tag.value = 9; }\n    note:");
    let older = EVENTS.replace("number", "count");
    here.write("newer.dtd", &newer);
    here.write("older.dtd", &older);
    let old = [sync(0, 1000), step(10, 1, 0).replace("number", "count")].concat();
    let new = [sync(0, 1000), step(5, 2, 1), "{\"@section\":\"events\",\"@record\":\"stop\",\"time\":20}\n".to_owned()]
        .concat();
    run(here, &["convert", "--dtd", "older.dtd", "-", "old.mtf"], old.as_bytes()).exits(0);
    run(here, &["convert", "--dtd", "newer.dtd", "-", "new.mtf"], new.as_bytes()).exits(0);
    metatfc(here, &["sort", "old.mtf", "new.mtf", "-o", "both.mtf"]).exits(0);
    let both = lines(here, "both.mtf");
    assert_eq!(numbers(&both, "number"), [1, 0]);
    assert_eq!(both.last().unwrap()["@record"], "stop");
    let unit = newer.replace("number.width", "number.unit = \"pages\"; number.width");
    let lacks = newer
        .replace("thread, number)", "thread, number, cpu)")
        .replace("    note:", "cpu.width = 1; cpu.interpretation = none;\n note:");
    for (dtd, lines, why) in [
        (unit.clone(), new.clone(), "different meaning of events.step.number"),
        (lacks, new.replace("\"number\":1", "\"number\":1,\"cpu\":1"), "cpu"),
        (format!("tag.version = \"2.0.0\";{newer}"), new.clone(), ""),
    ] {
        here.write("third.dtd", &dtd);
        run(here, &["convert", "--dtd", "third.dtd", "-", "third.mtf"], lines.as_bytes()).exits(0);
        let old = if dtd.contains("number.unit") {
            unit.replace("pages", "bytes")
        } else {
            format!("tag.version = \"1.0.0\";{newer}")
        };
        here.write("second.dtd", if why == "cpu" { &newer } else { &old });
        run(here, &["convert", "--dtd", "second.dtd", "-", "second.mtf"], new.as_bytes()).exits(0);
        let merged = metatfc(here, &["sort", "second.mtf", "third.mtf", "-o", "no.mtf"]).exits(1);
        merged.says(why).says("metatfc diff --dtds third.mtf second.mtf");
        assert!(!here.join("no.mtf").exists());
    }
}

#[test]
fn what_cannot_be_merged_is_said() {
    let here = &folder();
    encode(here, "a.mtf", &[step(1, 1, 1), step(2, 1, 2)].concat());
    encode(here, "b.mtf", &[sync(0, 1000), step(1, 1, 1)].concat());
    metatfc(here, &["sort", "a.mtf", "b.mtf", "-o", "no.mtf"]).exits(1).says("a.mtf").says("--by FIELD");
    metatfc(here, &["sort", "a.mtf", "b.mtf"]).exits(2).says("--output");
    metatfc(here, &["sort", "-o", "no.mtf"]).exits(2);
    metatfc(here, &["sort", "-", "-", "-o", "no.mtf"]).exits(2).says("only one");
    metatfc(here, &["sort", "--by", "hour", "a.mtf", "b.mtf", "-o", "no.mtf"]).exits(2).says("no field `hour`");
    metatfc(here, &["sort", "a.mtf", "c.mtf", "-o", "no.mtf"]).exits(1).says("c.mtf");
    metatfc(here, &["sort", "b.mtf", "-o", "./b.mtf"]).exits(2).says("is also an input");
    metatfc(here, &["sort", "b.mtf", "-o", "nowhere/b.mtf"]).exits(1).says("nowhere/b.mtf");
    assert!(!here.join("no.mtf").exists());
    // The wall clock was set back.
    encode(here, "back.mtf", &[sync(0, 1000), step(1, 1, 1), sync(5, 500), step(6, 1, 1)].concat());
    let warned = metatfc(here, &["sort", "back.mtf", "b.mtf", "-o", "both.mtf"]).exits(0);
    warned.says("back.mtf: warning: the wall clock was set back: 1 clock_sync record ignored");
    let heap = metatf_test::root().join("dtds/heap.dtd");
    let line =
        NO_STACK.to_owned() + "{\"@section\":\"heap\",\"@record\":\"free\",\"time\":0,\"stack\":0,\"address\":64}\n";
    run(here, &["convert", "--dtd", heap.to_str().unwrap(), "-", "heap.mtf"], line.as_bytes()).exits(0);
    metatfc(here, &["sort", "--by", "time", "heap.mtf", "heap.mtf", "-o", "no.mtf"])
        .exits(1)
        .says("the heap of one program");
    metatfc(here, &["sort", "heap.mtf", "heap.mtf", "-o", "no.mtf"]).exits(1).says("the heap of one program");
}

/// A trace without a table refers to offset 0 of it. After merging, this offset must not refer to an element of another
/// trace.
#[test]
fn an_offset_that_leads_nowhere() {
    let here = &Folder::new();
    let dtd =
        "section s 1 { r: (time, name) { tag.value = 4; time.width = 1; time.interpretation = none; name.width = 1;
            name.interpretation = sectionOffset 2; } }
        section names 2 { text: vfield { vfield.data.format = \"utf8\"; } }";
    here.write("events.dtd", dtd);
    let record =
        |time: u64, name: u64| format!("{{\"@section\":\"s\",\"@record\":\"r\",\"time\":{time},\"name\":{name}}}\n");
    written(here, "a.mtf", dtd, &record(1, 0), 1);
    encode(
        here,
        "b.mtf",
        &["{\"@section\":\"names\",\"@record\":\"text\",\"@shared\":true,\"vfield\":\"x\"}\n".to_owned(), record(2, 0)]
            .concat(),
    );
    metatfc(here, &["sort", "--by", "time", "a.mtf", "a.mtf", "-o", "both.mtf"]).exits(0);
    let wrong = metatfc(here, &["sort", "--by", "time", "a.mtf", "b.mtf", "-o", "no.mtf"]).exits(1);
    wrong.says("a.mtf: a record refers to offset 0 of section names");
}

/// If an input is corrupt, `merge` fails before writing anything. With `--salvage`, it merges the intact parts.
#[test]
fn damaged_traces() {
    let here = &folder();
    let all: String = (0..5000).map(|n| step(n, 1, n)).collect();
    run(here, &["convert", "--chunk", "1K", "--dtd", "events.dtd", "-", "a.mtf"], all.as_bytes()).exits(0);
    encode(here, "b.mtf", &step(2500, 2, 9999));
    let mut bytes = here.read("a.mtf");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    here.write("a.mtf", &bytes);
    let merge = ["sort", "--by", "time", "a.mtf", "b.mtf", "-o", "all.mtf"];
    metatfc(here, &merge).exits(1).says("a.mtf: ").says("--salvage");
    assert!(!here.join("all.mtf").exists());
    let salvaged = metatfc(here, &[&merge[..], &["--salvage"]].concat()).exits(0);
    salvaged.says("a.mtf: salvage: ");
    let found = numbers(&lines(here, "all.mtf"), "number");
    assert!(found.len() > 2000 && found.len() < 5001 && found.contains(&9999), "{}", found.len());
    here.write("torn.mtf", &here.read("b.mtf")[..60]);
    metatfc(here, &["sort", "--by", "time", "b.mtf", "torn.mtf", "-o", "no.mtf"]).exits(1).says("torn.mtf");
    here.write("not.mtf", "something else");
    metatfc(here, &["sort", "--salvage", "--by", "time", "b.mtf", "not.mtf", "-o", "no.mtf"]).exits(1).says("not.mtf");
}

/// Two processes, one forked from the other, emit events in turn. In the merged trace, the events are in real-time
/// order.
#[cfg(target_os = "linux")]
mod processes {
    use super::{lines, metatfc, numbers};
    use metatf_derive::metatf;
    use metatf_test::Folder;
    use std::io::{Read as _, Write as _};
    use std::process::Command;

    #[metatf(dtd = "../telemetry/metatf-telemetry/tests/events.dtd", emitters = "crate::merge::processes::events")]
    mod events {}

    /// The environment variable that selects the emitting program.
    const CHILD: &str = "METATF_TEST_SCENARIO";
    const TURNS: u32 = 300;

    #[test]
    fn child() {
        if std::env::var_os(CHILD).is_none() {
            return;
        }
        let telemetry = events::TELEMETRY.start().unwrap();
        let (mut from_parent, mut to_child) = std::io::pipe().unwrap();
        let (mut from_child, mut to_parent) = std::io::pipe().unwrap();
        let mut byte = [0];
        // SAFETY: the child emits, uses pipes, and exits.
        let process = unsafe { libc::fork() };
        if process == 0 {
            for turn in 0..TURNS {
                from_parent.read_exact(&mut byte).unwrap();
                events::step!(number = 2 * turn + 1);
                to_parent.write_all(&byte).unwrap();
            }
            std::process::exit(0);
        }
        for turn in 0..TURNS {
            events::step!(number = 2 * turn);
            to_child.write_all(&byte).unwrap();
            from_child.read_exact(&mut byte).unwrap();
        }
        let mut status = 0;
        // SAFETY: `status` is valid for the call.
        unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert_eq!(status, 0);
        telemetry.finish().unwrap();
    }

    #[test]
    fn that_take_turns_are_in_order() {
        let here = &Folder::new();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "merge::processes::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, "turns")
            .env("METATF_TELEMETRY_CONTROL", "all")
            .env("METATF_TELEMETRY_FILENAME", here.join("turns.%p.mtf"))
            .env("METATF_TELEMETRY_FOLDER", here.path(""))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let files = std::fs::read_dir(here.path("")).unwrap().map(|entry| entry.unwrap().file_name());
        let traces: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        assert_eq!(traces.len(), 2, "{traces:?}");
        metatfc(here, &["sort", &traces[0], &traces[1], "-o", "all.mtf", "--source", "process"]).exits(0);
        let all = lines(here, "all.mtf");
        assert_eq!(numbers(&all, "number"), (0..2 * u64::from(TURNS)).collect::<Vec<_>>());
        let times = numbers(&all, "time");
        assert!(times.is_sorted(), "{times:?}");
        // Each process has compared its clock with the wall clock.
        assert!(all.iter().filter(|line| !line["wall"].is_null()).count() >= 2);
    }
}
