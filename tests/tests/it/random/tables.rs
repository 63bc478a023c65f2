//! Writer features that lines do not use: interning tables, permanent encodings, automatic groups, and resolved
//! offsets.

use super::common::config;
use metatf::Change;
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, Writer};
use metatf::format::Interpretation;
use metatf_tests::random::{Choices, options};
use metatf_tests::{Value, What, runtime};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;

const DTD: &str = r#"
    type.width = 4;
    section names 1 { name: vfield { vfield.length.width = 2; } }
    section sizes 2 { size_item: (item) { item.width = 8; item.interpretation = delta 0; } }
    section heap 3 {
        alloc: (tag, type, size, at) {
            tag.value = 4; type.interpretation = sectionOffset 1;
            size.interpretation = sectionStride 2 1; at.width = 1; at.interpretation = delta 0;
        }
        free: (tag, at) { tag.value = 5; at.width = 1; at.interpretation = baseOffset alloc.at.value; }
    }
"#;

/// Sections of strings in every form, and a record that refers to all of them.
const STRINGS: &str = r#"
    section utf 1 { u: vfield { vfield.data.format = "utf8"; } }
    section zero 2 { z: vfield { vfield.data.format = "cstring"; } }
    section fixed 3 { f: (data) { data.width = 12; data.interpretation = none; data.format = "cstring"; } }
    section ended 4 { e: (data) { data.width = until 10; data.interpretation = none; data.format = "cstring"; } }
    section s 5 { r: (tag, a, b, c, d) { tag.value = 4;
        a.width = 4; a.interpretation = sectionOffset 1; b.width = 4; b.interpretation = sectionOffset 2;
        c.width = 4; c.interpretation = sectionOffset 3; d.width = 4; d.interpretation = sectionOffset 4; } }
"#;

