//! A version 0 file cannot express that a section's state is reset or that a group begins. The writer still reset its
//! own state on request, and used widths that the reader did not restore: here, a reader took the comment, whose length
//! metadata had widened to 2 bytes, for one 2 bytes long.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn state_goes_on() {
    let schema =
        runtime::schema("section s 1 { t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }");
    let record = |n| Action::Record(1, 3, vec![Value::Number(n)]);
    for change in [Action::Reset(1), Action::Group] {
        let actions = [record(1000), change, record(2)];
        runtime::comes_back(&schema, &actions, &WriteOptions { version: 0, ..WriteOptions::default() });
    }
}
