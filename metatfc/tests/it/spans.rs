//! `spans`: durations by kind, and records without a counterpart.

use super::common::{metatfc, run};
use metatf_test::{Folder, root};

const DTD: &str = "section s 1 {
    time.width = 4; time.interpretation = none; time.role = \"time\"; time.unit = \"us\";
    thread.width = 1; thread.interpretation = none; thread.role = \"thread\";
    id.width = 2; id.interpretation = none; id.role = \"span\";
    what.width = 1; what.interpretation = none; what.role = \"string_id\";
    load: (tag, time, thread) { tag.value = 4; tag.span = \"begin\"; }
    loaded: (tag, time, thread) { tag.value = 5; tag.span = \"end load\"; }
    step: (tag, time, thread) { tag.value = 6; tag.span = \"begin\"; }
    done: (tag, time, thread) { tag.value = 7; tag.span = \"end\"; }
    request: (tag, time, thread, id, what) { tag.value = 8; tag.span = \"begin\"; }
    answered: (tag, time, id) { tag.value = 9; tag.span = \"end\"; }
    in: (tag, time, thread, id) { tag.value = 10; tag.span = \"enter\"; }
    out: (tag, time, thread, id) { tag.value = 11; tag.span = \"leave\"; }
    name: (tag, what, vfield) { tag.value = 12; vfield.data.format = \"utf8\"; vfield.data.role = \"string\"; }
    tick: (tag, time, thread) { tag.value = 13; }
}";

const LINES: &[(&str, &str)] = &[
    ("name", r#""what":1,"vfield":"GET""#),
    ("load", r#""time":10,"thread":1"#),
    ("step", r#""time":20,"thread":1"#),
    ("tick", r#""time":21,"thread":2"#),
    ("done", r#""time":25,"thread":1"#),
    // Overlapping spans with numbers, on which one thread works.
    ("request", r#""time":30,"thread":2,"id":7,"what":1"#),
    ("request", r#""time":31,"thread":2,"id":8,"what":2"#),
    ("in", r#""time":40,"thread":3,"id":7"#),
    ("in", r#""time":41,"thread":3,"id":7"#),
    ("out", r#""time":42,"thread":3,"id":7"#),
    ("out", r#""time":44,"thread":3,"id":7"#),
    ("in", r#""time":50,"thread":3,"id":8"#),
    ("out", r#""time":51,"thread":3,"id":8"#),
    ("in", r#""time":60,"thread":3,"id":7"#),
    ("out", r#""time":70,"thread":3,"id":7"#),
    ("answered", r#""time":130,"id":7"#),
    ("answered", r#""time":1031,"id":8"#),
    // A step that ends with its enclosing span, an end without a beginning, a reused number, and two open spans.
    ("step", r#""time":1100,"thread":1"#),
    ("loaded", r#""time":2010,"thread":1"#),
    ("done", r#""time":2020,"thread":1"#),
    ("request", r#""time":2030,"thread":2,"id":9,"what":1"#),
    ("request", r#""time":2040,"thread":2,"id":9,"what":1"#),
    ("load", r#""time":2050,"thread":1"#),
];

fn folder() -> Folder {
    let here = Folder::new();
    here.write("s.dtd", DTD);
    let lines: String = LINES
        .iter()
        .map(|(record, fields)| format!("{{\"@section\":\"s\",\"@record\":\"{record}\",{fields}}}\n"))
        .collect();
    run(&here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    here
}

#[test]
fn durations_by_kind() {
    let here = &folder();
    insta::assert_snapshot!("spans-text", metatfc(here, &["stat", "--spans", "s.mtf"]).exits(0).text());
    let json = metatfc(here, &["stat", "--spans", "--format", "json", "s.mtf"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let of = |name: &str| {
        let kinds = json["kinds"].as_array().expect("a list").iter();
        let kind = kinds.into_iter().find(|kind| kind["name"] == name).expect("a kind");
        ["count", "total_ns", "busy_ns", "min_ns", "max_ns"].map(|key| kind[key].clone())
    };
    let numbers = |count: u64, total: u64, busy: Option<u64>, least: u64, most: u64| {
        [Some(count), Some(total), busy, Some(least), Some(most)].map(serde_json::Value::from)
    };
    assert_eq!(of("GET"), numbers(1, 100_000, Some(14_000), 100_000, 100_000));
    assert_eq!(of("request"), numbers(1, 1_000_000, Some(1_000), 1_000_000, 1_000_000));
    assert_eq!(of("load"), numbers(1, 2_000_000, None, 2_000_000, 2_000_000));
    assert_eq!(of("step"), numbers(1, 5_000, None, 5_000, 5_000));
    assert_eq!(["open", "without_end", "without_begin"].map(|key| json[key].as_u64()), [Some(2), Some(2), Some(1)]);
}

#[test]
fn a_trace_for_viewers() {
    let here = &folder();
    let run = metatfc(here, &["dump", "--format", "chrome", "s.mtf"]).exits(0);
    let json: serde_json::Value = serde_json::from_str(&run.text()).expect("JSON");
    let events = json["traceEvents"].as_array().expect("a list");
    let shown: Vec<String> = events
        .iter()
        .map(|event| {
            format!(
                "{} {} {} {} {} {}",
                event["ph"], event["name"], event["tid"], event["ts"], event["dur"], event["id"]
            )
            .replace('"', "")
        })
        .collect();
    insta::assert_snapshot!("spans-chrome", shown.join("\n"));
    run.says("4 spans have no end in the trace and are omitted");
}

#[test]
fn what_has_no_spans() {
    let here = &folder();
    here.write("n.dtd", "section s 1 { n: (tag) { tag.value = 4; } }");
    run(here, &["convert", "--dtd", "n.dtd", "-", "n.mtf"], b"{\"@section\":\"s\",\"@record\":\"n\"}").exits(0);
    metatfc(here, &["stat", "--spans", "n.mtf"]).exits(2).says("n.mtf: its DTD does not define spans");
    metatfc(here, &["dump", "--format", "chrome", "n.mtf"]).exits(0);
    // The records before corruption are counted.
    let mut bytes = here.read("s.mtf");
    let cut = bytes.len() - 60;
    bytes.truncate(cut);
    here.write("cut.mtf", bytes);
    metatfc(here, &["stat", "--spans", "cut.mtf"]).says("cut.mtf: ");
}

/// Creates a trace with spans and events in the format of `metatf-tracing`, in which values are separate records after
/// the record that they belong to.
fn program() -> Folder {
    let here = Folder::new();
    let none = u64::MAX;
    let callsite = |number: u64, is_span: u8, level: u8, name: &str, fields: &str| {
        let target = "shop::cart";
        let lengths = [target.len(), name.len(), "src/cart.rs".len(), fields.len()];
        let [l1, l2, l3, l4] = lengths;
        format!(
            r#""callsite_is","thread":1,"callsite":{number},"is_span":{is_span},"level":{level},"line":36,"l1":{l1},"target":"{target}",
            "l2":{l2},"name":"{name}","l3":{l3},"file":"src/cart.rs","l4":{l4},"fields":"{fields}""#
        )
        .replace('\n', "")
    };
    let text = |thread: u8, field: u8, text: &str, length: usize| {
        format!(r#""text","thread":{thread},"field":{field},"length":{length},"words":"{text}""#)
    };
    let lines = [
        r#""thread_is","thread":1,"length":4,"called":"main""#.to_owned(),
        callsite(10, 1, 3, "request", "path,status"),
        callsite(11, 1, 3, "query", ""),
        callsite(12, 0, 3, "event src/cart.rs:36", "message,bytes,cached"),
        callsite(13, 0, 2, "event src/cart.rs:40", "delta"),
        r#""span","time":1000,"thread":1,"callsite":10,"id":1,"parent":0"#.to_owned(),
        text(1, 0, "/index.html", 11),
        r#""enter","time":2000,"thread":1,"id":1"#.to_owned(),
        r#""span","time":3000,"thread":1,"callsite":11,"id":2,"parent":0"#.to_owned(),
        r#""enter","time":4000,"thread":1,"id":2"#.to_owned(),
        r#""event","time":5000,"thread":1,"callsite":12,"parent":0"#.to_owned(),
        // A string with terminal control characters.
        text(1, 0, "sent \\u001b[31mall\\u009b \\u202e", 19),
        // An event of another thread between an event and its values.
        r#""event","time":5500,"thread":2,"callsite":13,"parent":1"#.to_owned(),
        r#""uint","thread":1,"field":1,"number":4096"#.to_owned(),
        r#""int","thread":2,"field":0,"signed":-3"#.to_owned(),
        r#""flag","thread":1,"field":2,"truth":1"#.to_owned(),
        r#""exit","time":6000,"thread":1,"id":2"#.to_owned(),
        r#""close","time":7000,"thread":1,"id":2"#.to_owned(),
        r#""more","time":7500,"thread":1,"id":1"#.to_owned(),
        r#""uint","thread":1,"field":1,"number":200"#.to_owned(),
        format!(r#""span","time":8000,"thread":1,"callsite":11,"id":3,"parent":{none}"#),
        r#""follows","time":8100,"thread":1,"id":3,"parent":1"#.to_owned(),
        r#""enter","time":9000,"thread":2,"id":3"#.to_owned(),
        r#""exit","time":9500,"thread":2,"id":3"#.to_owned(),
        r#""exit","time":9600,"thread":1,"id":1"#.to_owned(),
        r#""dropped","time":9700,"thread":1,"count":7"#.to_owned(),
        r#""clock_sync","time":9800,"wall":1"#.to_owned(),
        r#""close","time":11000,"thread":1,"id":1"#.to_owned(),
        r#""close","time":12000,"thread":2,"id":3"#.to_owned(),
        r#""event","time":1000000000,"thread":2,"callsite":13,"parent":0"#.to_owned(),
        r#""float","thread":2,"field":0,"real":0.5"#.to_owned(),
    ];
    let lines: String = lines.iter().map(|line| format!("{{\"@section\":\"tracing\",\"@record\":{line}}}\n")).collect();
    let dtd = root().join("telemetry/metatf-tracing/tracing.dtd");
    run(&here, &["convert", "--dtd", dtd.to_str().expect("a path"), "-", "server.mtf"], lines.as_bytes()).exits(0);
    here
}

#[test]
fn events_of_a_program_as_lines() {
    let here = &program();
    let lines = |more: &[&str]| {
        let all = [&["dump", "--format", "lines", "server.mtf"], more].concat();
        metatfc(here, &all).exits(0).text()
    };
    let all = lines(&[]);
    insta::assert_snapshot!("spans-lines", all);
    assert!(!all.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{all:?}");
    // Filters select lines of the unfiltered output.
    let [sent, warning, dropped, late] = all.lines().collect::<Vec<_>>()[..] else { panic!("{all}") };
    for (filter, shown) in [
        (&["--level", "warn"][..], vec![warning, late]),
        (&["--level", "3"], vec![sent, warning, late]),
        (&["--level", "error"], vec![]),
        (&["--from", "5.5us"], vec![warning, dropped, late]),
        (&["--from", "5501ns", "--to", "1"], vec![dropped]),
        (&["--field", "path"], vec![sent, warning]),
        (&["--field", "path=/index.html", "--field", "delta"], vec![warning]),
        (&["--field", "delta=0.5"], vec![late]),
        (&["--field", "path=/other"], vec![]),
    ] {
        assert_eq!(lines(filter).lines().collect::<Vec<_>>(), shown, "{filter:?}");
    }
    for (filter, problem) in [
        (["--level", "loud"], "unknown level; available levels: error, warn, info, debug, trace"),
        (["--from", "1h"], "unknown unit `h`"),
    ] {
        metatfc(here, &[&["stat", "--spans", "server.mtf"][..], &filter].concat()).exits(2).says(problem);
    }
    metatfc(&folder(), &["stat", "--spans", "--level", "1", "s.mtf"])
        .exits(2)
        .says("no field of the DTD has the role `level`");
    // If the DTD defines no events, every record with a time that does not belong to a span is an event.
    let plain = metatfc(&folder(), &["dump", "--format", "lines", "s.mtf"]).exits(0).text();
    assert_eq!(plain, "0.000021000 2 tick:\n");
}

#[test]
fn what_a_viewer_shows_of_a_program() {
    let here = &program();
    let text = metatfc(here, &["dump", "--format", "chrome", "server.mtf"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = json["traceEvents"].as_array().expect("a list");
    let shown: Vec<String> = events.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!("spans-chrome-program", shown.join("\n"));
    // An arrow has two ends, each within a slice of its thread.
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    for end in [of("s"), of("f")].concat() {
        let slices = of("X").into_iter().filter(|slice| slice["tid"] == end["tid"] && slice["pid"] == end["pid"]);
        let around = |slice: &&serde_json::Value| {
            let (from, at) = (number(&slice["ts"]), number(&end["ts"]));
            from <= at && at <= from + number(&slice["dur"])
        };
        assert!(slices.filter(around).count() > 0, "{end}");
    }
    assert_eq!((of("s").len(), of("f").len()), (1, 1));
}

#[test]
fn a_tree_and_times_of_ones_own() {
    let here = &program();
    let tree = metatfc(here, &["stat", "--spans=tree", "server.mtf"]).exits(0).text();
    insta::assert_snapshot!("spans-tree", tree);
    let json = metatfc(here, &["stat", "--spans", "--format", "json", "server.mtf"]).exits(0).text();
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let own = |name: &str| {
        let kinds = json["kinds"].as_array().expect("a list");
        kinds.iter().find(|kind| kind["name"] == name).expect("a kind")["self_ns"].as_u64().expect("a number")
    };
    // A query took 4 of the request's 10 us. The two queries, 4 us each, contain no spans.
    assert_eq!((own("request"), own("query")), (6_000, 8_000));
    assert_eq!(json["tree"][1]["path"], serde_json::json!(["request", "query"]));
    // The time of overlapping spans is counted once. Spans without numbers are nested.
    let here = &folder();
    let tree = metatfc(here, &["stat", "--spans=tree", "s.mtf"]).exits(0).text();
    let line = |name: &str| tree.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{name}: {tree}"));
    assert!(line("load").contains("1.09 ms"), "{tree}");
    assert!(line("  step").contains("5.00 us"), "{tree}");
}

/// Two kinds of spans that are numbered separately from 1, with values in their last records.
const NUMBERED: &str = "section s 1 {
    time.width = 4; time.interpretation = none; time.role = \"time\";
    id.width = 2; id.interpretation = none; id.role = \"span\";
    above.width = 2; above.interpretation = none; above.role = \"parent\";
    status.width = 2; status.interpretation = none;
    request: (time, id) { tag.value = 4; tag.span = \"begin\"; }
    answered: (time, id, status) { tag.value = 5; tag.span = \"end request\"; }
    query: (time, id, above) { tag.value = 6; tag.span = \"begin\"; }
    found: (time, id, status) { tag.value = 7; tag.span = \"end query\"; }
    in: (time, id) { tag.value = 8; tag.span = \"enter\"; }
    tick: (time) { tag.value = 9; }
}";

/// Creates a trace of `NUMBERED` records.
fn numbered(records: &[&str]) -> Folder {
    let here = Folder::new();
    here.write("s.dtd", NUMBERED);
    let lines: String = records.iter().map(|line| format!("{{\"@section\":\"s\",\"@record\":{line}}}\n")).collect();
    run(&here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    here
}

fn json(here: &Folder, format: &str) -> serde_json::Value {
    let command: &[&str] = if format == "chrome" { &["dump"] } else { &["stat", "--spans"] };
    let text = metatfc(here, &[command, &["--format", format, "s.mtf"]].concat()).exits(0).text();
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn kinds_with_ends_of_their_own_have_numbers_of_their_own() {
    let here = &numbered(&[
        r#""request","time":1000,"id":1"#,
        r#""query","time":2000,"id":1,"above":0"#,
        r#""answered","time":5000,"id":1,"status":200"#,
        r#""found","time":9000,"id":1,"status":7"#,
        r#""found","time":9500,"id":1,"status":8"#,
    ]);
    let report = json(here, "json");
    assert_eq!(["open", "without_end", "without_begin"].map(|key| report[key].as_u64()), [Some(0), Some(0), Some(1)]);
    let kinds = report["kinds"].as_array().expect("a list").iter();
    let taken: Vec<_> = kinds.map(|kind| (kind["name"].as_str(), kind["total_ns"].as_u64())).collect();
    assert_eq!(taken, [(Some("query"), Some(7000)), (Some("request"), Some(4000))]);
    // A viewer distinguishes the spans, and the values of their last records are shown.
    let chrome = json(here, "chrome");
    let events = chrome["traceEvents"].as_array().expect("a list").iter();
    let shown: Vec<_> = events.map(|event| format!("{} {} {}", event["ph"], event["scope"], event["args"])).collect();
    assert_eq!(
        shown,
        [
            r#""b" "request" {"status":200}"#,
            r#""e" "request" null"#,
            r#""b" "query" {"status":7}"#,
            r#""e" "query" null"#
        ]
    );
}

#[test]
fn a_number_that_comes_again_is_another_span() {
    // The first request ends before its query ends and before the thread leaves it; then its number is reused.
    let here = &numbered(&[
        r#""request","time":1000,"id":1"#,
        r#""in","time":1000,"id":1"#,
        r#""query","time":2000,"id":5,"above":1"#,
        r#""answered","time":5000,"id":1,"status":200"#,
        r#""request","time":6000,"id":1"#,
        r#""found","time":8000,"id":5,"status":7"#,
        r#""answered","time":10000,"id":1,"status":404"#,
        // A query without an end lasts at most until the next query with its number.
        r#""request","time":20000,"id":2"#,
        r#""query","time":21000,"id":9,"above":2"#,
        r#""query","time":23000,"id":9,"above":0"#,
        r#""answered","time":26000,"id":2,"status":500"#,
        r#""found","time":27000,"id":9,"status":7"#,
    ]);
    let report = json(here, "json");
    assert_eq!(["open", "without_end", "without_begin"].map(|key| report[key].as_u64()), [Some(0), Some(1), Some(0)]);
    let kinds = report["kinds"].as_array().expect("a list");
    let request = kinds.iter().find(|kind| kind["name"] == "request").expect("requests");
    // The requests took 4, 4 and 6 us; queries took 3 us of the first, none of the second, and 2 us of the third.
    assert_eq!([&request["total_ns"], &request["self_ns"]].map(serde_json::Value::as_u64), [Some(14_000), Some(9_000)]);
    metatfc(here, &["dump", "--format", "chrome", "s.mtf"])
        .exits(0)
        .says("1 span has no end in the trace and is omitted");
}
