//! What the module answers: values are those of the vectors, and no input stops it.

use metatf_playground::request::{State, respond};
use metatf_test::{root, vectors};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

/// Asks, and returns the answer and the bytes that come with it.
fn ask(state: &mut State, request: &Value, bytes: &[u8]) -> (Value, Vec<u8>) {
    let (answer, bytes) = respond(state, request.to_string().as_bytes(), bytes);
    (serde_json::from_slice(&answer).unwrap(), bytes)
}

/// Opens a file, and returns all its rows.
fn rows(bytes: &[u8], dtd: &str) -> Vec<Value> {
    let mut state = State::default();
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "T", "text": dtd}), bytes);
    assert!(opened["error"].is_null(), "{opened}");
    let mut all = Vec::new();
    loop {
        let (part, _) = ask(&mut state, &json!({"ask": "rows", "from": all.len(), "count": 200}), &[]);
        assert!(part["error"].is_null(), "{part}");
        all.extend(part["rows"].as_array().unwrap().iter().cloned());
        if part["end"] == true {
            return all;
        }
    }
}

/// The line of a data record as `metatfc dump --format jsonl` prints it without `--all`: members that are not said are not compared.
fn has(row: &Value, expected: &Value) -> bool {
    match (row, expected) {
        (Value::Object(row), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| row.get(key).is_some_and(|row| has(row, value)))
        }
        (Value::Array(row), Value::Array(expected)) => {
            row.len() == expected.len() && row.iter().zip(expected).all(|(row, expected)| has(row, expected))
        }
        _ => row == expected,
    }
}

/// Data records have the values of `expected.jsonl`, which `metatfc dump` is held to; their bytes are those of the file.
#[test]
fn values_and_bytes_of_the_vectors() {
    let (mut seen, mut stored) = (0, 0);
    for folder in std::fs::read_dir(vectors("good")).unwrap() {
        let folder = folder.unwrap().path();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let case: Value = serde_json::from_str(&read("case.json")).unwrap();
        if case["mode"] != "dump" {
            continue;
        }
        // Some are another's file, read by another DTD.
        let Ok(trace) = std::fs::read(folder.join("trace.mtf")) else { continue };
        let rows = rows(&trace, &read("format.dtd"));
        let records: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "record").collect();
        let expected = read("expected.jsonl");
        assert_eq!(
            records.len(),
            expected.lines().filter(|line| !line.contains("\"@record\":\"comment\"")).count(),
            "{folder:?}"
        );
        for (row, line) in records.iter().zip(expected.lines()) {
            if row["more_json"] == 0 {
                let json: Value = serde_json::from_str(row["json"].as_str().unwrap()).unwrap();
                assert!(has(&json, &serde_json::from_str(line).unwrap()), "{folder:?}: {json} is not {line}");
            }
            seen += 1;
        }
        for row in rows.iter().filter(|row| row.get("chunk").is_none() && row["more_bytes"] == 0) {
            let bytes = row["bytes"].as_str().unwrap();
            let at = usize::try_from(row["offset"].as_u64().unwrap()).unwrap();
            let in_file: String = trace[at..at + bytes.len() / 2].iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(bytes, in_file, "{folder:?}: {row}");
            // Fields lie one behind the other, and take all bytes.
            let mut end = 0;
            for field in row["fields"].as_array().unwrap() {
                assert_eq!(field["from"], end, "{folder:?}: {row}");
                end = usize::try_from(field["to"].as_u64().unwrap()).unwrap();
            }
            if row["more_fields"] == 0 && row["kind"] != "reset" && row["kind"] != "group" {
                assert_eq!(end, bytes.len() / 2, "{folder:?}: {row}");
                stored += 1;
            }
        }
    }
    assert!(seen > 500 && stored > 500, "{seen} {stored}");
}

#[test]
fn who_set_a_width() {
    let folder = vectors("good/width-changes");
    let dtd = std::fs::read_to_string(folder.join("format.dtd")).unwrap();
    let rows = rows(&std::fs::read(folder.join("trace.mtf")).unwrap(), &dtd);
    let mut setter = None;
    let mut checked = 0;
    for row in &rows {
        if row["kind"] == "metadata" {
            setter = row["number"].as_u64();
            assert!(row["sets"].as_str().unwrap().starts_with("r.a"), "{row}");
        } else if row["kind"] == "record" {
            let field = row["fields"].as_array().unwrap().iter().find(|field| field["leaf"] == 1).unwrap();
            let set = field
                .get("width_set")
                .and_then(Value::as_u64)
                .max(field.get("interpretation_set").and_then(Value::as_u64));
            assert_eq!(set, setter, "{row}");
            checked += 1;
        }
    }
    assert!(checked >= 7 && setter.is_some());
}

#[test]
fn lines_become_a_trace_with_these_lines() {
    let mut state = State::default();
    let (sample, _) = ask(&mut state, &json!({"ask": "sample", "name": "jobs"}), &[]);
    let (dtd, lines) = (sample["dtd"].as_str().unwrap(), sample["lines"].as_str().unwrap());
    for options in [json!({}), json!({"big": true, "lz4": true}), json!({"narrow": true})] {
        let (opened, trace) =
            ask(&mut state, &json!({"ask": "encode", "text": dtd, "options": options}), lines.as_bytes());
        assert!(opened["error"].is_null(), "{opened}");
        let rows = rows(&trace, "");
        let records: Vec<&Value> = rows.iter().filter(|row| row["kind"] == "record").collect();
        for (row, line) in records.iter().zip(lines.lines()) {
            let json: Value = serde_json::from_str(row["json"].as_str().unwrap()).unwrap();
            assert!(has(&json, &serde_json::from_str(line).unwrap()), "{json} is not {line}");
        }
        assert_eq!(records.len(), lines.lines().count());
        assert_eq!(rows.iter().filter(|row| row["kind"] == "metadata").count(), 2);
    }
    let (wrong, _) =
        ask(&mut state, &json!({"ask": "encode", "text": dtd, "options": {}}), b"\n{\"@section\":\"queue\"}");
    assert!(wrong["error"].as_str().unwrap().starts_with("line 2: "), "{wrong}");
}

