//! Tests the answers of the module. Values must be the same as in the vectors, and no input may stop the module.

use crate::heaps::heaps;
use metatf_playground::request::{State, respond};
use metatf_test::{root, vectors};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;

/// Sends a request and returns the answer and its bytes.
fn ask(state: &mut State, request: &Value, bytes: &[u8]) -> (Value, Vec<u8>) {
    let (answer, bytes) = respond(state, request.to_string().as_bytes(), bytes);
    (serde_json::from_slice(&answer).unwrap(), bytes)
}

/// Opens an undamaged file and returns all its rows.
fn rows(bytes: &[u8], dtd: &str) -> Vec<Value> {
    let (rows, error) = rows_and_error(bytes, dtd);
    assert_eq!(error, Value::Null);
    rows
}

/// Opens a file and returns all its rows and its damage.
fn rows_and_error(bytes: &[u8], dtd: &str) -> (Vec<Value>, Value) {
    let mut state = State::default();
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "T", "text": dtd}), bytes);
    assert!(opened["error"].is_null(), "{opened}");
    let mut all = Vec::new();
    loop {
        let (part, _) = ask(&mut state, &json!({"ask": "rows", "from": all.len(), "count": 200}), &[]);
        // Start again from the first lost row, like the page.
        if part["first_lost"].as_u64().is_some_and(|first| first < all.len() as u64) {
            all.clear();
            continue;
        }
        all.extend(part["rows"].as_array().unwrap().iter().cloned());
        if part["end"] == true {
            return (all, part["damage"].clone());
        }
    }
}

/// Compares a data record with the line that `metatfc dump --format jsonl` prints without `--all`. Members that this
/// line does not contain are ignored.
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

/// Data records have the same values as `expected.jsonl`, and the same bytes as the file.
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
        // Some vectors use the file of another vector with a different DTD.
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
            // Fields are adjacent and cover all bytes.
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

/// All samples open and have records.
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
        .filter(|name| name.ends_with(".dtd"))
        .collect();
    let mut listed = of("dtds");
    dtds.sort();
    listed.sort();
    assert_eq!(listed, dtds);
}

/// The heap page contains the figures of the report.
#[test]
fn the_page_of_a_heap() {
    let mut state = State::default();
    let (_, trace) = ask(&mut state, &json!({"ask": "sample", "name": "heap.gawk.mtf"}), &[]);
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "gawk", "text": ""}), &trace);
    assert_eq!(opened["heap"], true);
    let (_, page) = ask(&mut state, &json!({"ask": "heap"}), &[]);
    let page = String::from_utf8(page).unwrap();
    for part in ["<script id=\"numbers\"", "EVENTS", "PEAK", "MOST PAGES HELD"] {
        assert!(page.contains(part), "{part}");
    }
    let (_, packets) = ask(&mut state, &json!({"ask": "sample", "name": "packets.pcap"}), &[]);
    let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": "packets", "text": ""}), &packets);
    assert_eq!(opened["heap"], false);
    let (refused, _) = ask(&mut state, &json!({"ask": "heap"}), &[]);
    assert!(refused["error"].as_str().unwrap().starts_with("packets: "), "{refused}");
}

