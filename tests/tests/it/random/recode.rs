//! Random traces, recoded by every plan: the same records, whatever the encoding.

use super::common::{config, seed};
use metatf_tests::example::Example;
use metatf_tests::recoding;
use metatf_tools::recode::{Groups, Options, Plan};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(150))]

    /// Every plan keeps every value, and recoding what was recoded gives the same bytes.
    #[test]
    fn recoding_keeps_records(seed in seed(400, 600), block in 1_usize..60) {
        let example = Example::new(&seed, true);
        recoding::check(&example.schema, &example.trace, block, &example.about());
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// No named plan makes a trace with less content than the optimal one.
    #[test]
    fn optimal_is_smallest(seed in seed(300, 900), block in 1_usize..200) {
        // What a model stores of one leaf depends on what is stored of others: the optimum is one of the other encodings.
        let mut seed = seed;
        seed.options.truncate(8);
        let example = Example::new(&seed, false);
        recoding::optimal_is_smallest(&example.schema, &example.trace, block, &example.about());
    }
}

proptest! {
    #![proptest_config(config(100))]

    /// With any number of threads it is the same bytes, or the same error: of a whole trace and of a damaged one, with its groups
    /// and with others.
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
