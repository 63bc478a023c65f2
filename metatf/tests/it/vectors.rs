//! Tests the dynamic reader with the conformance vectors. Every good trace must yield the expected JSON lines. Every
//! bad trace must yield the records before the error and then an error at one of the positions allowed by its note.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use metatf::container::{Class, Order, Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace, Writer};
use metatf_test::vectors;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn cases(folder: &str) -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> =
        fs::read_dir(vectors(folder)).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    cases.sort();
    assert!(cases.len() > 30, "the vectors are there");
    cases
}

fn schema(container: &Reader<'_>, case: &Path, forced: bool) -> Result<Schema, String> {
    match (container.dtd_text(), forced) {
        (Some(_), false) => Schema::embedded(container).map_err(|e| e.to_string()),
        _ => {
            let text = fs::read(case.join("format.dtd")).unwrap();
            Schema::parse("format.dtd", &text).map_err(|e| e.to_string())
        }
    }
}

/// Returns the JSON lines of a trace and the error that ended reading.
fn dump(trace: &mut Trace<'_>, all: bool) -> (Vec<u8>, Option<metatf::Error>) {
    let mut out = Vec::new();
    // The records of a file without a header may be elements.
    let sections = &trace.schema().format.sections;
    let has_records = sections.iter().any(|s| !s.stream && s.records.iter().any(|record| *record > 2));
    trace.reader_mut().set_all(all || !has_records);
    loop {
        match trace.next_json(&mut out, JsonOptions { all, ..JsonOptions::default() }) {
            Ok(true) => {}
            Ok(false) => return (out, None),
            Err(error) => return (out, Some(error)),
        }
    }
}

/// Parses JSON lines without the tags of predefined records, which the vectors do not specify.
fn lines(text: &[u8]) -> Vec<Vec<(String, Value)>> {
    let line = |line: &str| {
        let Value::Object(object) = serde_json::from_str(line).unwrap() else { panic!("not an object: {line}") };
        let predefined = ["comment", "section", "metadata"].contains(&object["@record"].as_str().unwrap_or(""));
        object.into_iter().filter(|(key, _)| !(predefined && key == "tag")).collect()
    };
    let line = |text: &str| -> Vec<(String, Value)> {
        if text.contains("\"@group\"") || text.contains("\"@reset\"") {
            let Value::Object(object) = serde_json::from_str(text).unwrap() else { panic!("not an object: {text}") };
            return object.into_iter().collect();
        }
        line(text)
    };
    std::str::from_utf8(text).unwrap().lines().filter(|l| !l.is_empty()).map(line).collect()
}

fn same(got: &[u8], expected: &Path, name: &str, failures: &mut Vec<String>) {
    let (got, want) = (lines(got), lines(&fs::read(expected).unwrap()));
    if let Some(i) = (0..got.len().max(want.len())).find(|&i| got.get(i) != want.get(i)) {
        failures.push(format!("{name}, line {}: got {:?}, expected {:?}", i + 1, got.get(i), want.get(i)));
    }
}

/// Returns whether the case is a headerless file whose DTD describes how the file begins.
fn says_how_it_is_read(case: &Path, info: &Value) -> bool {
    info["mode"] == "dump" && case.join("trace.raw").exists()
}

fn open<'a>(case: &Path, bytes: &'a [u8], info: &Value) -> Result<Trace<'a>, String> {
    let text = |e: metatf::Error| e.to_string();
    let mode = info["mode"].as_str().unwrap();
    if says_how_it_is_read(case, info) {
        let schema = Schema::parse("format.dtd", &fs::read(case.join("format.dtd")).unwrap()).unwrap();
        return Trace::raw_from_slice(schema, bytes).map_err(|e| e.to_string());
    }
    let container = match mode {
        "raw" => {
            let class = Class::from_number(u8::try_from(info["class"].as_u64().unwrap()).unwrap()).unwrap();
            let order = if info["byteorder"] == "little" { Order::Little } else { Order::Big };
            let dtd = fs::read(case.join("format.dtd")).unwrap();
            let schema = Schema::parse("format.dtd", &dtd).unwrap();
            let section = schema.dtd.section_named(info["section"].as_str().unwrap()).unwrap().number;
            Reader::raw_from_slice(bytes, class, order, section).map_err(text)?
        }
        "salvage" => Reader::salvage_slice(bytes).map_err(text)?,
        _ => Reader::from_slice(bytes).map_err(text)?,
    };
    let schema = schema(&container, case, mode == "raw")?;
    let mut trace = Trace::new(schema, container).map_err(text)?;
    trace.reader_mut().set_salvage(mode == "salvage");
    Ok(trace)
}

