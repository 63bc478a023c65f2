//! Converts a trace to another DTD, matching fields by name.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::common::{config, diff, offsets, seed};
use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf::{Error, ErrorKind};
use metatf_tests::example::Example;
use metatf_tests::random::{Choices, options};
use metatf_tests::{Value, runtime};
use metatf_tools::compare::CompareOptions;
use metatf_tools::convert::{ConvertError, ConvertOptions, Converter, Unconvertible};
use proptest::prelude::*;
use std::collections::HashMap;

fn converted(source: &Schema, target: &Schema, trace: &[u8], how: &WriteOptions, drop: &ConvertOptions) -> Vec<u8> {
    try_converted(source, target, trace, how, drop).unwrap()
}

fn try_converted(
    source: &Schema,
    target: &Schema,
    trace: &[u8],
    how: &WriteOptions,
    drop: &ConvertOptions,
) -> Result<Vec<u8>, ConvertError> {
    let mut converter = Converter::new(source, target, drop).unwrap();
    let mut writer = Writer::new(Vec::new(), target, how).unwrap();
    let mut trace = runtime::open(source, trace).unwrap();
    let copied = converter.copy(&mut trace, &mut writer, how.version == 1, &mut || {});
    match copied {
        Ok(()) => Ok(writer.finish().unwrap()),
        Err(error) => {
            writer.abandon();
            Err(error)
        }
    }
}

const PLAIN: &str = "
address.width = 4; address.interpretation = none;
time.width = 2; time.interpretation = delta 0;
section heap 1 {
    alloc: (tag, time, address, size, n*(address, m*site), name, vfield) {
        tag.value = 4;
        size.width = 2; size.interpretation = none;
        n.width = 1; n.interpretation = none;
        m.width = 1; m.interpretation = none;
        site.width = 2; site.interpretation = delta 0;
        name.width = 1; name.interpretation = sectionOffset 2;
    }
    free: (tag, time, address) { tag.value = 5; }
}
section names 2 { text: (vfield, up, kind) {
    kind.width = 1; kind.interpretation = none;
    up.width = 1; up.interpretation = sectionOffset 2;
} }
section loose 3 { pair: (a, b) { a.width = 8; a.interpretation = none; b.width = 8; b.interpretation = none; } }
";

/// The same fields in other sections and other orders, as streams, and with other names for counts and lengths.
const SPLIT: &str = "
address.interpretation = sectionStride 9 1;
time.interpretation = sectionStride 8 1;
section frees 4 { free: (tag, address, time, heap) { tag.value = 7; heap.interpretation = default 5; } }
section allocs 5 {
    alloc: (tag, name, vfield, n*(j*site, address), address, size, time) {
        tag.value = 4;
        size.width = 1; size.interpretation = baseOffset 100;
        n.width = 1; n.interpretation = none;
        j.width = 1; j.interpretation = none;
        site.interpretation = sectionStride 8 1;
        name.width = 2; name.interpretation = sectionOffset 1;
    }
}
section strings 1 { string: (up, kind, vfield) {
    kind.width = 8; kind.interpretation = none;
    up.width = 8; up.interpretation = sectionOffset 1;
} }
section spare 3 { pair: (b, a) { a.width = 8; a.interpretation = none; b.width = 8; b.interpretation = none; } }
section addresses 9 { item: (v) { v.width = 8; v.interpretation = delta 0; } }
section times 8 { moment: (v) { v.width = 8; v.interpretation = none; } }
";

/// Returns a random trace of `PLAIN`.
fn plain(schema: &Schema, c: &mut Choices<'_>, how: &WriteOptions) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), schema, how).unwrap();
    let numbers = |values: &[u64]| runtime::owned(&values.iter().copied().map(Value::Number).collect::<Vec<_>>());
    let [heap, names, loose] = [1, 2, 3];
    let mut known = vec![0];
    while !c.is_spent() {
        let time = Value::Number(c.number());
        match c.below(8) {
            0..3 => {
                let text = vec![b'a' + c.byte() % 4; c.below(3)];
                let up = *c.pick(&known);
                let values =
                    [Value::Number(text.len() as u64), Value::Bytes(text), Value::Number(up), Value::Number(7)];
                known.push(writer.element(names, true, &runtime::owned(&values)).unwrap());
            }
            3 => drop(writer.element(loose, false, &numbers(&[c.number(), c.number()])).unwrap()),
            4 => writer.inner().comment(heap, b"so far").unwrap(),
            5 => writer.record(heap, 4, &runtime::owned(&[time, Value::Number(c.number())])).unwrap(),
            _ if known.len() == 1 => {}
            _ => {
                let items = c.below(3) as u64;
                let mut values = vec![time, Value::Number(c.number()), Value::Number(c.number()), Value::Number(items)];
                for _ in 0..items {
                    let sites = c.below(3) as u64;
                    values.extend([Value::Number(c.number()), Value::Number(sites)]);
                    values.extend((0..sites).map(|_| Value::Number(c.number())));
                }
                let name = *c.pick(known.get(1..).unwrap());
                values.extend([Value::Number(name), Value::Number(2), Value::Bytes(b"xy".to_vec())]);
                writer.record(heap, 3, &runtime::owned(&values)).unwrap();
            }
        }
    }
    writer.finish().unwrap()
}

