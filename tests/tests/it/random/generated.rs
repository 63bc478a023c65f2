//! Random records and metadata of the formats with generated readers and writers: every way to read a trace returns the
//! same records and the same error.

use super::common::{config, seed};
use metatf::container::WriteOptions;
use metatf_tests::random::{Choices, Limits, Seed, actions, options};
use metatf_tests::{generated, runtime};
use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::LazyLock;

/// Formats that have stream sections.
static WITH_STREAMS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    let streams = |number: &usize| generated::schema(*number).dtd.sections.iter().any(|s| s.stream.is_some());
    (0..generated::count()).filter(streams).collect()
});

fn trace(number: usize, seed: &Seed, changes: bool, options: &WriteOptions) -> Vec<u8> {
    let schema = generated::schema(number);
    let limits = Limits { actions: 500, changes };
    let actions = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
    runtime::write(&schema, &actions, options).0
}

proptest! {
    #![proptest_config(config(100))]

    /// The generated reader and writer agree with the dynamic ones for any values.
    #[test]
    fn generated_code_agrees(seed in seed(2, 600), number in 0..generated::count(), changes in any::<bool>()) {
        generated::agree(number, &trace(number, &seed, changes, &options(&mut Choices::new(&seed.options))));
    }

    /// The readers agree on values from streams, in pieces of any size.
    #[test]
    fn streams_agree(
        number in any::<Index>(),
        seed in seed(1, 3000),
        changes in any::<bool>(),
        chunk_size in prop::sample::select(vec![1 << 20, 1 << 20, 100, 1000]),
    ) {
        let number = *number.get(&WITH_STREAMS);
        let options = WriteOptions { chunk_size, ..WriteOptions::default() };
        generated::agree(number, &trace(number, &seed, changes, &options));
    }

    /// The readers report damage at the same position.
    #[test]
    fn damaged_streams_agree(
        number in any::<Index>(),
        seed in seed(1, 1500),
        at in any::<Index>(),
        byte in any::<u8>(),
    ) {
        let number = *number.get(&WITH_STREAMS);
        // Version 0 has no checksums.
        let options = WriteOptions { version: 0, ..WriteOptions::default() };
        let mut trace = trace(number, &seed, true, &options);
        let at = at.index(trace.len());
        trace[at] = byte;
        generated::agree(number, &trace);
    }
}
