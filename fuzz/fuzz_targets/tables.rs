#![no_main]

// The tests of the default build do without the crates of tables, so the body stands in the tests of these.
#[path = "../../hatf-arrow/tests/it/any_bytes.rs"]
mod any_bytes;

libfuzzer_sys::fuzz_target!(
    init: metatf_tests::targets::set_up(),
    |input: &[u8]| any_bytes::tables(input)
);
