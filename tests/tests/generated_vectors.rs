//! Every good vector, read by the reader that is generated from its DTD and written again by the writer that is: what
//! comes out are the vector's expected records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use metatf::container::{Class, Order, Reader, WriteOptions};
use metatf::dynamic;
use metatf::typed::{DataRecord, Protocol, Trace, TraceOptions, Writer};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// What is done with every vector.
type Check = fn(&str);

include!(concat!(env!("OUT_DIR"), "/vectors.rs"));

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/good").join(name)
}

fn lines(text: &[u8]) -> Vec<Value> {
    text.split(|&b| b == b'\n').filter(|l| !l.is_empty()).map(|l| serde_json::from_slice(l).unwrap()).collect()
}

/// The trace as its case says.
fn open<'t, P: Protocol>(name: &str, case: &Value, bytes: &'t [u8]) -> Trace<'t, P> {
    let options = match case["mode"].as_str() {
        Some("salvage") => TraceOptions::new().salvage(true),
        _ => TraceOptions::new(),
    };
    if case["mode"] != "raw" {
        return options.from_slice(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let class = Class::from_number(u8::try_from(case["class"].as_u64().unwrap()).unwrap()).unwrap();
    let order = if case["byteorder"] == "big" { Order::Big } else { Order::Little };
    let section = P::FORMAT.sections.iter().find(|s| case["section"] == *s.name).unwrap().number;
    options.read(Reader::raw_from_slice(bytes, class, order, section).unwrap()).unwrap()
}

fn check<P: Protocol>(name: &str)
where
    P::Record<Vec<u8>>: DataRecord,
{
    let folder = folder(name);
    let case: Value = serde_json::from_slice(&std::fs::read(folder.join("case.json")).unwrap()).unwrap();
    let Some(bytes) = ["trace.mtf", "trace.raw"].iter().find_map(|file| std::fs::read(folder.join(file)).ok()) else {
        return;
    };
    let mut trace = open::<P>(name, &case, &bytes);
    let mut writer = Writer::<Vec<u8>, P>::with_options(Vec::new(), &WriteOptions::default()).unwrap();
    writer.set_keep_order(true);
    while let Some(record) = trace.next_owned().unwrap_or_else(|e| panic!("{name}: {e}")) {
        writer.write(&record).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let written = writer.finish().unwrap();

    let mut universal = dynamic::Trace::from_slice(&written).unwrap();
    let mut text = Vec::new();
    while universal.next_json(&mut text, dynamic::JsonOptions::default()).unwrap() {
        text.push(b'\n');
    }
    let mut expected = lines(&std::fs::read(folder.join("expected.jsonl")).unwrap());
    if name == "v1-embedded-first" {
        // The embedded DTD, which has `size`, is read by name into the format's, which has `bytes_given`.
        for alloc in expected.iter_mut().filter_map(Value::as_object_mut).filter(|o| o.contains_key("size")) {
            alloc.shift_remove("size");
            alloc.insert("bytes_given".to_owned(), 0.into());
        }
    }
    assert_eq!(lines(&text), expected, "{name}");
}

#[test]
fn good_vectors() {
    assert!(VECTORS.len() > 50);
    for (name, check) in VECTORS {
        check(name);
    }
}