#[test]
fn good_traces_print_as_expected() {
    let mut failures = Vec::new();
    for case in cases("good") {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let info: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        // The native format of HATF 1.0 is not Meta-TF.
        if info["mode"] == "hatf" {
            continue;
        }
        let file = if case.join("trace.raw").exists() { "trace.raw" } else { "trace.mtf" };
        let bytes = fs::read(case.join(file)).unwrap();
        for (all, expected) in [(false, "expected.jsonl"), (true, "expected_all.jsonl")] {
            let expected = case.join(expected);
            if !expected.exists() || (all && info["mode"] == "salvage") {
                continue;
            }
            match open(&case, &bytes, &info) {
                Err(error) => failures.push(format!("{name}: {error}")),
                Ok(mut trace) => {
                    let (out, error) = dump(&mut trace, all);
                    same(&out, &expected, &name, &mut failures);
                    if let Some(error) = error {
                        failures.push(format!("{name}: {error}"));
                    }
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Writing the expected records reproduces the file byte for byte.
#[test]
fn files_that_say_how_they_are_read_are_written_again() {
    let mut written = 0;
    for case in cases("good") {
        let info: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        if !says_how_it_is_read(&case, &info) {
            continue;
        }
        let bytes = fs::read(case.join("trace.raw")).unwrap();
        let trace = open(&case, &bytes, &info).unwrap();
        let order = trace.reader().container().header().order;
        let options = WriteOptions { raw: true, version: 0, order, ..WriteOptions::default() };
        let mut writer = Writer::new(Vec::new(), trace.schema(), &options).unwrap();
        let mut owned = OwnedRecord::default();
        // Without this file, the case is about recognizing the file, and does not list its metadata.
        let Ok(lines) = fs::read_to_string(case.join("expected_all.jsonl")) else { continue };
        for line in lines.lines() {
            let line = trace.schema().read_json(line.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        }
        assert_eq!(writer.finish().unwrap(), bytes, "{}", case.display());
        written += 1;
    }
    assert!(written > 3, "{written} vectors");
}

#[test]
fn bad_traces_end_in_an_error_at_its_place() {
    let mut failures = Vec::new();
    for case in cases("bad/trace") {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(bytes) = fs::read(case.join("trace.mtf")) else { continue };
        let note: Value = serde_json::from_slice(&fs::read(case.join("note.json")).unwrap()).unwrap();
        let offsets: Vec<u64> = note["offsets"].as_array().unwrap().iter().map(|o| o.as_u64().unwrap()).collect();
        let container = match Reader::from_slice(&bytes) {
            Ok(container) => container,
            Err(error) => {
                if !offsets.contains(&error.place.offset) {
                    failures.push(format!("{name}: {error}, expected at {offsets:?}"));
                }
                continue;
            }
        };
        let schema = match schema(&container, &case, false) {
            Ok(schema) => schema,
            Err(_) if offsets.is_empty() => continue,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        let error = match Trace::new(schema, container) {
            Ok(mut trace) => {
                let (out, error) = dump(&mut trace, false);
                if case.join("expected.jsonl").exists() {
                    same(&out, &case.join("expected.jsonl"), &name, &mut failures);
                }
                error
            }
            Err(error) => Some(error),
        };
        match error {
            None => failures.push(format!("{name}: no error ({})", note["what"])),
            Some(error) if !offsets.contains(&error.place.offset) => {
                failures.push(format!("{name}: {error}, expected at {offsets:?} ({})", note["what"]));
            }
            Some(_) => {}
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Encodes JSON lines like `metatfc convert`.
fn encode(schema: &Schema, text: &[u8], options: &WriteOptions) -> Result<Vec<u8>, String> {
    let mut writer = Writer::new(Vec::new(), schema, options).map_err(|e| e.to_string())?;
    let mut owned = OwnedRecord::default();
    for (i, line) in text.split(|&b| b == b'\n').enumerate().filter(|(_, l)| !l.is_empty()) {
        let line = schema.read_json_in(options.order, line, &mut owned).map_err(|e| format!("line {}: {e}", i + 1))?;
        writer.write(&line, &owned).map_err(|e| format!("line {}: {e}", i + 1))?;
    }
    writer.finish().map_err(|e| e.to_string())
}

/// Returns lines without offsets and `section` records, which depend on the container.
fn comparable(text: &[u8]) -> Vec<Vec<(String, Value)>> {
    let mut lines = lines(text);
    lines.retain(|line| !line.iter().any(|(k, v)| k == "@record" && v == "section"));
    for line in &mut lines {
        line.retain(|(key, _)| key != "@offset");
    }
    lines
}

#[test]
fn json_lines_encode_to_the_same_records() {
    let mut failures = Vec::new();
    for case in cases("good") {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let info: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
        if info["mode"] == "hatf" || info["mode"] == "salvage" {
            continue;
        }
        let schema = Schema::parse("format.dtd", &fs::read(case.join("format.dtd")).unwrap()).unwrap();
        for (all, file) in [(true, "expected_all.jsonl"), (false, "expected.jsonl")] {
            // Metadata values of default width depend on the class, and the DTD of some cases differs from the embedded
            // one.
            let is_other = name == "v1-embedded-first" || case.join("expected_by_name.jsonl").exists();
            let lossy = name == "metadata-every-property-class2-big" || is_other;
            if !case.join(file).exists() || lossy {
                continue;
            }
            let want = fs::read(case.join(file)).unwrap();
            for (class, order) in [(Class::Bits32, Order::Little), (Class::Bits64, Order::Big)] {
                let wide = class == Class::Bits64 && name.contains("every-property");
                if wide {
                    continue;
                }
                let options = WriteOptions { class, order, ..WriteOptions::default() };
                let bytes = match encode(&schema, &want, &options) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        failures.push(format!("{name}: {error}"));
                        continue;
                    }
                };
                let mut trace = Trace::from_slice(&bytes).unwrap();
                let (out, error) = dump(&mut trace, all);
                let (mut got, mut want) = (comparable(&out), comparable(&want));
                // The trace states values of the file's header as metadata.
                if says_how_it_is_read(&case, &info) {
                    let is_data = |line: &Vec<(String, Value)>| !line.iter().any(|(_, value)| value == "metadata");
                    got.retain(is_data);
                    want.retain(is_data);
                }
                if let Some(i) = (0..got.len().max(want.len())).find(|&i| got.get(i) != want.get(i)) {
                    failures.push(format!(
                        "{name}, record {}: got {:?}, expected {:?}",
                        i + 1,
                        got.get(i),
                        want.get(i)
                    ));
                }
                failures.extend(error.map(|e| format!("{name}: {e}")));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
