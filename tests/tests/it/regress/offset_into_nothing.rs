//! Reading stops at the first error (spec 7). After an offset that could not be resolved, the next call continued with
//! the next record.

use metatf::ErrorKind;
use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn it_ends_the_trace() {
    let schema = runtime::schema(
        "section x 1 { e: vfield; }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let record = |n| Action::Record(2, 4, vec![Value::Number(n)]);
    let (trace, _) = runtime::write(&schema, &[record(7), record(8)], &WriteOptions::default());
    let mut trace = runtime::open(&schema, &trace).unwrap();
    let options = JsonOptions { resolve: true, ..JsonOptions::default() };
    let error = trace.next_json(&mut Vec::new(), options).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoOffset { section: 1, offset: 7 });
    assert_eq!(trace.next_json(&mut Vec::new(), options), Ok(false));
}