/// Samples open, those of other programs by the built-in DTDs, and have records.
#[test]
fn samples_open() {
    let mut state = State::default();
    let (names, _) = ask(&mut state, &json!({"ask": "samples"}), &[]);
    let of = |kind: &str| -> Vec<String> {
        names[kind].as_array().unwrap().iter().map(|name| name[0].as_str().unwrap().to_owned()).collect()
    };
    for name in of("files") {
        let (_, file) = ask(&mut state, &json!({"ask": "sample", "name": name}), &[]);
        assert!(rows(&file, "").len() > 3, "{name}");
    }
    for name in of("formats").into_iter().chain(of("dtds")) {
        let (sample, _) = ask(&mut state, &json!({"ask": "sample", "name": name}), &[]);
        let (checked, _) = ask(&mut state, &json!({"ask": "check", "text": sample["dtd"]}), &[]);
        assert_eq!(checked["errors"], 0, "{name}: {checked}");
        if let Some(lines) = sample["lines"].as_str() {
            let request = json!({"ask": "encode", "text": sample["dtd"], "options": {}});
            let (opened, _) = ask(&mut state, &request, lines.as_bytes());
            assert!(opened["error"].is_null(), "{name}: {opened}");
        }
    }
    let mut dtds: Vec<String> = std::fs::read_dir(root().join("dtds"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut listed = of("dtds");
    dtds.sort();
    listed.sort();
    assert_eq!(listed, dtds);
}

/// A heap's page has the report's figures.
#[test]
fn the_page_of_a_heap() {
    let mut state = State::default();
    let (_, trace) = ask(&mut state, &json!({"ask": "sample", "name": "heap.gawk.mtf"}), &[]);
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "gawk", "text": ""}), &trace);
    assert_eq!(opened["heap"], true);
    let (_, page) = ask(&mut state, &json!({"ask": "heap"}), &[]);
    let page = String::from_utf8(page).unwrap();
    for part in ["<script id=\"payload\"", "EVENTS", "PEAK", "MOST PAGES HELD"] {
        assert!(page.contains(part), "{part}");
    }
    let (_, packets) = ask(&mut state, &json!({"ask": "sample", "name": "packets.pcap"}), &[]);
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "packets", "text": ""}), &packets);
    assert_eq!(opened["heap"], false);
    let (refused, _) = ask(&mut state, &json!({"ask": "heap"}), &[]);
    assert!(refused["error"].as_str().unwrap().starts_with("packets: "), "{refused}");
}

#[test]
fn what_is_no_trace() {
    let mut state = State::default();
    for (bytes, says) in [(&b"hello"[..], "no trace"), (&[0x1f, 0x8b, 8, 0], "unpack it first"), (b"\x7fMTF", "")] {
        let (answer, _) = ask(&mut state, &json!({"ask": "open", "name": "F", "text": "section"}), bytes);
        assert!(answer["error"].as_str().unwrap().contains(says), "{answer}");
    }
    let (answer, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 1}), &[]);
    assert_eq!(answer["error"], "no file is open");
}

fn golden() -> Vec<Vec<u8>> {
    let folder: &Path = &root().join("tests/golden/1.0");
    let small = |bytes: &Vec<u8>| bytes.len() < 20_000;
    std::fs::read_dir(folder).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap()).filter(small).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Damaged files are answered by a sentence, or by rows.
    #[test]
    fn damaged_files(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in prop::option::of(any::<prop::sample::Index>())) {
        let files = golden();
        let mut bytes = files[file.index(files.len())].clone();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let mut state = State::default();
        ask(&mut state, &json!({"ask": "open", "name": "F", "text": ""}), &bytes);
        let (rows, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 500}), &[]);
        prop_assert!(rows["rows"].is_array() || rows["error"].is_string());
        ask(&mut state, &json!({"ask": "heap"}), &[]);
    }

    /// Half-typed formats and lines are answered.
    #[test]
    fn cut_formats(dtd in any::<prop::sample::Index>(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), typed in "[a-z0-9{};:(), \u{1d538}\"]{0,6}") {
        let texts: Vec<&str> = metatf_playground::samples::DTDS.iter().map(|(_, text)| *text).collect();
        let text: Vec<char> = texts[dtd.index(texts.len())].chars().collect();
        let (from, to) = (from.index(text.len()), to.index(text.len()));
        let (from, to) = (from.min(to), from.max(to));
        let text: String = text[..from].iter().copied().chain(typed.chars()).chain(text[to..].iter().copied()).collect();
        let mut state = State::default();
        let (checked, _) = ask(&mut state, &json!({"ask": "check", "text": text}), &[]);
        let units = text.encode_utf16().count() as u64;
        for found in checked["diagnostics"].as_array().unwrap() {
            let (from, to) = (found["from"].as_u64().unwrap(), found["to"].as_u64().unwrap());
            prop_assert!(from <= to && to <= units, "{found}");
        }
        ask(&mut state, &json!({"ask": "encode", "text": text, "options": {}}), b"{}");
    }
}
