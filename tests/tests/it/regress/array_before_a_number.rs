//! A byte array precedes a number, in a record whose last bytes are too close to the end to be put into columns
//! directly. The array was already stored when the record was read a second time.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, generated, runtime};

#[test]
fn it_is_in_the_columns_once() {
    let number = generated::number_of("global-length").expect("a vector");
    let record = |length: usize| {
        let values = [Value::Number(1), Value::Number(length as u64), Value::Bytes(vec![7; length]), Value::Number(2)];
        Action::Record(1, 3, values.into())
    };
    for (records, length) in (2..8).flat_map(|records| (0..80).step_by(8).map(move |length| (records, length))) {
        let mut actions: Vec<_> = (0..records).map(|at| record(at % 3)).collect();
        actions.push(record(length));
        let (trace, _) = runtime::write(&generated::schema(number), &actions, &WriteOptions::default());
        generated::agree(number, &trace);
    }
}
