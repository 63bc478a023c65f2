//! Misses of a heap model, printed as elements, were written as explicit elements, so a rewritten group lost the
//! objects carried into it.

use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn everything_printed_is_written_again() {
    let schema = runtime::schema(
        "section x 2 { e: (n) { n.width = 1; n.interpretation = none; } }
         section s 3 { t: (tag, size, address) {
            tag.value = 5; size.width = 1; size.interpretation = none;
            address.width = 1; address.interpretation = predicted 1 heap allocated size by size 2;
         } }",
    );
    let everything = JsonOptions { all: true, resolve: false, resets: true, names: false };
    let record = Action::Record(2, 4, [0, 3].map(Value::Number).into());
    let options = WriteOptions { group_size: 1, ..WriteOptions::default() };
    let (trace, _) = runtime::write(&schema, &[record.clone(), record], &options);
    let lines = runtime::json(&schema, &trace, everything).unwrap();
    let (first, second) = lines.split_once("{\"@group\":1}").expect("a group for each record");
    let elements = |lines: &str| lines.matches("\"@record\":\"e\"").count();
    assert!(elements(first) < elements(second), "an object is carried into the second group:\n{lines}");
    // The lines mark where groups begin.
    let options = WriteOptions { group_size: usize::MAX, ..options };
    let again = runtime::from_json(&schema, &lines, &options).unwrap();
    assert_eq!(runtime::json(&schema, &again, everything).unwrap(), lines);
}
