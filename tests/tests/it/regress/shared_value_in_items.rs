//! In the items of a repetition, a leaf may occur before one that the record lists first and share its previous value,
//! because the repetition of the first one may be empty. The planner set `delta` for the leaf listed first as if it saw
//! the new value, and the writer had to widen it against the plan.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, recoding, runtime};

#[test]
fn delta_is_not_set_for_it() {
    let schema = runtime::schema(
        "x.previous = shared;
         section s 1 { t: (tag, n*(m*x, x)) {
            tag.value = 4;
            n.width = 1; n.interpretation = none;
            m.width = 1; m.interpretation = none;
            x.width = 1; x.interpretation = none;
        } }",
    );
    // Four items: 0; 2^32 - 2; 0, 2^64 - 2; 0, 2^64 - 2, 0.
    let values = [4, 0, 0, 0, 0xffff_fffe, 1, 0, u64::MAX - 1, 2, 0, u64::MAX - 1, 0];
    let actions = [Action::Record(1, 3, values.map(Value::Number).to_vec())];
    let (trace, done) = runtime::write(&schema, &actions, &WriteOptions::default());
    assert_eq!(done.len(), actions.len());
    recoding::check(&schema, &trace, 1, "");
    recoding::optimal_is_smallest(&schema, &trace, 1, "");
}
