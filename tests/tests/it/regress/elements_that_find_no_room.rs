//! Recoding twice gave other bytes, where models of two sections leave their values in one stream section: the second
//! finds the first one's there, and its leaves have to be stored as they are. The writer said so in the order of the leaves,
//! each as wide as the value at hand; the planner, which met it in the copy as what the trace says, in the opposite order and as
//! wide as the widest.

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
    // With models that go on, 5 and 0 are hits. In blocks, which begin with empty ones, the 5 of the fifth record finds the 6 of the
    // fourth.
    let actions = [record_s(5), record_r(5, 0), record_r(5, 0), record_s(6), record_r(5, 6), record_r(300, 6)];
    for version in [0, 1] {
        let options = WriteOptions { version, ..WriteOptions::default() };
        let (trace, _) = runtime::write(&schema, &actions, &options);
        for block in 1..=actions.len() {
            recoding::check(&schema, &trace, block, &format!("version {version}"));
        }
    }
}
