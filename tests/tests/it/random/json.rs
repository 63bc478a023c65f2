//! JSON lines (spec 8): printing a trace and writing it again restores the trace.

use super::common::{config, seed};
use metatf::container::WriteOptions;
use metatf::dynamic::JsonOptions;
use metatf_tests::example::Example;
use metatf_tests::random::{Choices, options};
use metatf_tests::runtime;
use proptest::collection::vec;
use proptest::prelude::*;

const ALL: JsonOptions = JsonOptions { all: true, resolve: false, resets: true, names: false };
const NAMED: JsonOptions = JsonOptions { all: true, resolve: false, resets: true, names: true };
const DATA: JsonOptions = JsonOptions { all: false, resolve: false, resets: false, names: false };

/// Panics with the first differing line.
fn same(left: &str, right: &str, example: &Example) {
    let mut lines = (left.lines(), right.lines());
    loop {
        match (lines.0.next(), lines.1.next()) {
            (None, None) => return,
            (left, right) => assert!(left == right, "\n{left:?}\n{right:?}\n{}", example.about()),
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// Complete output loses nothing: groups, resets, metadata and offsets survive the round trip.
    #[test]
    fn everything_printed_is_written_again(seed in seed(400, 500)) {
        let example = Example::new(&seed, true);
        let lines = runtime::json(&example.schema, &example.trace, ALL).unwrap();
        if runtime::ends_with_a_table(&lines) {
            return Ok(());
        }
        // The lines mark where groups begin.
        let options = WriteOptions { group_size: usize::MAX, ..example.options.clone() };
        let again = runtime::from_json(&example.schema, &lines, &options);
        let again = again.unwrap_or_else(|e| panic!("{e}\n{}", example.about()));
        let printed = runtime::json(&example.schema, &again, ALL).unwrap();
        same(&lines, &printed, &example);
    }

    /// Names of values and flags are read back as their numbers.
    #[test]
    fn names_printed_are_written_again(seed in seed(400, 500)) {
        let example = Example::new(&seed, true);
        let named = runtime::json(&example.schema, &example.trace, NAMED).unwrap();
        if runtime::ends_with_a_table(&named) {
            return Ok(());
        }
        let options = WriteOptions { group_size: usize::MAX, ..example.options.clone() };
        let again = runtime::from_json(&example.schema, &named, &options);
        let again = again.unwrap_or_else(|e| panic!("{e}\n{}", example.about()));
        let lines = |trace: &[u8]| runtime::json(&example.schema, trace, ALL).unwrap();
        same(&lines(&example.trace), &lines(&again), &example);
    }

    /// Lines with only records can be written into any container.
    #[test]
    fn records_printed_are_written_again(seed in seed(400, 500), other in vec(any::<u8>(), 8)) {
        let example = Example::new(&seed, true);
        let options = options(&mut Choices::new(&other));
        let lines = runtime::json(&example.schema, &example.trace, DATA).unwrap();
        let again = runtime::from_json(&example.schema, &lines, &options);
        let again = again.unwrap_or_else(|e| panic!("{e}\n{}", example.about()));
        let printed = runtime::json(&example.schema, &again, DATA).unwrap();
        // Version 0 puts global records first.
        let mut lines: Vec<&str> = lines.lines().collect();
        if options.version == 0 {
            lines.sort_by_key(|l| !l.starts_with("{\"@section\":null"));
        }
        same(&lines.join("\n"), &printed, &example);
    }
}
