//! For good vectors (all of them with `METATF_ALL=1`), the generated reader reads the trace and the generated writer
//! writes it again. The result must be the vector's expected records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use metatf::container::{Class, MAGIC, Order, Reader};
use metatf::dynamic;
use metatf::reader::recognized;
use metatf::typed::TraceOptions;
use metatf_test::vectors;
use metatf_tests::generated;
use serde_json::Value;

fn lines(text: &[u8]) -> Vec<Value> {
    text.split(|&b| b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

/// Opens the trace in the mode of its case.
fn open<'t>(number: usize, case: &Value, bytes: &'t [u8]) -> metatf::Result<Reader<'t>> {
    match case["mode"].as_str() {
        Some("salvage") => Reader::salvage_slice(bytes),
        // A file without a header, whose start declares how to read it.
        Some("dump") if !bytes.starts_with(&MAGIC) => {
            let container = Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?;
            recognized(&generated::format(number), container)
        }
        Some("raw") => {
            let class = Class::from_number(u8::try_from(case["class"].as_u64().unwrap()).unwrap()).unwrap();
            let order = if case["byteorder"] == "big" { Order::Big } else { Order::Little };
            let format = generated::schema(number).format;
            let section = format.sections.iter().find(|s| case["section"] == *s.name).unwrap().number;
            Reader::raw_from_slice(bytes, class, order, section)
        }
        _ => Reader::from_slice(bytes),
    }
}

/// Checks the records of the vector. Returns whether it has a trace.
fn check(name: &str, number: usize) -> bool {
    let folder = vectors("good").join(name);
    let case: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
    let Some(bytes) = ["trace.mtf", "trace.raw"].iter().find_map(|file| std::fs::read(folder.join(file)).ok()) else {
        return false;
    };
    let rewritten = |by_name| {
        let options = TraceOptions::new().salvage(case["mode"] == "salvage").by_name(by_name);
        let trace = open(number, &case, &bytes).map_err(Into::into);
        trace.and_then(|trace| generated::rewritten(number, options, trace))
    };
    let mut written = rewritten(false);
    if case["refused"] == true {
        let error = written.unwrap_err().to_string();
        assert!(error.contains("the trace has version") && error.contains("by_name"), "{name}: {error}");
        written = rewritten(true);
    }
    let written = written.unwrap_or_else(|e| panic!("{name}: {e}"));

    let mut universal = dynamic::Trace::from_slice(&written).unwrap();
    let mut text = Vec::new();
    while universal.next_json(&mut text, dynamic::JsonOptions::default()).unwrap() {
        text.push(b'\n');
    }
    let by_name = folder.join("expected_by_name.jsonl");
    let expected = if by_name.exists() { by_name } else { folder.join("expected.jsonl") };
    let mut expected = lines(&std::fs::read(expected).unwrap());
    if name == "v1-embedded-first" {
        // The embedded DTD, which has `size`, is read by name into the format, which has `bytes_given`.
        for alloc in expected.iter_mut().filter_map(Value::as_object_mut).filter(|o| o.contains_key("size")) {
            alloc.shift_remove("size");
            alloc.insert("bytes_given".to_owned(), 0.into());
        }
    }
    assert_eq!(lines(&text), expected, "{name}");
    true
}

#[test]
fn good_vectors() {
    let folders = std::fs::read_dir(vectors("good")).unwrap();
    let names = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
    let numbered = names.filter_map(|name| generated::number_of(&name).map(|number| (name, number)));
    let checked = numbered.filter(|(name, number)| check(name, *number)).count();
    let all = std::env::var_os("METATF_ALL").is_some_and(|value| value == "1");
    assert!(checked > if all { 50 } else { 20 }, "{checked}");
}