/// Heap traces in any format have records of `heap.dtd` and a page with the same number of blocks.
#[test]
fn heaps_in_any_form() {
    let mut state = State::default();
    let mut seen = Vec::new();
    for (name, bytes) in heaps() {
        let (opened, made) = ask(&mut state, &json!({"ask": "open", "name": name, "text": ""}), &bytes);
        assert_eq!(opened["heap"], true, "{name}: {opened}");
        // A heap trace without a DTD is converted, and the trace is returned for saving.
        assert_eq!(opened["form"].is_string(), !made.is_empty(), "{name}: {opened}");
        assert_eq!(opened["form"].is_null(), bytes.starts_with(b"\x7fMTF"), "{name}: {opened}");
        let (rows, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 100}), &[]);
        assert!(rows["rows"].as_array().unwrap().len() > 20 && rows["damage"].is_null(), "{name}: {rows}");
        let (answer, page) = ask(&mut state, &json!({"ask": "heap"}), &[]);
        assert_eq!(answer, json!({}), "{name}");
        let page = String::from_utf8(page).unwrap();
        let (_, blocks) = page.split_once("total heap usage: ").unwrap_or_else(|| panic!("{name}: {page}"));
        let (blocks, _) = blocks.split_once(" allocs").unwrap();
        seen.push((name, blocks.to_owned()));
    }
    assert!(seen.len() >= 8, "{seen:?}");
    let (_, blocks) = seen[0].clone();
    assert!(seen.iter().filter(|(name, _)| !name.contains("zst")).all(|(_, of)| *of == blocks), "{seen:?}");
}

/// The part before damage in a format without checksums is shown.
#[test]
fn a_heap_in_a_damaged_form() {
    let (name, mut bytes) = heaps().into_iter().find(|(name, _)| name == "raw32.raw32").unwrap();
    // 50 calls, and the record that identifies their process.
    bytes[32 * 50] = 99;
    let mut state = State::default();
    let (opened, trace) = ask(&mut state, &json!({"ask": "open", "name": name, "text": ""}), &bytes);
    assert_eq!((&opened["records"], opened["heap"].as_bool()), (&json!(51), Some(true)), "{opened}");
    assert!(!trace.is_empty());
    let says = "raw32.raw32: raw32, byte 1600 (record 50): expected a tag from 1 to 5, found 99; the trace contains only the part before the corruption";
    let (rows, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 10}), &[]);
    assert_eq!(rows["damage"], says);
    let (answer, page) = ask(&mut state, &json!({"ask": "heap"}), &[]);
    assert_eq!(answer["damage"], says);
    assert!(!page.is_empty());
    bytes[0] = 99;
    let (refused, _) = ask(&mut state, &json!({"ask": "open", "name": name, "text": ""}), &bytes);
    assert!(refused["error"].as_str().unwrap().contains("byte 0 (record 0): expected a tag from 1 to 5"), "{refused}");
}

/// The undamaged parts after damage are read, and the position of each loss is reported.
#[test]
fn damage_is_passed() {
    let name = "every.groups-64-little.mtf";
    let whole = std::fs::read(root().join("tests/golden/1.0").join(name)).unwrap();
    let mut container = metatf::container::Reader::from_slice(&whole).unwrap();
    let chunks = container.chunks().unwrap();
    let place = |of: usize| usize::try_from(chunks[of].offset).unwrap();
    let lines = |rows: &[Value]| -> Vec<String> {
        rows.iter().filter(|row| row["kind"] != "lost").map(|row| row["json"].to_string()).collect()
    };
    let all = lines(&rows(&whole, ""));
    // Damage a byte of the magic, a byte of the DTD and a byte in the middle, and truncate the file. The positions are
    // far apart.
    let middle = place(chunks.len() / 2) + 30;
    let damaged = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        bytes
    };
    let cut = whole[..middle].to_vec();
    let dtd = std::fs::read_to_string(root().join("tests/golden/1.0/every.dtd")).unwrap();
    for (what, bytes) in
        [("magic", damaged(0)), ("DTD", damaged(place(0) + 60)), ("middle", damaged(middle)), ("cut", cut)]
    {
        let (found, error) = rows_and_error(&bytes, &dtd);
        assert!(error.as_str().is_some_and(|error| error.starts_with("T is corrupt: ")), "{what}: {error}");
        let left = lines(&found);
        let lost: Vec<&str> =
            found.iter().filter(|row| row["kind"] == "lost").map(|row| row["sets"].as_str().unwrap()).collect();
        assert!(!lost.is_empty() && lost.iter().all(|lost| lost.starts_with("b")), "{what}: {lost:?}");
        // The order is kept, but some lines are missing.
        let mut rest = all.iter();
        assert!(left.iter().all(|line| rest.any(|other| other == line)), "{what}");
        match what {
            "magic" => assert_eq!(left, all),
            "DTD" => assert!(left.len() + 20 > all.len(), "{what}: {}", left.len()),
            _ => assert!(left.len() < all.len() && left.len() > all.len() / 4, "{what}: {}", left.len()),
        }
        // Rows have consecutive numbers, and lost rows contain the lost bytes.
        assert!(found.iter().zip(0..).all(|(row, number): (_, u64)| row["number"] == number), "{what}");
        let row = found.iter().find(|row| row["kind"] == "lost").unwrap();
        assert!(what == "magic" || !row["bytes"].as_str().unwrap().is_empty(), "{what}: {row}");
    }
}

