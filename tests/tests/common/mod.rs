//! What the tests over random traces have in common.
//! Each test takes what it needs.
#![allow(dead_code, reason = "each test file compiles this by itself")]

use metatf_tests::random::Seed;
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes for an example: at most so many for its DTD and its records.
pub(crate) fn seed(dtd: usize, data: usize) -> impl Strategy<Value = Seed> {
    (vec(any::<u8>(), 0..dtd), vec(any::<u8>(), 0..data), vec(any::<u8>(), 9)).prop_map(|(dtd, data, options)| Seed {
        dtd,
        data,
        options,
    })
}

/// `METATF_TEST_FACTOR` asks for so many times the cases.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let factor = std::env::var("METATF_TEST_FACTOR").ok().and_then(|f| f.parse().ok()).unwrap_or(1);
    ProptestConfig {
        cases: cases * factor,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    }
}
