//! A section of single numbers adapts the width of its chunks to its values. A shared table cannot, because offsets
//! into it are handed out before its chunk is written. Values that were too wide were truncated to their lower bytes,
//! and two numbers with equal lower bytes were interned as one.

use metatf::ErrorKind;
use metatf::container::WriteOptions;
use metatf::dynamic::Writer;
use metatf_tests::{Value, runtime};

#[test]
fn a_value_too_wide_is_refused() {
    let schema = runtime::schema(
        "section x 1 { e: (n) { n.width = 1; n.interpretation = none; } }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let fits = runtime::owned(&[Value::Number(44)]);
    let wide = runtime::owned(&[Value::Number(300)]);
    assert_eq!(writer.element(1, true, &fits), Ok(0));
    let error = writer.element(1, true, &wide).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DoesNotFit { value: 300, width: 1 });
    let interned = writer.intern(1, &wide);
    assert_eq!(interned.unwrap_err().kind, ErrorKind::DoesNotFit { value: 300, width: 1 });
    assert_eq!(writer.element(1, true, &fits), Ok(1));
    writer.finish().unwrap();
}
