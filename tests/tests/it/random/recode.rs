//! Recoding random traces with every plan preserves the records.

use super::common::{config, seed};
use metatf_tests::example::Example;
use metatf_tests::recoding;
use metatf_tools::recode::{Groups, Options, Plan};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(150))]

    /// Every plan preserves every value, and recoding again yields the same bytes.
    #[test]
    fn recoding_keeps_records(seed in seed(400, 600), block in 1_usize..60) {
        let example = Example::new(&seed, true);
        recoding::check(&example.schema, &example.trace, block, &example.about());
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// No named plan produces less content than the optimal plan.
    #[test]
    fn optimal_is_smallest(seed in seed(300, 900), block in 1_usize..200) {
        // Leaves that share a model affect each other's codes, so the optimum covers only the other encodings.
        let mut seed = seed;
        seed.options.truncate(8);
        let example = Example::new(&seed, false);
        recoding::optimal_is_smallest(&example.schema, &example.trace, block, &example.about());
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// The number of threads does not affect the bytes or the error, for complete and damaged traces, with the original
    /// and with other groups.
    #[test]
    fn threads_make_no_difference(
        seed in seed(400, 900),
        block in 1_usize..60,
        harm in prop::option::of(any::<prop::sample::Index>()),
        group in prop::option::of(1_usize..2000),
    ) {
        let example = Example::new(&seed, true);
        let mut trace = example.trace.clone();
        if let Some(at) = harm {
            let at = at.index(trace.len());
            trace[at] ^= 0x41;
        }
        let groups = group.map_or(Groups::Keep, Groups::Bytes);
        let wanted = |options: &Options| matches!(options.plan, Plan::Naive | Plan::Optimal);
        for (codec, options) in recoding::ways(block).into_iter().filter(|(_, options)| wanted(options)) {
            let options = Options { groups, ..options };
            let recoded = |n| recoding::recoded_by(n, &example.schema, &trace, codec, options.clone());
            let [one, two, five] = [1, 2, 5].map(recoded);
            prop_assert!(one == two && one == five, "{}", example.about());
        }
    }
}
