//! A trace could not be recoded if its metadata named a catch-all record by a tag other than the lowest unused one. The
//! copy missed that a leaf began to stride, stored its values unchanged, and treated the stream section's elements as
//! values of other leaves.

use metatf::container::WriteOptions;
use metatf::reader::Metadata;
use metatf_tests::random::Action;
use metatf_tests::{Value, recoding, runtime};

#[test]
fn a_catch_all_record_has_many_tags() {
    let schema = runtime::schema(
        "section numbers 1 { e: (n) { n.interpretation = none; n.width = 1; } }
         section s 3 {
            a: (b) { tag.value = 4; b.interpretation = sectionStride 1 1; }
            other: (n) { tag.value = other; n.width = 1; n.interpretation = none; }
         }",
    );
    let record =
        |record, values: &[u64]| Action::Record(2, record, values.iter().map(|&value| Value::Number(value)).collect());
    for tag in [3, 5, 200] {
        let strides = Metadata { record: tag, field: 1, property: 0x17, values: [1, 1], count: 2 };
        let actions = [record(4, &[0]), Action::Metadata(2, strides), record(5, &[0, 1]), record(4, &[0])];
        for version in [0, 1] {
            let options = WriteOptions { version, ..WriteOptions::default() };
            let (trace, _) = runtime::write(&schema, &actions, &options);
            for block in 1..=actions.len() {
                recoding::check(&schema, &trace, block, &format!("tag {tag}, version {version}"));
            }
        }
    }
}
