#![no_main]

libfuzzer_sys::fuzz_target!(
    init: metatf_tests::targets::set_up(),
    |input: &[u8]| metatf_tests::targets::recode(input)
);