/// The page of a damaged heap trace covers the part before the damage and reports the damage.
#[test]
fn the_page_of_a_damaged_heap() {
    let whole = std::fs::read(root().join("tests/golden/1.0/heap.perl-default.mtf")).unwrap();
    let mut state = State::default();
    let page = |state: &mut State, bytes: &[u8]| {
        let (opened, _) = ask(state, &json!({"ask": "open", "name": "T", "text": ""}), bytes);
        assert_eq!(opened["heap"], true, "{opened}");
        ask(state, &json!({"ask": "heap"}), &[])
    };
    assert_eq!(page(&mut state, &whole).0, json!({}));
    let (answer, html) = page(&mut state, &whole[..whole.len() - 200]);
    assert!(
        answer["damage"]
            .as_str()
            .is_some_and(|damage| damage.ends_with("; the page covers only the part before the corruption")),
        "{answer}"
    );
    assert!(String::from_utf8(html).unwrap().contains("PEAK"));
}

#[test]
fn what_is_no_trace() {
    let mut state = State::default();
    for (bytes, says) in
        [(&b"hello"[..], "unknown trace format"), (&[0x1f, 0x8b, 8, 0], "cannot decompress"), (b"\x7fMTF", "")]
    {
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

/// Changes some bytes, and truncates them at a position if one is given.
fn damage(bytes: &mut Vec<u8>, changes: Vec<(prop::sample::Index, u8)>, cut: Option<prop::sample::Index>) {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Damaged files yield an error message or rows.
    #[test]
    fn damaged_files(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), cut in prop::option::of(any::<prop::sample::Index>())) {
        let files = golden();
        let mut bytes = files[file.index(files.len())].clone();
        damage(&mut bytes, changes, cut);
        let mut state = State::default();
        ask(&mut state, &json!({"ask": "open", "name": "F", "text": ""}), &bytes);
        let (rows, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 500}), &[]);
        prop_assert!(rows["rows"].is_array() || rows["error"].is_string());
        ask(&mut state, &json!({"ask": "heap"}), &[]);
    }

    /// Incomplete formats and lines yield an answer.
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    /// Damaged heap traces in any format yield an error message, or rows and a page.
    #[test]
    fn damaged_heaps(file in any::<prop::sample::Index>(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in prop::option::of(any::<prop::sample::Index>())) {
        static HEAPS: std::sync::LazyLock<Vec<(String, Vec<u8>)>> = std::sync::LazyLock::new(heaps);
        let (name, mut bytes) = HEAPS[file.index(HEAPS.len())].clone();
        damage(&mut bytes, changes, cut);
        let mut state = State::default();
        let (opened, _) = ask(&mut state, &json!({"ask": "open", "name": name, "text": ""}), &bytes);
        let (rows, _) = ask(&mut state, &json!({"ask": "rows", "from": 0, "count": 500}), &[]);
        prop_assert!(opened["error"].is_string() || rows["rows"].is_array(), "{opened} {rows}");
        let (_, page) = ask(&mut state, &json!({"ask": "heap"}), &[]);
        prop_assert!(opened["heap"] == true || page.is_empty());
    }
}
