//! Random records and metadata in the formats that readers are generated from: whichever way a trace is read, it has the same
//! records and the same error.

mod common;

use common::{config, seed};
use metatf::container::WriteOptions;
use metatf_tests::random::{Choices, Limits, Seed, actions, options};
use metatf_tests::{generated, runtime};
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::LazyLock;

/// The DTDs, and which of them have stream sections.
static TEXTS: LazyLock<Vec<String>> = LazyLock::new(generated::texts);
static WITH_STREAMS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let streams = |text: &str| runtime::schema(text).dtd.sections.iter().any(|section| section.stream.is_some());
    (0..TEXTS.len()).filter(|&number| streams(&TEXTS[number])).collect()
});

fn trace(text: &str, seed: &Seed, options: &WriteOptions) -> Vec<u8> {
    let schema = runtime::schema(text);
    let limits = Limits { actions: 500, changes: true };
    let actions = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
    runtime::write(&schema, &actions, options).0
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn all_ways_of_reading_agree(number in any::<Index>(), seed in seed(1, 1500)) {
        let number = number.index(TEXTS.len());
        generated::agree(number, &trace(&TEXTS[number], &seed, &options(&mut Choices::new(&seed.options))));
    }

    /// Values come from streams, in pieces of any size; big-endian traces are read leaf by leaf.
    #[test]
    fn all_ways_of_reading_streams_agree(
        number in any::<Index>(),
        seed in seed(1, 3000),
        chunk_size in prop::sample::select(vec![1 << 20, 1 << 20, 100, 1000]),
    ) {
        let number = *number.get(&WITH_STREAMS);
        let options = WriteOptions { chunk_size, ..WriteOptions::default() };
        generated::agree(number, &trace(&TEXTS[number], &seed, &options));
    }

    /// What is cut off or changed is told in the same place.
    #[test]
    fn all_ways_of_reading_damaged_streams_agree(
        number in any::<Index>(),
        seed in seed(1, 1500),
        at in any::<Index>(),
        byte in any::<u8>(),
    ) {
        let number = *number.get(&WITH_STREAMS);
        // No check sums.
        let options = WriteOptions { version: 0, ..WriteOptions::default() };
        let mut trace = trace(&TEXTS[number], &seed, &options);
        let at = at.index(trace.len());
        trace[at] = byte;
        generated::agree(number, &trace);
    }
}
