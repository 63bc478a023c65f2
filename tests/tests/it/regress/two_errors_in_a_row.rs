//! After a record that cannot be read, columns continued with the next record and reported its error.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, generated, runtime};

#[test]
fn the_first_is_told() {
    let number = generated::number_of("constants").expect("a vector");
    let record = Action::Record(1, 4, [1, 310].map(Value::Number).into());
    let options = WriteOptions { version: 0, ..WriteOptions::default() };
    let (good, _) = runtime::write(&generated::schema(number), &vec![record; 200], &options);
    // Each constant follows a tag and 1, and is 310 - 300.
    let constants: Vec<_> =
        good.windows(3).enumerate().filter(|(_, bytes)| *bytes == [5, 1, 10]).map(|(at, _)| at + 2).collect();
    for at in [0, 1, 2, 50, 100, 190, 197, 198] {
        let mut trace = good.clone();
        for &constant in &constants[at..=at + 1] {
            trace[constant] = 11;
        }
        generated::agree(number, &trace);
    }
}
