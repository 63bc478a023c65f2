//! A number printed with `format = "f64"` was off by one unit in the last place when read back, because the JSON reader
//! used a floating-point shortcut that is not always exact.

use metatf::dynamic::OwnedRecord;
use metatf_tests::{Value, runtime};

#[test]
fn every_bit_comes_back() {
    let schema = runtime::schema(
        "section s 1 { t: (tag, n) { tag.value = 4; n.width = 8; n.interpretation = none; n.format = \"f64\"; } }",
    );
    let line = br#"{"@section":"s","@record":"t","n":-8.672128424441883e+64}"#;
    let mut owned = OwnedRecord::default();
    schema.read_json(line, &mut owned).unwrap();
    assert_eq!(owned, runtime::owned(&[Value::Number(14_801_741_914_732_634_784)]));
}
