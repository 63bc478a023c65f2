//! If a record has several values of a leaf, some just above its base and some just below 0, the values in between may
//! be far from the base. The planner considered only the minimum and the maximum, and the writer had to widen the leaf
//! against the plan.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, recoding, runtime};

#[test]
fn all_of_them_are_planned_for() {
    let schema = runtime::schema(
        "section s 1 { t: (tag, n*x) {
            tag.value = 4;
            n.width = 1; n.interpretation = none;
            x.width = 1; x.interpretation = baseOffset 1;
        } }",
    );
    let record = |values: &[u64]| {
        let values = [&[values.len() as u64], values].concat();
        Action::Record(1, 3, values.into_iter().map(Value::Number).collect())
    };
    let actions = [record(&[0, 1 << 62, u64::MAX - 1]), record(&[129]), record(&[2, 3])];
    let (trace, done) = runtime::write(&schema, &actions, &WriteOptions::default());
    assert_eq!(done.len(), actions.len());
    for block in [1, 2, 3] {
        recoding::check(&schema, &trace, block, "");
        recoding::optimal_is_smallest(&schema, &trace, block, "");
    }
}
