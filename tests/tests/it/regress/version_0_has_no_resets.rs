//! A version 0 file has no way to say that a section's state is reset, or that a group begins. The writer reset its own
//! state all the same when it was asked to, and wrote what followed by widths the reader did not go back to: here the
//! comment, whose length metadata had widened to 2 bytes, was read as one 2 bytes long.

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
