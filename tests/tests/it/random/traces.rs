//! Random formats and random records survive every container, with the dynamic reader and the reference decoder.
#![allow(clippy::expect_used, reason = "tests")]

use super::common::{config, seed};
use metatf_parser::schema::{Dtd, HeapRole, Model, ModelKind, PredictorKind};
use metatf_tests::example::{Example, same};
use metatf_tests::random::{Choices, Features, dtd, dtd_with};
use metatf_tests::{oracle, runtime};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::sync::Arc;

proptest! {
    #![proptest_config(config(300))]

    /// The parser accepts a DTD that is valid by construction. The formatter preserves its meaning and is idempotent.
    #[test]
    fn a_valid_dtd_is_accepted(bytes in vec(any::<u8>(), 0..400)) {
        accepted(&dtd(&mut Choices::new(&bytes)));
    }

    /// The same holds with predicted fields.
    #[test]
    fn a_dtd_with_predicted_fields_is_accepted(bytes in vec(any::<u8>(), 0..600)) {
        accepted(&dtd_with(&mut Choices::new(&bytes), Features { predicted: true, names: true }));
    }
}

fn accepted(text: &str) -> Arc<Dtd> {
    let schema = runtime::schema(text);
    let formatted = metatf_parser::format("random.dtd", text.as_bytes()).expect("it is right");
    let again = runtime::schema(&formatted);
    assert!(schema.dtd.same_meaning(&again.dtd), "{text}\n{formatted}");
    assert_eq!(schema.dtd.fingerprint(), again.dtd.fingerprint());
    let twice = metatf_parser::format("random.dtd", formatted.as_bytes()).expect("it is right");
    assert_eq!(twice, formatted);
    schema.dtd
}

/// Random models cover every kind of model.
#[test]
fn every_kind_of_model_is_drawn() {
    let mut seen = std::collections::BTreeSet::new();
    let mut note = |model: &Model| match &model.kind {
        ModelKind::Values(predictors) => {
            seen.insert(if predictors.len() > 1 { "several" } else { "one" });
            for predictor in predictors {
                seen.insert(if predictor.by.is_some() { "by" } else { "alone" });
                seen.insert(match predictor.kind {
                    PredictorKind::LastValue(_) => "lastValue",
                    PredictorKind::Stride => "stride",
                    PredictorKind::Fcm(_) => "fcm",
                    PredictorKind::Dfcm(_) => "dfcm",
                });
            }
        }
        ModelKind::Heap { role, by } => {
            seen.insert(if by.is_some() { "heap by" } else { "heap alone" });
            seen.insert(match role {
                HeapRole::Allocated { .. } => "allocated",
                HeapRole::Freed => "freed",
                HeapRole::Used => "used",
            });
        }
    };
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..600).map(|_| rng.next_u32().to_le_bytes()[0]).collect();
        accepted(&dtd_with(&mut Choices::new(&bytes), Features { predicted: true, names: true }))
            .models
            .iter()
            .for_each(&mut note);
        let plain = accepted(&dtd(&mut Choices::new(&bytes)));
        assert!(plain.models.is_empty());
    }
    assert_eq!(seen.len(), 13, "{seen:?}");
}

proptest! {
    #![proptest_config(config(200))]

    /// The records read are the records written, in order.
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

    /// The reference decoder and the runtime return the same values, events and offsets.
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
