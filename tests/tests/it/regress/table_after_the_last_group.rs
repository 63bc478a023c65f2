//! A trace may end in elements of a shared table without a following group; readers return them after the last group's
//! records. Recoding moved them before that group, so that they were returned before its records.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, What, recoding, runtime};
use metatf_tools::recode::Plan;

#[test]
fn it_stays_behind() {
    let schema = runtime::schema(
        "section x 1 { e: (n) { n.width = 1; n.interpretation = delta 0; } }
         section s 2 { t: (tag, at) { tag.value = 4; at.width = 4; at.interpretation = sectionOffset 1; } }",
    );
    let record = |n| Action::Record(2, 4, vec![Value::Number(n)]);
    let element = |n| Action::Element(1, true, vec![Value::Number(n)]);
    let actions = [element(7), record(0), Action::Group, element(9), element(11)];
    let (trace, done) = runtime::write(&schema, &actions, &WriteOptions::default());
    assert_eq!(done.len(), actions.len());
    for plan in [Plan::Naive, Plan::Optimal] {
        let once = recoding::recoded(&schema, &trace, plan, 10).unwrap();
        let (seen, result) = runtime::read(&schema, &once);
        assert_eq!(result, Ok(()));
        let kinds: Vec<What> = seen.iter().map(|s| s.what).filter(|w| *w != What::Metadata).collect();
        assert_eq!(kinds, [What::Shared, What::Record, What::Shared, What::Shared]);
        assert!(recoding::recoded(&schema, &once, plan, 10).unwrap() == once);
    }
}

#[test]
fn a_trace_of_nothing_else_has_no_groups() {
    let schema = runtime::schema("section x 1 { e: (n) { n.width = 1; n.interpretation = none; } }");
    let (trace, _) =
        runtime::write(&schema, &[Action::Element(1, true, vec![Value::Number(7)])], &WriteOptions::default());
    assert!(recoding::recoded(&schema, &trace, Plan::Optimal, 10).unwrap() == trace);
}
