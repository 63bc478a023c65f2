//! In version 0 a stream section of single numbers always has the width in the DTD. A stride leaf added values that
//! need more bytes, and only `finish` noticed, which left no trace at all. Now the writer notices immediately, and the
//! leaf stores its own values from there on.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn a_value_too_wide_stays_in_its_record() {
    for interpretation in ["none", "baseOffset 100", "delta 7"] {
        let schema = runtime::schema(&format!(
            "section x 1 {{ e: (n) {{ n.width = 1; n.interpretation = {interpretation}; }} }}
             section s 2 {{
                 t: (tag, a) {{ tag.value = 4; a.interpretation = sectionStride 1 2; }}
                 u: (tag, a) {{ tag.value = 5; a.interpretation = sectionStride 1 1; }}
             }}"
        ));
        let record = |record, n| Action::Record(2, record, vec![Value::Number(n)]);
        let actions =
            [record(4, 40), record(5, 90), record(5, 100), record(4, 70_000), record(5, 130), record(5, 1 << 40)];
        runtime::comes_back(&schema, &actions, &WriteOptions { version: 0, ..WriteOptions::default() });
    }
}
