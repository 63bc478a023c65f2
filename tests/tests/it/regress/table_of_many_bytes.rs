//! A table that grew by more than 64 MiB within a group did not fit into one chunk, which was an error at the end of
//! the group. It ended a recording with many different stacks.

use metatf::container::{Codec, WriteOptions};
use metatf::dynamic::Writer;
use metatf_tests::{Value, runtime};

#[test]
fn it_has_several_chunks() {
    let schema = runtime::schema(
        "section x 1 { e: (n, d) { n.width = 4; n.interpretation = none; d.width = n.value; d.interpretation = none; } }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let options = WriteOptions { codec: Codec::Stored, group_size: usize::MAX, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
    let length = 1_u32 << 20;
    let element = |n: u8| [Value::Number(length.into()), Value::Bytes(vec![n; length as usize])];
    let mut last = 0;
    for n in 0..70 {
        last = writer.element(1, true, &runtime::owned(&element(n))).unwrap();
        assert_eq!(last, u64::from(n) * u64::from(length + 4));
    }
    let record = (0..).zip(schema.format.records.iter()).find(|(_, r)| r.name == "t").map_or(0, |(index, _)| index);
    writer.record(2, record, &runtime::owned(&[Value::Number(last)])).unwrap();
    let trace = writer.finish().unwrap();
    let mut reader = runtime::open(&schema, &trace).unwrap();
    assert!(runtime::next(&mut reader).unwrap().is_some());
    assert_eq!(runtime::element_at(&mut reader, 1, last).unwrap(), element(69));
}
