//! Random formats, random records: what was written is what is read, by the universal reader and by the reference
//! decoder, through every container.

mod common;

use common::{config, seed};
use metatf_tests::example::{Example, same};
use metatf_tests::random::{Choices, dtd};
use metatf_tests::{oracle, runtime};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(300))]

    /// What is valid by construction, the parser accepts; the formatter keeps its meaning and is idempotent.
    #[test]
    fn a_valid_dtd_is_accepted(bytes in vec(any::<u8>(), 0..400)) {
        let text = dtd(&mut Choices::new(&bytes));
        let schema = runtime::schema(&text);
        let formatted = metatf_parser::format("random.dtd", text.as_bytes()).expect("it is right");
        let again = runtime::schema(&formatted);
        prop_assert!(schema.dtd.same_meaning(&again.dtd), "{}\n{}", text, formatted);
        prop_assert_eq!(schema.dtd.fingerprint(), again.dtd.fingerprint());
        let twice = metatf_parser::format("random.dtd", formatted.as_bytes()).expect("it is right");
        prop_assert_eq!(twice, formatted);
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// The records written are the records read, in order.
    #[test]
    fn what_is_written_is_read(seed in seed(400, 600)) {
        let example = Example::new(&seed, true);
        let (seen, result) = runtime::read(&example.schema, &example.trace);
        let about = example.about();
        prop_assert_eq!(result, Ok(()), "{}", about);
        let version = example.options.version;
        let read = runtime::records_of(seen, version, &|n| example.given(n));
        same(&runtime::expected(&example.schema, &example.done, version), &read, &about);
    }

    /// The reference decoder sees what the runtime sees: every value, event and offset.
    #[test]
    fn the_oracle_agrees(seed in seed(400, 600)) {
        let example = Example::new(&seed, true);
        let (seen, result) = runtime::read(&example.schema, &example.trace);
        let (told, right) = oracle::read(example.dtd(), &example.trace);
        let about = example.about();
        same(&told, &seen, &about);
        prop_assert_eq!(right, Ok(()), "{}", about);
        prop_assert_eq!(result, Ok(()), "{}", about);
    }
}
