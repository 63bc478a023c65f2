//! Alternative formats of a line that can be read (spec 8, below the table).
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::container::{ErrorKind, Order, WriteOptions};
use metatf::dynamic::{JsonOptions, OwnedRecord, Strides, Writer};
use metatf_tests::runtime;

const DTD: &str = "section s 1 { r: (tag, x, magic, n*vfield) { tag.value = 4; x.width = 8; x.interpretation = none; x.format = \"f64\";
    magic.width = 1; magic.interpretation = none; magic.value = 7;
    n.width = 1; n.interpretation = none; vfield.data.format = \"utf8\"; } }";

/// Returns a line after a round trip, or the reason why it is invalid.
fn again(line: &str) -> Result<String, String> {
    let schema = runtime::schema(DTD);
    let trace = runtime::from_json(&schema, line, &WriteOptions::default())?;
    Ok(runtime::json(&schema, &trace, JsonOptions::default()).unwrap().trim_end().to_owned())
}

#[test]
fn a_line_may_have_other_forms() {
    let printed = r#"{"@section":"s","@record":"r","x":1.0,"n":2,"vfield":["a","\n"]}"#;
    for line in [
        printed,
        r#" { "vfield" : ["\u0061", "\u000a"], "x": 1, "@record": "r", "@section": "s" } "#,
        r#"{"@section":"s","@record":"r","@offset":77,"@mine":[1],"x":5,"x":1e0,"magic":7,"vfield":["a","\n"]}"#,
        r#"{"@section":"s","@record":"r","x":{"hex":"3ff0000000000000"},"n":2,"vfield":["a","\n"]}"#,
    ] {
        assert_eq!(again(line).as_deref(), Ok(printed), "{line}");
    }
    let numbers = ["-0.0", "1e+21", "5e-324", "0.1"];
    for number in numbers {
        let line = format!(r#"{{"@section":"s","@record":"r","x":{number},"n":0,"vfield":[]}}"#);
        assert_eq!(again(&line), Ok(line));
    }
}

#[test]
fn and_no_others() {
    for line in [
        r#"{"@section":"s","@record":"r","x":1.0,"n":1,"vfield":["a","\n"]}"#,
        r#"{"@section":"s","@record":"r","x":1.0,"n":2.0,"vfield":["a","\n"]}"#,
        r#"{"@section":"s","@record":"r","x":1.0,"vfield":["a"],"more":1}"#,
        r#"{"@section":"s","@record":"r","x":1.0,"magic":8,"vfield":[]}"#,
        r#"{"@section":"s","@record":"r","x":1.0}"#,
        r#"{"@section":"s","@record":"r","x":{"hex":"+ff0000000000000"},"vfield":[]}"#,
    ] {
        assert!(again(line).is_err(), "{line}");
    }
}

/// `seq` counts in both records and in elements of arrays; `zone` is always 60.
const COUNTED: &str = "seq.interpretation = stride 9 2; zone.interpretation = default 60; x.width = 1; x.interpretation = none;
    section s 1 { a: (tag, seq, zone, x) { tag.value = 4; } b: (tag, x, pair, n*(seq, x)) { tag.value = 5; n.width = 1; n.interpretation = none; }
        pair: (x, seq) {} c: (tag, own) { tag.value = 6; own.interpretation = stride 0 -1; } }
    section t 2 { element: (x, seq) {} }";

fn counted(lines: &str, options: &WriteOptions) -> Result<String, String> {
    let schema = runtime::schema(COUNTED);
    let trace = runtime::from_json(&schema, lines, options)?;
    let all = JsonOptions { all: true, ..JsonOptions::default() };
    assert!(!runtime::json(&schema, &trace, all).unwrap().contains("\"metadata\"") || options.group_size < usize::MAX);
    Ok(runtime::json(&schema, &trace, JsonOptions::default()).unwrap())
}

#[test]
fn values_that_are_not_stored_can_be_omitted() {
    let lines = r#"{"@section":"s","@record":"a","x":1}
{"@section":"s","@record":"c"}
{"@section":"s","@record":"b","x":2,"pair":{"x":3},"n_items":[{"x":4},{"x":5}]}
{"@section":"s","@record":"a","seq":19,"x":6}
{"@section":"s","@record":"a","zone":60,"x":7}
{"@section":"s","@record":"c"}
"#;
    let printed = r#"{"@section":"s","@record":"a","seq":11,"zone":60,"x":1}
{"@section":"s","@record":"c","own":18446744073709551615}
{"@section":"s","@record":"b","x":2,"pair":{"x":3,"seq":13},"n":2,"n_items":[{"seq":15,"x":4},{"seq":17,"x":5}]}
{"@section":"s","@record":"a","seq":19,"zone":60,"x":6}
{"@section":"s","@record":"a","seq":21,"zone":60,"x":7}
{"@section":"s","@record":"c","own":18446744073709551614}
"#;
    assert_eq!(
        counted(lines, &WriteOptions { group_size: usize::MAX, ..WriteOptions::default() }).as_deref(),
        Ok(printed)
    );
    // The values continue over groups, at the beginning of which the state of the trace is reset.
    let groups = WriteOptions { group_size: 1, chunk_size: 1, ..WriteOptions::default() };
    assert_eq!(counted(lines, &groups).as_deref(), Ok(printed));
    // They continue from a value that the line states, and a line of its own has no previous value.
    let lines = r#"{"@section":"s","@record":"a","seq":100,"x":1}
{"@section":"s","@record":"a","x":1}
"#;
    let options = WriteOptions { group_size: 1, ..WriteOptions::default() };
    assert!(counted(lines, &options).unwrap().contains("\"seq\":102"));
    let schema = runtime::schema(COUNTED);
    let mut owned = OwnedRecord::default();
    let error = schema.read_json(br#"{"@section":"s","@record":"a","x":1}"#, &mut owned).unwrap_err();
    assert_eq!(error.0, "`seq` is missing");
    // A line with an error changes nothing.
    let mut strides = Strides::new(&schema);
    let mut next = |line: &str| {
        let read = schema.read_json_next(Order::Little, line.as_bytes(), &mut owned, &mut strides);
        read.map(|_| format!("{:?}", owned.get(0)))
    };
    assert!(next(r#"{"@section":"s","@record":"a","x":1000000000000000000000}"#).is_err());
    assert_eq!(next(r#"{"@section":"s","@record":"a","x":1}"#), Ok("Some(Number(11))".to_owned()));
}

#[test]
fn a_strict_writer_names_the_value_that_is_implied() {
    let schema = runtime::schema(COUNTED);
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    writer.inner().set_strict(true);
    let mut owned = OwnedRecord::default();
    let mut write = |line: &str| {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned)
    };
    for (line, expected) in [
        (r#"{"@section":"s","@record":"a","seq":11,"x":1}"#, None),
        (r#"{"@section":"s","@record":"a","seq":12,"x":1}"#, Some((12, 13, 1))),
        (r#"{"@section":"s","@record":"a","seq":13,"zone":61,"x":1}"#, Some((61, 60, 2))),
        (
            r#"{"@section":"s","@record":"b","x":2,"pair":{"x":3,"seq":13},"n_items":[{"seq":15,"x":4},{"seq":5,"x":5}]}"#,
            Some((5, 17, 5)),
        ),
        (r#"{"@section":"s","@record":"a","seq":13,"x":1}"#, None),
        (r#"{"@section":"t","@record":"element","x":1,"seq":1}"#, Some((1, 11, 1))),
    ] {
        let written = write(line);
        let found = written.as_ref().err().map(|error| (error.kind, error.place.leaf));
        let wanted = expected.map(|(found, expected, leaf)| (ErrorKind::NotImplied { found, expected }, Some(leaf)));
        assert_eq!(found, wanted, "{line}");
        if let Err(error) = written {
            let text = metatf::explain(&schema.format, &error).to_string();
            let (found, expected, _) = expected.unwrap();
            assert!(
                text.contains(&format!("the value is {found}, but the field stores nothing and must be {expected}")),
                "{text}"
            );
        }
    }
}
