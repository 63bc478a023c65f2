//! Alternative formats of a line that can be read (spec 8, below the table).
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
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
