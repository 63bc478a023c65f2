//! In complete output, the elements that a shared table gains with a group precede the line that starts the group (spec
//! 8). Rewriting these lines moved the elements to the previous group, so that they were printed before its records.

use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn it_stays_with_its_group() {
    let schema = runtime::schema(
        "section x 1 { e: (n) { n.width = 1; n.interpretation = delta 0; } }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let record = |n| Action::Record(2, 4, vec![Value::Number(n)]);
    let element = |n| Action::Element(1, true, vec![Value::Number(n)]);
    let actions = [element(7), record(0), Action::Group, element(9), element(11), record(1), record(2)];
    let (trace, done) = runtime::write(&schema, &actions, &WriteOptions::default());
    assert_eq!(done.len(), actions.len());
    let all = JsonOptions { all: true, ..JsonOptions::default() };
    let lines = runtime::json(&schema, &trace, all).unwrap();
    let again = runtime::from_json(&schema, &lines, &WriteOptions::default()).unwrap();
    assert_eq!(runtime::json(&schema, &again, all).unwrap(), lines);
    assert_eq!(again, trace);
}