/// Fields of `PLAIN`, and its records with the first setting of their blocks.
const FIELDS: [&str; 11] = ["address", "time", "size", "n", "m", "site", "name", "kind", "up", "a", "b"];
const RECORDS: [(&str, &str); 2] = [("alloc", "tag.value = 4;"), ("free", "tag.value = 5;")];

/// Returns new names for some fields and records of `PLAIN`.
fn new_names(c: &mut Choices<'_>) -> Vec<(&'static str, String)> {
    let names = FIELDS.into_iter().chain(RECORDS.map(|(name, _)| name));
    let mut chosen = Vec::new();
    for name in names {
        if c.chance(50) {
            chosen.push((name, format!("{name}_{}", c.below(3))));
        }
    }
    chosen
}

/// Replaces complete words of a text by their new names, or the reverse.
fn with_names<'n>(text: &str, names: impl Iterator<Item = (&'n str, &'n str)>) -> String {
    let names: HashMap<&str, &str> = names.collect();
    let words = text.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
    let renamed = words.map(|word| {
        let end = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_').len();
        let (name, rest) = word.split_at(end);
        format!("{}{rest}", names.get(name).unwrap_or(&name))
    });
    renamed.collect()
}

proptest! {
    #![proptest_config(config(150))]

    /// After a rename, `was` matches all values of a trace with the old names.
    #[test]
    fn renamed_fields_and_records(data in prop::collection::vec(any::<u8>(), 0..400), how in prop::collection::vec(any::<u8>(), 0..80)) {
        let c = &mut Choices::new(&how);
        let names = new_names(c);
        let mut dtd = with_names(PLAIN, names.iter().map(|(old, new)| (*old, &**new)));
        for (old, new) in &names {
            let was = *c.pick(&["", "older, ", "one , two,"]);
            dtd = match RECORDS.iter().find(|(record, _)| record == old) {
                Some((_, begin)) => dtd.replace(begin, &format!("{begin} tag.was = \"{was}{old}\";")),
                None => format!("{new}.was = \"{was}{old}\";\n{dtd}"),
            };
        }
        let (source, target) = (runtime::schema(PLAIN), runtime::schema(&dtd));
        let ways = [options(c), options(c)].map(|way| WriteOptions { version: 1, ..way });
        let trace = plain(&source, &mut Choices::new(&data), &ways[0]);
        let new = converted(&source, &target, &trace, &ways[1], &ConvertOptions::default());
        let json = |schema, trace| runtime::json(schema, trace, metatf::dynamic::JsonOptions::default()).unwrap();
        // Items are named after their count.
        let items: Vec<_> = names.iter().map(|(old, new)| (format!("{old}_items"), format!("{new}_items"))).collect();
        let back = names.iter().map(|(old, new)| (&**new, *old)).chain(items.iter().map(|(old, new)| (&**new, &**old)));
        let old_names = with_names(&json(&target, &new), back);
        let again = converted(&source, &source, &trace, &ways[1], &ConvertOptions::default());
        prop_assert_eq!(old_names, json(&source, &again), "{}", dtd);
    }

    /// Converting a trace to its own DTD changes nothing.
    #[test]
    fn nothing_changes_in_the_same_dtd(seed in seed(400, 500), how in prop::collection::vec(any::<u8>(), 0..10)) {
        let example = Example::new(&seed, true);
        let offsets = offsets(&example.schema);
        let drop = ConvertOptions { drop: offsets.clone(), ..ConvertOptions::default() };
        let how = WriteOptions { version: example.options.version, ..options(&mut Choices::new(&how)) };
        let again = match try_converted(&example.schema, &example.schema, &example.trace, &how, &drop) {
            Ok(again) => again,
            // The length of a byte array was one of the dropped offsets.
            Err(ConvertError::Write(Error { kind: ErrorKind::Usage(_) | ErrorKind::Expression, .. })) if !offsets.is_empty() => return Ok(()),
            Err(error) => panic!("{error:?}\n{}", example.about()),
        };
        let options = CompareOptions { order: true, ignore: offsets, ..CompareOptions::default() };
        let result = diff([&example.schema; 2], [&example.trace, &again], &options);
        prop_assert!(result.is_same(), "{:?}\n{}", result.differences.first(), example.about());
    }

    /// Converting through streams, other sections and other tables can be reversed.
    #[test]
    fn there_and_back(data in prop::collection::vec(any::<u8>(), 0..400), how in prop::collection::vec(any::<u8>(), 0..30)) {
        let (source, target) = (runtime::schema(PLAIN), runtime::schema(SPLIT));
        let how = &mut Choices::new(&how);
        let ways = [options(how), WriteOptions { version: 1, ..options(how) }, options(how)];
        let trace = plain(&source, &mut Choices::new(&data), &WriteOptions { version: 1, ..ways[0].clone() });
        let drop = ConvertOptions::default();
        let split = converted(&source, &target, &trace, &ways[1], &drop);
        let drop = ConvertOptions { drop: vec!["free.heap".into()], ..drop };
        let back = converted(&target, &source, &split, &WriteOptions { version: 1, ..ways[2].clone() }, &drop);
        let result = diff([&source; 2], [&trace, &back], &CompareOptions::default());
        prop_assert!(result.is_same(), "{:?}", result.differences.first());
        prop_assert!(result.only.is_empty());
    }
}

