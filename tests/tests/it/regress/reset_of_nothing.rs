//! A stream section that was reset twice before its first element got an empty chunk, followed by a chunk that resets
//! its state. After printing and rewriting, the reset was gone.

use metatf::container::{Reader, WriteOptions};
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn it_makes_no_chunk() {
    let schema = runtime::schema(
        "section x 1 { e: (a, b) { a.width = 1; a.interpretation = none; b.width = 1; b.interpretation = none; } }
         section s 2 { t: (tag) { tag.value = 4; } }",
    );
    let element = Action::Element(1, false, vec![Value::Number(1), Value::Number(2)]);
    let actions = [Action::Reset(1), Action::Reset(1), element];
    let (trace, _) = runtime::write(&schema, &actions, &WriteOptions::default());
    // The DTD and the element.
    assert_eq!(Reader::from_slice(&trace).unwrap().chunks().unwrap().len(), 2);
}
