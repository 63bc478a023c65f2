//! Random records of the vectors' formats, read and written by generated code.

mod common;

use common::{config, seed};
use metatf_tests::random::{Choices, Limits, actions, options};
use metatf_tests::{generated, runtime};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(100))]

    /// The generated reader and writer agree with the universal one, whatever the values are.
    #[test]
    fn generated_code_agrees(seed in seed(2, 600), number in 0..generated::count(), changes in any::<bool>()) {
        let schema = generated::schema(number);
        let limits = Limits { actions: 200, changes };
        let wanted = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
        let (trace, _) = runtime::write(&schema, &wanted, &options(&mut Choices::new(&seed.options)));
        generated::agree(number, &trace);
    }
}
