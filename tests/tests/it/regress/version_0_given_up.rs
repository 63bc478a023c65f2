//! A version 0 trace of one section is written into memory in place, after space for header and table. When the trace
//! was abandoned, that space, the first `section` record and the content stayed after the previous content of the
//! memory.

use metatf::container::WriteOptions;
use metatf::dynamic::Writer;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn nothing_stays() {
    let schema =
        runtime::schema("section s 1 { t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }");
    let mut memory = b"before".to_vec();
    let options = WriteOptions { version: 0, ..WriteOptions::default() };
    let mut writer = Writer::new(&mut memory, &schema, &options).unwrap();
    runtime::perform(&mut writer, &Action::Record(1, 3, vec![Value::Number(1000)])).unwrap();
    writer.abandon();
    assert_eq!(memory, b"before");
}
