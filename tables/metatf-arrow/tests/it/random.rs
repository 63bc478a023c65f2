//! Tests that tables of random formats and traces contain the same values as the dynamic reader returns.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;

use metatf::dynamic::{Schema, Trace};
use metatf::reader::Event;
use metatf_arrow::{NUMBER, OFFSET, OpenOptions, SECTION, Scan, open_tables};
use metatf_parser::schema::Interpretation;
use metatf_tests::example::Example;
use metatf_tests::random::Seed;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};

use crate::common::{expected, file, of_batch, rows, tables};

fn seed() -> impl Strategy<Value = Seed> {
    (vec(any::<u8>(), 0..400), vec(any::<u8>(), 0..1500), vec(any::<u8>(), 9)).prop_map(|(dtd, data, options)| Seed {
        dtd,
        data,
        options,
    })
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases: cases * metatf_test::factor(), failure_persistence: None, ..ProptestConfig::default() }
}

/// The expected rows of a table and the error after them, if any.
type Expected = (Vec<Map<String, Value>>, Option<String>);

/// Returns the rows of each table by record index, as read by the dynamic reader.
fn by_record(schema: &Schema, bytes: &[u8], stored: bool) -> HashMap<u16, Expected> {
    let mut trace = Trace::new(schema.clone(), metatf::container::Reader::from_slice(bytes).unwrap()).unwrap();
    let mut all: HashMap<u16, Expected> = HashMap::new();
    let mut number = 0;
    while let Some(entry) = trace.next_entry().unwrap() {
        let Event::Record(at) = entry.event else { continue };
        let (rows, wrong) = all.entry(at.record).or_default();
        let record = schema.record(at.record).unwrap();
        if wrong.is_none() {
            match expected(record, entry.record, stored) {
                Ok(mut row) => {
                    row.insert(NUMBER.to_owned(), number.into());
                    let section = schema.section(at.section).unwrap().name.clone();
                    row.insert(SECTION.to_owned(), section.unwrap_or_default().into());
                    rows.push(row);
                }
                Err(error) => *wrong = Some(error),
            }
        }
        number += 1;
    }
    all
}

fn check(example: &Example, stored: bool) {
    let file = file(&example.trace);
    let mut reference = by_record(&example.schema, &example.trace, stored);
    let names: HashMap<String, Vec<u16>> = (0..).zip(&example.schema.dtd.records).skip(3).fold(
        HashMap::new(),
        |mut names: HashMap<String, Vec<u16>>, (index, record)| {
            names.entry(record.name.clone()).or_default().push(index);
            names
        },
    );
    for table in tables(file.path(), &example.schema, stored) {
        let schema = table.schema();
        if schema.index_of(OFFSET).is_ok() {
            continue;
        }
        // In random DTDs, record names are unique or are preceded by the section name.
        let name =
            names.keys().filter(|name| table.name().ends_with(name.as_str())).max_by_key(|name| name.len()).unwrap();
        let of_name = &names[name];
        let record = if of_name.len() == 1 {
            of_name[0]
        } else {
            let section = |index: u16| {
                let id = metatf_parser::schema::RecordId(index.into());
                let mut sections = example.schema.dtd.sections.iter();
                sections.find(|s| s.records.contains(&id)).and_then(|s| s.name.clone()).unwrap_or_default()
            };
            *of_name.iter().find(|&&index| table.name() == format!("{}_{name}", section(index))).unwrap_or(&of_name[0])
        };
        let (mut wanted, wrong) = reference.remove(&record).unwrap_or_default();
        if schema.index_of(SECTION).is_err() {
            wanted.iter_mut().for_each(|row| drop(row.remove(SECTION)));
        }
        for threads in [1, 2] {
            let scan = Scan { threads, ..Scan::default() };
            let (found, error) = rows(&*table, &scan);
            let about = || format!("{} of\n{}", table.name(), example.about());
            assert_eq!(error.is_some(), wrong.is_some(), "{error:?} {wrong:?} {}", about());
            if let Some(error) = &error {
                assert!(error.contains("record ") && error.contains(file.path().to_str().unwrap()), "{error}");
                assert!(found.len() <= wanted.len(), "{}", about());
            } else {
                assert_eq!(found.len(), wanted.len(), "{}", about());
            }
            for (found, wanted) in found.iter().zip(&wanted) {
                let wanted: Map<String, Value> = found.keys().map(|key| (key.clone(), wanted[key].clone())).collect();
                assert_eq!(found, &wanted, "{}", about());
            }
            // A column read alone has the same values as a column read with all others.
            if error.is_none() {
                for column in 0..schema.fields().len() {
                    let scan = Scan { columns: Some(vec![column]), threads, ..Scan::default() };
                    let (alone, error) = rows(&*table, &scan);
                    assert_eq!(error, None);
                    let name = schema.field(column).name();
                    assert_eq!(alone.len(), wanted.len());
                    assert!(alone.iter().zip(&wanted).all(|(row, wanted)| row[name] == wanted[name]), "{}", about());
                }
            }
        }
    }
    assert!(reference.values().all(|(rows, _)| rows.is_empty()), "every record is in a table: {}", example.about());
}

/// Checks that tables read at once have the same rows as tables read alone.
fn check_together(example: &Example, stored: bool) {
    let file = file(&example.trace);
    let options = OpenOptions { dtd: Some(example.schema.clone()), stored, ..OpenOptions::default() };
    let tables = open_tables(file.path(), &options).unwrap();
    let all = tables.all();
    let alone: Vec<_> = all.iter().map(|table| rows(&**table, &Scan { threads: 1, ..Scan::default() })).collect();
    // Request the tables in reverse order, so that the index in the request differs from the index of the table.
    let parts: Vec<_> = (0..all.len()).rev().map(|table| (table, None)).collect();
    for threads in [1, 2] {
        let mut found = vec![Vec::new(); all.len()];
        let mut error = None;
        for next in tables.scan_together(&parts, threads).unwrap() {
            assert_eq!(error, None, "nothing comes after an error");
            match next {
                Ok((place, batch)) => found[parts[place].0].extend(of_batch(&batch)),
                Err(stop) => error = Some(stop.to_string()),
            }
        }
        assert_eq!(error.is_some(), alone.iter().any(|(_, error)| error.is_some()), "{error:?} {}", example.about());
        for (found, (alone, _)) in found.iter().zip(&alone) {
            let compared = if error.is_some() { found.len().min(alone.len()) } else { alone.len() };
            assert_eq!(found.get(..compared), alone.get(..compared), "{}", example.about());
        }
    }
}

/// Returns whether a schema has references. In random traces, their offsets are usually invalid.
fn refers(schema: &Schema) -> bool {
    let mut leaves = schema.dtd.records.iter().flat_map(|record| &record.leaves);
    leaves.any(|leaf| matches!(leaf.interpretation, Interpretation::SectionOffset(_)))
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn stored_values_are_those_of_the_universal_reader(seed in seed()) {
        let example = Example::new(&seed, true);
        check(&example, true);
        check_together(&example, true);
    }

    #[test]
    fn shown_values_are_those_of_the_universal_reader(seed in seed()) {
        let example = Example::new(&seed, true);
        if !refers(&example.schema) {
            check(&example, false);
            check_together(&example, false);
        }
    }
}
