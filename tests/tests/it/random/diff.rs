//! Comparing traces by their values ignores the encoding and finds every changed value.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::common::{config, diff, offsets, seed};
use metatf::container::WriteOptions;
use metatf::dynamic::Writer;
use metatf_tests::example::Example;
use metatf_tests::random::{Action, Choices, options};
use metatf_tests::{Value, runtime};
use metatf_tools::compare::{CompareOptions, Comparison};
use proptest::prelude::*;

fn first_difference(result: &Comparison, example: &Example) -> String {
    format!("{:?}\n{}", result.differences.first(), example.about())
}

proptest! {
    #![proptest_config(config(150))]

    /// Class, byte order, codec and filter do not affect the comparison, whatever the trace contains.
    #[test]
    fn the_container_makes_no_difference(seed in seed(400, 500), how in prop::collection::vec(any::<u8>(), 0..10)) {
        let example = Example::new(&seed, true);
        let other = options(&mut Choices::new(&how));
        let other = WriteOptions { class: other.class, order: other.order, codec: other.codec, filter: other.filter, ..example.options.clone() };
        let (again, done) = runtime::write(&example.schema, &example.done, &other);
        prop_assume!(done == example.done);
        for order in [false, true] {
            let compare = CompareOptions { order, metadata: true, ignore: offsets(&example.schema), ..CompareOptions::default() };
            let result = diff([&example.schema; 2], [&example.trace, &again], &compare);
            prop_assert!(result.is_same(), "{}", first_difference(&result, &example));
        }
    }

    /// Metadata, groups, resets and the version do not affect the comparison.
    #[test]
    fn encodings_make_no_difference(seed in seed(400, 500), how in prop::collection::vec(any::<u8>(), 0..10)) {
        let example = Example::new(&seed, true);
        let plain: Vec<Action> = example.done.iter().filter(|a| matches!(a, Action::Record(..) | Action::Element(..))).cloned().collect();
        let (again, done) = runtime::write(&example.schema, &plain, &options(&mut Choices::new(&how)));
        prop_assume!(done == plain);
        let compare = CompareOptions { ignore: offsets(&example.schema), ..CompareOptions::default() };
        for traces in [[&example.trace[..], &again], [&again, &example.trace]] {
            let result = diff([&example.schema; 2], traces, &compare);
            prop_assert!(result.is_same(), "{}", first_difference(&result, &example));
        }
    }

    /// The comparison finds a changed value and a missing record.
    #[test]
    fn a_change_is_found(seed in seed(400, 500), place in any::<prop::sample::Index>(), value in any::<prop::sample::Index>()) {
        let example = Example::new(&seed, false);
        let records: Vec<usize> = (0..example.done.len()).filter(|&i| matches!(example.done[i], Action::Record(..))).collect();
        prop_assume!(!records.is_empty());
        let place = records[place.index(records.len())];
        let mut actions = example.done.clone();
        let removed = actions.remove(place);
        let (shorter, _) = runtime::write(&example.schema, &actions, &example.options);
        for traces in [[&example.trace[..], &shorter], [&shorter, &example.trace]] {
            let result = diff([&example.schema; 2], traces, &CompareOptions::default());
            prop_assert!(!result.is_same(), "{:?} is missing\n{}", removed, example.about());
        }

        let mut actions = example.done.clone();
        let Action::Record(_, _, values) = &mut actions[place] else { unreachable!() };
        prop_assume!(!values.is_empty());
        let changed = value.index(values.len());
        match &mut values[changed] {
            Value::Number(n) => *n ^= 1,
            Value::Bytes(bytes) if bytes.is_empty() => return Ok(()),
            Value::Bytes(bytes) => bytes[0] ^= 1,
        }
        // Some values cannot be changed: lengths, counts and constants.
        let mut writer = Writer::new(Vec::new(), &example.schema, &example.options).unwrap();
        if actions.iter().any(|action| runtime::perform(&mut writer, action).is_err()) {
            writer.abandon();
            return Ok(());
        }
        let other = writer.finish().unwrap();
        let result = diff([&example.schema; 2], [&example.trace, &other], &CompareOptions::default());
        prop_assert!(!result.is_same() || !offsets(&example.schema).is_empty(), "{:?}\n{}", actions[place], example.about());
    }
}
