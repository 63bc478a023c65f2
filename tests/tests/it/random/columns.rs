//! Traces stored in columns contain the same records as others, with true labels, whether all leaves are read or some.
#![allow(clippy::expect_used, reason = "a failing test must panic")]

use super::common::{config, seed};
use metatf::container::{Filter, WriteOptions};
use metatf::dynamic::Trace;
use metatf_tests::columns::{check_mixed, check_selection, records};
use metatf_tests::example::{Example, same};
use metatf_tests::{oracle, runtime};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Generates bytes that decide which leaves to read and in which way.
fn choices() -> impl Strategy<Value = [u8; 32]> {
    any::<[u8; 32]>()
}

fn check(seed: &metatf_tests::random::Seed, choices: [u8; 32]) {
    let example = Example::new(seed, true);
    let write = |filter| {
        let options = WriteOptions { version: 1, filter, ..example.options.clone() };
        runtime::write(&example.schema, &example.done, &options).0
    };
    let (plain, stored) = (write(Filter::None), write(Filter::Columns));
    let about = example.about();
    let (seen, end) = runtime::read(&example.schema, &plain);
    let (found, found_end) = runtime::read(&example.schema, &stored);
    same(&seen, &found, &about);
    assert_eq!(found_end, end, "{about}");
    let (told, right) = oracle::read(example.dtd(), &stored);
    same(&told, &found, &about);
    assert_eq!(right, Ok(()), "{about}");
    assert_eq!(oracle::labels(example.dtd(), &stored), Ok(()), "{about}");

    let is_wanted = |section: usize, record: u16, leaf: u8| {
        let at = section * 31 + usize::from(record) * 7 + usize::from(leaf);
        choices[at / 8 % 32] >> (at % 8) & 1 == 1
    };
    let open = |bytes, all| -> Trace<'_> {
        let mut trace = runtime::open(&example.schema, bytes).expect("it was read before");
        trace.reader_mut().set_all(all);
        trace
    };
    let (expected, _) = records(&mut open(&plain, false));
    for all in [false, true] {
        check_selection(&mut open(&plain, all), &mut open(&stored, all), is_wanted);
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &choices);
        let end = check_mixed(&mut open(&stored, all), &expected, is_wanted, || rng.next_u32().to_le_bytes()[0]);
        assert_eq!(end, Ok(()), "{about}");
    }
}

/// The labels of the vectors are true unless their names say otherwise, and each leaf can be read without the others.
#[test]
fn labels_of_the_vectors() {
    let mut read = 0;
    for folder in std::fs::read_dir(metatf_test::vectors("good")).expect("the vectors").flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        if !name.starts_with("x-columns-") {
            continue;
        }
        let file = |name: &str| std::fs::read(folder.path().join(name)).expect("a file of the vector");
        let (dtd, bytes) = (file("format.dtd"), file("trace.mtf"));
        let schema = runtime::schema(std::str::from_utf8(&dtd).expect("a DTD is UTF-8"));
        let labels = oracle::labels(&schema.dtd, &bytes);
        assert_eq!(labels.is_err(), name.starts_with("x-columns-label-"), "{name}: {labels:?}");
        if labels.is_err() {
            continue;
        }
        let open = || runtime::open(&schema, &bytes).expect("a good trace");
        let (expected, end) = records(&mut open());
        assert_eq!(end, Ok(()), "{name}");
        for only in 0..8 {
            assert_eq!(check_mixed(&mut open(), &expected, |_, _, leaf| leaf == only, || 0), Ok(()), "{name}");
        }
        read += 1;
    }
    assert!(read > 10, "{read}");
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn columns_contain_the_same_records(seed in seed(400, 600), choices in choices()) {
        check(&seed, choices);
    }
}
