//! Records whose end depends on their content (spec 3.2, 3.3): the writer accepts only what a reader finds, and such a
//! record ends its chunk.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::ErrorKind;
use metatf::container::WriteOptions;
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Writer};
use metatf_tests::runtime;
use std::time::{Duration, Instant};

const DTD: &str = "section s 1 {
    n.width = 1; n.interpretation = none;
    x.width = 1; x.interpretation = delta 0;
    until: (n, (until x.value == 0)*x) { tag.value = 4; }
    open: (x, data, n) { tag.value = 5; data.width = rest; data.interpretation = none; }
    items: ((rest)*(n, vfield), x) { tag.value = 6; }
}
section t 2 { element: (n, data) { n.width = 1; n.interpretation = none; data.width = rest; data.interpretation = none; } }";

/// Writes these lines and returns the trace, or the kind of the first error.
fn written(schema: &Schema, lines: &[&str], version: u8) -> Result<Vec<u8>, ErrorKind> {
    let options = WriteOptions { version, ..WriteOptions::default() };
    let mut owned = OwnedRecord::default();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), schema, &options).unwrap();
    for line in lines {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        if let Err(error) = writer.write(&line, &owned) {
            writer.abandon();
            return Err(error.kind);
        }
    }
    Ok(writer.finish().unwrap().into_inner())
}

fn record(name: &str, fields: &str) -> String {
    format!(r#"{{"@section":"s","@record":"{name}",{fields}}}"#)
}

#[test]
fn items_end_where_a_reader_ends_them() {
    let schema = runtime::schema(DTD);
    let write = |items: &str| written(&schema, &[&record("until", &format!(r#""n":1,"x":[{items}]"#))], 1);
    assert!(write("7,300,0").is_ok());
    assert_eq!(write("7,0,5,0"), Err(ErrorKind::NotCount { found: 4, expected: 2 }));
    assert_eq!(write("7,5"), Err(ErrorKind::NoLastItem));
    assert_eq!(write(""), Err(ErrorKind::NoLastItem));
}

#[test]
fn a_record_up_to_the_end_ends_its_chunk() {
    let schema = runtime::schema(DTD);
    let lines = [
        record("until", r#""n":1,"x":[9,0]"#),
        record("open", r#""x":5,"data":"6162","n":1"#),
        record("open", r#""x":7000,"data":"","n":2"#),
        record("items", r#""items":[{"n":3,"vfield":"61"},{"n":4,"vfield":""}],"x":1"#),
        record("items", r#""items":[],"x":2"#),
        record("until", r#""n":1,"x":[3,0]"#),
        r#"{"@section":"t","@record":"element","n":1,"data":"61"}"#.to_owned(),
        r#"{"@section":"t","@record":"element","n":2,"data":""}"#.to_owned(),
    ];
    let given: Vec<&str> = lines.iter().map(String::as_str).collect();
    let trace = written(&schema, &given, 1).unwrap();
    let json = runtime::json(&schema, &trace, JsonOptions { all: true, ..JsonOptions::default() }).unwrap();
    let elements = |json: &str| json.lines().filter(|line| line.contains("\"element\"")).count();
    assert_eq!(elements(&json), 2);
    let json = runtime::json(&schema, &trace, JsonOptions::default()).unwrap();
    assert_eq!(json.lines().collect::<Vec<_>>(), given[..6]);
    // A section of version 0 has no chunks.
    assert!(written(&schema, &given[..2], 0).is_ok());
    assert!(matches!(written(&schema, &given[..3], 0), Err(ErrorKind::Usage(_))));
    assert!(matches!(written(&schema, &given[6..], 0), Err(ErrorKind::Usage(_))));
}

/// Counting the items of repetitions within repetitions takes linear time.
#[test]
fn nested_repetitions_are_counted_once() {
    let depth = 12;
    let open: String = (0..depth).map(|level| format!("(until x{level}.value == 0)*(x{level}, ")).collect();
    let list = format!("(n, {open}n{})", ")".repeat(depth));
    let widths: String =
        (0..depth).map(|level| format!("x{level}.width = 1; x{level}.interpretation = none;")).collect();
    let schema = runtime::schema(&format!(
        "section s 1 {{ n.width = 1; n.interpretation = none; {widths} r: {list} {{ tag.value = 4; }} }}"
    ));
    let mut item = r#"{"n":1}"#.to_owned();
    for level in (0..depth).rev() {
        let fields = item.trim_start_matches('{').trim_end_matches('}');
        let several =
            if level == depth - 1 { format!(r#"{{"x{level}":1,{fields}}},"#).repeat(20_000) } else { String::new() };
        item = format!(r#"{{"items":[{several}{{"x{level}":0,{fields}}}]}}"#);
    }
    let line = record("r", &format!(r#""n":1,{}"#, item.trim_start_matches('{').trim_end_matches('}')));
    let start = Instant::now();
    let trace = written(&schema, &[&line], 1).unwrap();
    assert_eq!(runtime::json(&schema, &trace, JsonOptions::default()).unwrap().trim_end(), line);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}
