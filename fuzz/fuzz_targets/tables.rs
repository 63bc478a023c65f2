#![no_main]

// The crates of tables are no dependencies of the tests of the default build, so the body stands in theirs.
#[path = "../../hatf-arrow/tests/it/any_bytes.rs"]
mod any_bytes;

libfuzzer_sys::fuzz_target!(
    init: metatf_tests::targets::set_up(),
    |input: &[u8]| any_bytes::tables(input)
);
