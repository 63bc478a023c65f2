//! Reads a table by byte ranges of its file. Each row must occur once, with its number.
#![allow(clippy::unwrap_used, reason = "tests")]

use metatf_arrow::{OpenOptions, Scan, Tables, open_tables};
use metatf_tests::example::Example;
use metatf_tests::random::Seed;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::common::{file, of_batch, rows};

/// Returns the rows of each range, and whether there was an error.
fn by_ranges(tables: &Tables, table: usize, ends: &[u64], threads: usize) -> (Vec<Vec<Map<String, Value>>>, bool) {
    let (mut all, mut is_wrong, mut from) = (Vec::new(), false, 0);
    for &end in ends {
        let mut rows = Vec::new();
        for batch in tables.scan_range(table, None, from..end, threads).unwrap() {
            match batch {
                Ok(batch) => rows.extend(of_batch(&batch)),
                Err(_) => is_wrong = true,
            }
        }
        all.push(rows);
        from = end;
    }
    (all, is_wrong)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ranges_have_the_rows_of_the_whole(
        dtd in vec(any::<u8>(), 0..300),
        data in vec(any::<u8>(), 0..1500),
        options in vec(any::<u8>(), 9),
        cuts in vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let example = Example::new(&Seed { dtd, data, options }, true);
        let file = file(&example.trace);
        let options = OpenOptions { dtd: Some(example.schema.clone()), stored: true, ..OpenOptions::default() };
        let tables = open_tables(file.path(), &options).unwrap();
        let length = example.trace.len();
        let mut ends: Vec<u64> = cuts.iter().map(|cut| cut.index(length) as u64).chain([length as u64]).collect();
        ends.sort_unstable();
        for (place, table) in tables.all().iter().enumerate() {
            let (whole, error) = rows(&**table, &Scan { threads: 1, ..Scan::default() });
            for threads in [1, 2] {
                let (found, is_wrong) = by_ranges(&tables, place, &ends, threads);
                prop_assert_eq!(is_wrong, error.is_some(), "{}", example.about());
                if !is_wrong {
                    prop_assert_eq!(found.concat(), &whole[..], "{} of\n{}", table.name(), example.about());
                }
            }
        }
    }
}

/// In a trace with many groups that share tables of elements, several ranges contain rows.
#[test]
fn ranges_share_the_groups() {
    let path = metatf_test::root().join("tests/golden/1.0/every.groups-64-little.mtf");
    let length = std::fs::metadata(&path).unwrap().len();
    let tables = open_tables(&path, &OpenOptions::default()).unwrap();
    let ends: Vec<u64> = (1..=8).map(|part| length * part / 8).collect();
    let mut with_rows = 0;
    for (place, table) in tables.all().iter().enumerate() {
        let (whole, error) = rows(&**table, &Scan::default());
        assert_eq!(error, None);
        let (found, is_wrong) = by_ranges(&tables, place, &ends, 1);
        assert!(!is_wrong);
        assert_eq!(found.concat(), whole, "{}", table.name());
        with_rows = with_rows.max(found.iter().filter(|rows| !rows.is_empty()).count());
    }
    assert!(with_rows > 2, "{with_rows} ranges have rows");
    // A range after the end of the file is empty.
    let behind = tables.scan_range(0, Some(&[0]), length..length + 10, 2).unwrap();
    assert_eq!(behind.count(), 0);
    assert!(tables.scan_range(999, None, 0..length, 1).is_err());
}
