//! Recoding twice yielded different bytes if models of two sections store their values in one stream section: the
//! second model finds the elements of the first, so its leaves must be stored unpredicted. The writer emitted that
//! metadata in leaf order with the width of the current value; the planner, which read it from the copy, used the
//! opposite order and the maximum width.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, recoding, runtime};

#[test]
fn recoding_twice_gives_the_same_bytes() {
    let schema = runtime::schema(
        "section m 1 { e: (x) { x.width = 8; x.interpretation = none; } }
         section s 2 { t: (tag, p) { tag.value = 4; p.width = 1; p.interpretation = predicted 1 lastValue 1 1; } }
         section r 3 { u: (tag, p, q) {
            tag.value = 5;
            p.width = 1; p.interpretation = predicted 1 lastValue 1 1;
            q.width = 1; q.interpretation = predicted 1 (lastValue 2, stride) 1;
         } }",
    );
    let record = |section, record, values: &[u64]| {
        Action::Record(section, record, values.iter().map(|&value| Value::Number(value)).collect())
    };
    let record_s = |p| record(2, 4, &[p]);
    let record_r = |p, q| record(3, 5, &[p, q]);
    // With continuing models, 5 and 0 are hits. In blocks, whose models start empty, the 5 of the fifth record meets
    // the 6 of the fourth.
    let actions = [record_s(5), record_r(5, 0), record_r(5, 0), record_s(6), record_r(5, 6), record_r(300, 6)];
    for version in [0, 1] {
        let options = WriteOptions { version, ..WriteOptions::default() };
        let (trace, _) = runtime::write(&schema, &actions, &options);
        for block in 1..=actions.len() {
            recoding::check(&schema, &trace, block, &format!("version {version}"));
        }
    }
}
