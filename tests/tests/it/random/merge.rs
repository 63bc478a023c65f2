//! Merges the pieces of a trace, for random DTDs.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::common::{config, diff, offsets, seed};
use metatf::container::WriteOptions;
use metatf::dynamic::{Item, JsonOptions, OwnedRecord, Schema, Writer};
use metatf::{Error, ErrorKind};
use metatf_tests::example::Example;
use metatf_tests::merging::{check, is_far_from_the_element_before, merged, source};
use metatf_tests::runtime;
use metatf_tools::compare::CompareOptions;
use metatf_tools::convert::{ConvertError, ConvertOptions};
use proptest::prelude::*;

/// Returns whether an error is expected for a random example: its offsets are arbitrary, and dropped fields may include
/// lengths.
fn is_expected(schema: &Schema, error: ConvertError, dropped: bool) -> bool {
    match error {
        ConvertError::Write(error) if is_far_from_the_element_before(schema, error) => true,
        ConvertError::Write(Error { kind: ErrorKind::Usage(_) | ErrorKind::Expression, .. }) => dropped,
        // Metadata has turned another field into an offset.
        ConvertError::Read(Error { kind: ErrorKind::Usage(_), .. }) => true,
        _ => false,
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn pieces_become_the_trace_again(seed in seed(400, 500), sides in any::<u64>()) {
        let example = Example::new(&seed, true);
        let drop = ConvertOptions { drop: offsets(&example.schema), ..ConvertOptions::default() };
        if let Err(error) = check(&example.schema, &example.trace, &drop, sides, &example.about()) {
            prop_assert!(is_expected(&example.schema, error, !drop.drop.is_empty()), "{error:?}\n{}", example.about());
        }
    }

    #[test]
    fn one_trace_stays_as_it_is(seed in seed(400, 500)) {
        let example = Example::new(&seed, true);
        let ignore = offsets(&example.schema);
        let drop = ConvertOptions { drop: ignore.clone(), ..ConvertOptions::default() };
        let source = source(&example.schema, &example.trace, &drop, Box::new(|_, _| None)).unwrap();
        match merged(&example.schema, vec![source]) {
            Ok(again) => {
                let options = CompareOptions { order: true, ignore, ..CompareOptions::default() };
                let result = diff([&example.schema; 2], [&example.trace, &again], &options);
                prop_assert!(result.is_same(), "{:?}\n{}", result.differences.first(), example.about());
            }
            Err(error) => prop_assert!(is_expected(&example.schema, error, !drop.drop.is_empty()), "{error:?}\n{}", example.about()),
        }
    }
}

/// Merging joins equal elements of two tables and moves the others, and it adjusts offsets in records and in elements.
#[test]
fn tables_are_joined() {
    let schema = runtime::schema(
        "section s 1 { r: (tag, time, place) { tag.value = 4; time.width = 1; time.interpretation = none; place.width = 1;
            place.interpretation = sectionOffset 3; } }
        section names 2 { text: vfield { vfield.data.format = \"utf8\"; } }
        section places 3 { place: (name, line) { name.width = 1; name.interpretation = sectionOffset 2; line.width = 1;
            line.interpretation = none; } }",
    );
    let numbers = |numbers: [u64; 2]| {
        let mut owned = OwnedRecord::default();
        numbers.into_iter().for_each(|number| owned.push_number(number));
        owned
    };
    let trace = |places: [&str; 3], times: [u64; 3]| {
        let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
        for (line, (name, time)) in (7..).zip(places.into_iter().zip(times)) {
            let mut text = OwnedRecord::default();
            text.push_number(name.len() as u64);
            text.push_bytes(name.as_bytes());
            let name = writer.element(2, true, &text).unwrap();
            let place = writer.element(3, true, &numbers([name, line])).unwrap();
            writer.record(1, 3, &numbers([time, place])).unwrap();
        }
        writer.finish().unwrap()
    };
    let (a, b) = (trace(["root", "a", "leaf"], [1, 3, 5]), trace(["root", "bb", "a"], [2, 4, 6]));
    let by_time = |trace| {
        let key = |_, owned: &mut OwnedRecord| match owned.get(0) {
            Some(Item::Number(time)) => Some(time),
            _ => None,
        };
        source(&schema, trace, &ConvertOptions::default(), Box::new(key)).unwrap()
    };
    let both = merged(&schema, vec![by_time(&a), by_time(&b)]).unwrap();
    let all = runtime::json(&schema, &both, JsonOptions { all: true, ..JsonOptions::default() }).unwrap();
    let lines: Vec<serde_json::Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |section: &'static str| lines.iter().filter(move |line| line["@section"] == section);
    let at = |section, offset: &serde_json::Value| of(section).find(|line| line["@offset"] == *offset).unwrap();
    let found: Vec<String> = of("s")
        .map(|record| {
            let place = at("places", &record["place"]);
            format!("{} {} {}", record["time"], at("names", &place["name"])["vfield"], place["line"])
        })
        .collect();
    let wanted = ["1 root 7", "2 root 7", "3 a 8", "4 bb 8", "5 leaf 9", "6 a 9"];
    assert_eq!(found.iter().map(|line| line.replace('"', "")).collect::<Vec<_>>(), wanted, "{all}");
    // `root` at line 7 is one place; `a` is one name that occurs at two lines.
    assert_eq!((of("names").count(), of("places").count()), (4, 5), "{all}");
}
