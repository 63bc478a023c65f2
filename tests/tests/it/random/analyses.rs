//! Analyses of random events, well formed and without sense.

use super::common::config;
use metatf_tests::analyses::analyses;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn nonsense_is_counted(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        analyses(&bytes);
    }
}