#[test]
fn what_does_not_fit_is_told_at_once() {
    let number = "x.width = 2; x.interpretation = none;";
    let fields = |names: &[&str]| names.iter().map(|name| number.replace('x', name)).collect::<String>();
    let source = runtime::schema(&format!(
        "section s 1 {{
            r: (tag, a, b, n*c, p, q, gone, m*lost, vfield) {{
                tag.value = 4; {} p.width = 1; p.interpretation = sectionOffset 2;
            }}
            other: (tag) {{ tag.value = 5; }}
        }}
        section table 2 {{ text: vfield; }}
        section loose 3 {{ element: vfield; }}",
        fields(&["a", "b", "n", "c", "q", "gone", "m", "lost"])
    ));
    let target = runtime::schema(&format!(
        "section s 1 {{
            r: (tag, a, b, c, p, q) {{
                tag.value = 4; {} b.width = 20; b.interpretation = none; q.width = 1; q.interpretation = sectionOffset 2;
            }}
        }}
        section table 2 {{ text: vfield; }}",
        fields(&["a", "c", "p"])
    ));
    let wrong = |drop: &[&str], drop_records: &[&str]| {
        let names = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        Converter::new(&source, &target, &ConvertOptions { drop: names(drop), drop_records: names(drop_records) })
            .map(|_| ())
    };
    let all = wrong(&[], &[]).unwrap_err();
    assert_eq!(all.fields, ["r.n", "r.gone", "r.lost", "r.vfield.length", "r.vfield.data"]);
    assert_eq!(all.records, ["other", "element"]);
    let others = [
        "r.b is a number",
        "r.p is a section offset",
        "r.q is a section offset",
        "the trace and the target repeat r.c",
    ];
    assert!(all.others.iter().zip(others).all(|(told, other)| told.starts_with(other)), "{all}");
    assert_eq!(all.others.len(), others.len());
    let rest = ["b", "r.p", "q", "c", "gone", "lost", "vfield"];
    let unknown = wrong(&[&rest[..], &["nothing"]].concat(), &["other", "element", "none"]).unwrap_err();
    let names = vec!["field nothing".into(), "record none".into()];
    assert_eq!(unknown, Unconvertible { unknown: names, ..Unconvertible::default() });
    assert_eq!(wrong(&rest, &["other", "element"]), Ok(()));
}

/// A field that only the target has gets its default, its constant, or zeros.
#[test]
fn new_fields_have_their_defaults() {
    let source =
        runtime::schema("section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }");
    let target = runtime::schema(
        "section s 1 { r: (tag, b, c, d, e, a, vfield, n*a2) { tag.value = 9; a.width = 1; a.interpretation = delta 0;
            b.interpretation = default 77; c.value = 3; c.width = 1; c.interpretation = none;
            d.width = 9; d.interpretation = none; e.width = 2; e.interpretation = delta 50;
            n.interpretation = default 2; a2.width = 1; a2.interpretation = none; } }",
    );
    let mut writer = Writer::new(Vec::new(), &source, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    owned.push_number(200);
    writer.record(1, 3, &owned).unwrap();
    let trace = writer.finish().unwrap();
    let new = converted(&source, &target, &trace, &WriteOptions::default(), &ConvertOptions::default());
    let json = runtime::json(&target, &new, metatf::dynamic::JsonOptions::default()).unwrap();
    let zeros = "00".repeat(9);
    assert_eq!(
        json,
        format!(
            "{{\"@section\":\"s\",\"@record\":\"r\",\"b\":77,\"d\":\"{zeros}\",\"e\":0,\"a\":200,\"vfield\":\"\",\"n\":2,\"a2\":[0,0]}}\n"
        )
    );
}
