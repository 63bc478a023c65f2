//! Helpers shared by the tests over random traces. Each test uses only some of them.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::container::Reader;
use metatf::dynamic::Schema;
use metatf_parser::schema::Interpretation;
use metatf_test::factor;
use metatf_tests::random::Seed;
use metatf_tools::compare::{CompareOptions, Comparison, Input, compare};
use proptest::collection::vec;
use proptest::prelude::*;

/// Generates a seed with at most this many bytes for its DTD and its records.
pub(crate) fn seed(dtd: usize, data: usize) -> impl Strategy<Value = Seed> {
    (vec(any::<u8>(), 0..dtd), vec(any::<u8>(), 0..data), vec(any::<u8>(), 9)).prop_map(|(dtd, data, options)| Seed {
        dtd,
        data,
        options,
    })
}

/// Returns a configuration whose number of cases is multiplied by `METATF_TEST_FACTOR`.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let (factor, default) = (factor(), ProptestConfig::default());
    ProptestConfig {
        cases: cases * factor,
        max_global_rejects: default.max_global_rejects * factor,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..default
    }
}

/// Compares two traces, each with its schema.
pub(crate) fn diff(schemas: [&Schema; 2], [left, right]: [&[u8]; 2], options: &CompareOptions) -> Comparison {
    let left = Input { schema: schemas[0].clone(), open: &mut || Reader::from_slice(left) };
    let right = Input { schema: schemas[1].clone(), open: &mut || Reader::from_slice(right) };
    compare(left, right, options, &mut || {}).unwrap()
}

/// Returns the fields that the DTD declares as offsets. A random offset usually leads nowhere or into the middle of an
/// element, so its target depends on the encoding.
pub(crate) fn offsets(schema: &Schema) -> Vec<String> {
    let mut names = Vec::new();
    for record in &schema.dtd.records {
        let offsets = record.leaves.iter().filter(|l| matches!(l.interpretation, Interpretation::SectionOffset(_)));
        names.extend(offsets.map(|leaf| format!("{}.{}", record.name, leaf.path.join("."))));
    }
    names
}
