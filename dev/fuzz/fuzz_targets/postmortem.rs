#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| metatf_tests::buffers::postmortem(input));
