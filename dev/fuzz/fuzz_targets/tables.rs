#![no_main]

// Tests in the default build do not depend on the table crates, so the body is in the tests of those crates.
#[path = "../../../tables/hatf-arrow/tests/it/any_bytes.rs"]
mod any_bytes;

libfuzzer_sys::fuzz_target!(
    init: metatf_tests::targets::set_up(),
    |input: &[u8]| any_bytes::tables(input)
);
