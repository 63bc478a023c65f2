//! The tables of a section's models have at most 2^22 numbers, so those of many models have few lines. The limit used
//! to depend on which models had been queried, and included a model that a writer had queried but readers never saw.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn tables_of_few_lines() {
    let leaves = vec!["a"; 240].join(", ");
    let record = |tag: usize| {
        format!(
            "t{tag}: (tag, k, {leaves}) {{ tag.value = {tag}; a.interpretation =
             predicted 1 (lastValue 16 by k, lastValue 16 by k, lastValue 16 by k, lastValue 14 by k, stride by k) 1; }}\n"
        )
    };
    let records: String = (4..10).map(record).collect();
    let schema = runtime::schema(&format!(
        "section m 1 {{ e: (x) {{ x.width = 8; x.interpretation = none; }} }}
         section s 2 {{ k.width = 1; k.interpretation = none; a.previous = own; {records} }}"
    ));
    let record = |i: u64, kind: u16| {
        let values = (0..240).map(|leaf| Value::Number((i * 7 + leaf * i) % 11));
        Action::Record(2, 4 + kind, std::iter::once(Value::Number(i % 5)).chain(values).collect())
    };
    let actions: Vec<Action> = (0..60_u64).zip((0..6).cycle()).map(|(i, kind)| record(i, kind)).collect();
    runtime::comes_back(&schema, &actions, &WriteOptions::default());
}
