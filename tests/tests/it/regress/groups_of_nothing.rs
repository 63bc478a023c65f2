//! A group started twice in a row was started only once, but the elements that shared tables had gained so far got
//! separate chunks. After printing and rewriting, elements of several tables had a different order.

use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn tables_wait_for_the_group_that_needs_them() {
    let schema = runtime::schema(
        "section x 1 { e: vfield; } section y 2 { f: vfield; }
         section s 3 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let element = |section, text: &str| {
        let values = vec![Value::Number(text.len() as u64), Value::Bytes(text.into())];
        Action::Element(section, true, values)
    };
    let record = Action::Record(3, 5, vec![Value::Number(0)]);
    let actions = [element(2, "late"), Action::Group, element(1, "early"), element(2, "last"), record];
    let (trace, _) = runtime::write(&schema, &actions, &WriteOptions::default());
    let all = JsonOptions { all: true, ..JsonOptions::default() };
    let lines = runtime::json(&schema, &trace, all).unwrap();
    let again = runtime::from_json(&schema, &lines, &WriteOptions::default()).unwrap();
    assert_eq!(runtime::json(&schema, &again, all).unwrap(), lines);
}
