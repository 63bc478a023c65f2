//! The runtime read a chunk of records with the flag of a shared table, although a shared table is a stream section
//! (spec 5.2).

use metatf::ErrorKind;
use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, oracle, runtime, targets};

#[test]
fn records_are_no_shared_table() {
    let schema = runtime::schema(
        "section s 1 { t: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }
         section u 3 { v: (tag, n) { tag.value = 5; n.width = 1; n.interpretation = none; } }",
    );
    let record = |section, record| Action::Record(section, record, vec![Value::Number(7)]);
    let (mut trace, _) = runtime::write(&schema, &[record(1, 3), record(2, 4)], &WriteOptions::default());
    let head = trace.windows(6).position(|head| head == b"MTFC\x03\0").unwrap();
    assert_eq!(trace[head + 8], 1);
    trace[head + 8] = 5;
    let trace = targets::mend(&trace);
    assert!(oracle::read(&schema.dtd, &trace).1.is_err());
    let error = runtime::read(&schema, &trace).1.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid { what: "the chunk's flags", .. }), "{error}");
    assert_eq!(error.place.offset, head as u64 + 8);
}