proptest! {
    #![proptest_config(config(100))]

    /// Every record resolves to its original string, in its group and after seeking, and equal strings are interned as
    /// one.
    #[test]
    fn interned_strings_are_found(bytes in vec(any::<u8>(), 0..400), how in vec(any::<u8>(), 0..8)) {
        let schema = runtime::schema(DTD);
        let mut c = Choices::new(&bytes);
        let options = WriteOptions { version: 1, ..options(&mut Choices::new(&how)) };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        let [names, heap] = [1, 3];
        let (alloc, free) = (5, 6);
        let (mut expected, mut strings, mut known) = (Vec::new(), Vec::new(), HashMap::new());
        while !c.is_spent() {
            match c.below(8) {
                0..4 => {
                    let length = c.below(300);
                    let text = vec![c.byte() % 3; length];
                    let name = runtime::owned(&[Value::Number(length as u64), Value::Bytes(text.clone())]);
                    let offset = writer.intern(names, &name).unwrap();
                    prop_assert_eq!(*known.entry(text.clone()).or_insert(offset), offset);
                    strings.push(text);
                    expected.push(vec![offset, c.number(), c.number()]);
                    let values: Vec<_> = expected.last().unwrap().iter().copied().map(Value::Number).collect();
                    writer.record(heap, alloc, &runtime::owned(&values)).unwrap();
                }
                4 | 5 => {
                    expected.push(vec![c.number()]);
                    let values: Vec<_> = expected.last().unwrap().iter().copied().map(Value::Number).collect();
                    writer.record(heap, free, &runtime::owned(&values)).unwrap();
                }
                6 => {
                    let changes = [
                        Change::Width(u8::try_from(1 + c.below(8)).unwrap()),
                        Change::Interpretation(Interpretation::None),
                        Change::Interpretation(Interpretation::BaseOffset(c.number())),
                        Change::Interpretation(Interpretation::Delta(c.number())),
                        Change::Interpretation(Interpretation::Stride(c.number(), c.number())),
                    ];
                    let change = *c.pick(&changes);
                    writer.inner().set(heap, alloc, 3, change).unwrap();
                }
                _ if c.chance(30) => writer.inner().start_group().unwrap(),
                _ => writer.inner().user_metadata("{\"a\":1}").unwrap(),
            }
        }
        let trace = writer.finish().unwrap();

        let mut reader = runtime::open(&schema, &trace).unwrap();
        let mut seen = Vec::new();
        let mut texts = strings.iter();
        while let Some(record) = runtime::next(&mut reader).unwrap() {
            if record.what != What::Record {
                continue;
            }
            let numbers: Vec<u64> = record.values.iter().filter_map(|v| if let Value::Number(n) = v { Some(*n) } else { None }).collect();
            if record.record == "alloc" {
                let text = texts.next().unwrap();
                let found = runtime::element_at(&mut reader, names, numbers[0]).unwrap();
                prop_assert_eq!(found, vec![Value::Number(text.len() as u64), Value::Bytes(text.clone())]);
            }
            seen.push(numbers);
        }
        prop_assert_eq!(&seen, &expected);
        if !expected.is_empty() {
            let n = c.below(expected.len()).max(expected.len() / 2);
            reader.reader_mut().seek(n as u64).unwrap();
            let record = loop {
                match runtime::next(&mut reader).unwrap() {
                    Some(seen) if seen.what == What::Record => break seen,
                    Some(_) => {}
                    None => panic!("record {n} is not there"),
                }
            };
            let numbers: Vec<Value> = expected[n].iter().copied().map(Value::Number).collect();
            prop_assert_eq!(&record.values, &numbers);
            if record.record == "alloc" {
                prop_assert!(runtime::element_at(&mut reader, names, expected[n][0]).is_ok());
            }
        }
        prop_assert!(Reader::from_slice(&trace).unwrap().chunks().is_ok());
    }

    /// A file without a header (spec 5.4) is the content of a section, here that of a version 0 trace.
    #[test]
    fn a_raw_stream_is_a_section(records in vec((any::<u64>(), any::<u64>()), 0..40), how in vec(any::<u8>(), 0..8)) {
        let schema = runtime::schema(
            "section s 7 { t: (tag, a, b) { tag.value = 4; a.width = 1; a.interpretation = delta 0; b.width = 2; b.interpretation = none; } }",
        );
        let options = WriteOptions { version: 0, ..options(&mut Choices::new(&how)) };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        for &(a, b) in &records {
            writer.record(1, 3, &runtime::owned(&[Value::Number(a), Value::Number(b)])).unwrap();
        }
        let trace = writer.finish().unwrap();
        let content = Reader::from_slice(&trace).unwrap().next_part().unwrap().map_or(0..0, |p| p.place);
        let raw = &trace[usize::try_from(content.start).unwrap()..usize::try_from(content.end).unwrap()];
        let reader = Reader::raw_from_slice(raw, options.class, options.order, 7).unwrap();
        let mut reader = metatf::dynamic::Trace::new(schema, reader).unwrap();
        let (seen, result) = runtime::drain(&mut reader);
        prop_assert_eq!(result, Ok(()));
        let read = seen.into_iter().filter(|s| s.what == What::Record).map(|s| s.values);
        let written = records.iter().map(|&(a, b)| vec![Value::Number(a), Value::Number(b)]);
        prop_assert_eq!(read.collect::<Vec<_>>(), written.collect::<Vec<_>>());
    }

    /// Strings printed in place of references are read back, whatever their bytes are and however they are stored.
    #[test]
    fn strings_printed_are_written_again(bytes in vec(any::<u8>(), 0..600), how in vec(any::<u8>(), 0..8), other in vec(any::<u8>(), 0..8)) {
        let schema = runtime::schema(STRINGS);
        let mut c = Choices::new(&bytes);
        let mut writer = Writer::new(Vec::new(), &schema, &options(&mut Choices::new(&how))).unwrap();
        while !c.is_spent() {
            let mut record = Vec::new();
            for section in 1..=4_usize {
                let length = if section == 3 { 12 } else { c.below(6) };
                let alphabet = if c.chance(50) { b"ab\0" } else { b"a\"\xff" };
                let mut text: Vec<u8> = (0..length).map(|_| *c.pick(alphabet)).collect();
                if section == 4 {
                    text.retain(|&byte| byte != b'\n');
                }
                let sized = section < 3;
                let mut element = if sized { vec![Value::Number(text.len() as u64)] } else { Vec::new() };
                element.push(Value::Bytes(text));
                record.push(Value::Number(writer.intern(section, &runtime::owned(&element)).unwrap()));
            }
            writer.record(5, 7, &runtime::owned(&record)).unwrap();
            if c.chance(10) {
                writer.inner().start_group().unwrap();
            }
        }
        let trace = writer.finish().unwrap();
        let names = JsonOptions { names: true, ..JsonOptions::default() };
        let lines = runtime::json(&schema, &trace, names).unwrap();
        let other = options(&mut Choices::new(&other));
        let again = runtime::from_json(&schema, &lines, &other).unwrap();
        prop_assert_eq!(&runtime::json(&schema, &again, names).unwrap(), &lines);
        // Each reference is printed as a string, and leads to the same element in both traces.
        let resolve = JsonOptions { resolve: true, ..JsonOptions::default() };
        let elements = |trace: &[u8]| -> Vec<String> {
            let lines = runtime::json(&schema, trace, resolve).unwrap();
            lines.split("\"element\":").skip(1).map(|rest| rest.split_once('}').unwrap().0.to_owned()).collect()
        };
        prop_assert_eq!(elements(&trace), elements(&again));
        for line in lines.lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            prop_assert!(["a", "b", "c", "d"].iter().all(|key| line[key].is_string() || line[key]["hex"].is_string()));
        }
    }
}
