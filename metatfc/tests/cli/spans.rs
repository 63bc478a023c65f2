//! `spans`: durations by kind, and what does not pair.

use super::common::{metatfc, run};
use metatf_test::Folder;

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
    // Overlapping, each by its number; one thread works on both.
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
    // A step that ends with what is around it, an end of nothing, a number that comes again, and two that stay open.
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
    run(&here, &["encode", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    here
}

#[test]
fn durations_by_kind() {
    let here = &folder();
    insta::assert_snapshot!("spans-text", metatfc(here, &["spans", "s.mtf"]).exits(0).text());
    let json = metatfc(here, &["spans", "--format", "json", "s.mtf"]).exits(0).text();
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
    let run = metatfc(here, &["spans", "--format", "chrome", "s.mtf"]).exits(0);
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
    run.says("2 spans have not ended, and are left out");
}

#[test]
fn what_has_no_spans() {
    let here = &folder();
    here.write("n.dtd", "section s 1 { n: (tag) { tag.value = 4; } }");
    run(here, &["encode", "--dtd", "n.dtd", "-", "n.mtf"], b"{\"@section\":\"s\",\"@record\":\"n\"}").exits(0);
    metatfc(here, &["spans", "n.mtf"]).exits(2).says("n.mtf: no record of its DTD begins a span");
    metatfc(here, &["spans", "--format", "chrome", "n.mtf"]).exits(0);
    // What came before damage is counted.
    let mut bytes = here.read("s.mtf");
    let cut = bytes.len() - 60;
    bytes.truncate(cut);
    here.write("cut.mtf", bytes);
    metatfc(here, &["spans", "cut.mtf"]).says("cut.mtf: ");
}
