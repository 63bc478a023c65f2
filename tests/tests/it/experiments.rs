//! The experiments on heap traces survive arbitrary calls. The vectors, which are the other inputs of this fuzz target,
//! contain few calls.

use metatf_tests::experiments::experiment;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20 * metatf_test::factor()))]

    #[test]
    fn any_calls(input in prop::collection::vec(any::<u8>(), 0..1200)) {
        experiment(&input);
    }
}
