//! A reference without an element is not an error of the record (spec 4). Reading ended at such a record.

use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn records_after_it_are_read() {
    let schema = runtime::schema(
        "section x 1 { e: vfield; }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let element = Action::Element(1, true, vec![Value::Number(2), Value::Bytes(vec![0, 1])]);
    let record = |n| Action::Record(2, 4, vec![Value::Number(n)]);
    // Offset 1 is in the middle of the element, where another element could begin.
    let (trace, _) = runtime::write(&schema, &[element, record(7), record(1), record(0)], &WriteOptions::default());
    let options = JsonOptions { resolve: true, ..JsonOptions::default() };
    let lines = runtime::json(&schema, &trace, options).unwrap();
    let line = |offset, element| {
        format!("{{\"@section\":\"s\",\"@record\":\"t\",\"at\":{{\"offset\":{offset},\"element\":{element}}}}}\n")
    };
    assert_eq!(lines, line(7, "null") + &line(1, "null") + &line(0, r#"{"vfield":"0001"}"#));
}
