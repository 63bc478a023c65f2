//! All conformance vectors, as in `tests/vectors/run.py`: good traces are printed correctly and rewritten; bad traces
//! are refused, and the message contains the position. Another program reads the native format of HATF 1.0 (`hatf-*`).
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, run};
use metatf_test::{Folder, Run, vectors};
use serde_json::Value;
use std::path::{Path, PathBuf};

type Lines = Vec<Vec<(String, Value)>>;

/// Returns the cases in a directory, without those of HATF 1.0.
fn cases(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(vectors(folder)).expect("the vectors are there");
    let mut cases: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).filter(|p| p.is_dir()).collect();
    cases.retain(|p| !p.join("trace.hatf").exists());
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON")
}

/// The properties excluded from a comparison.
#[derive(Clone, Copy)]
struct Without {
    offsets: bool,
    sections: bool,
}

const ALL: Without = Without { offsets: false, sections: false };

fn parse(text: &[u8], without: Without) -> Result<Lines, String> {
    let mut lines = Vec::new();
    for line in text.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let value = serde_json::from_slice(line).map_err(|e| format!("{e}: {}", String::from_utf8_lossy(line)))?;
        let Value::Object(object) = value else { return Err("not an object".to_owned()) };
        let record = object.get("@record").and_then(Value::as_str).unwrap_or("").to_owned();
        if without.sections && record == "section" {
            continue;
        }
        let predefined = ["comment", "section", "metadata"].contains(&record.as_str());
        let kept = |key: &str| !(predefined && key == "tag" || without.offsets && key == "@offset");
        lines.push(object.into_iter().filter(|(key, _)| kept(key)).collect());
    }
    Ok(lines)
}

/// Compares values, with keys in the same order. Integers must be identical; 1.0 and 1 are the same number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b))
        }
        _ => a == b,
    }
}

fn compare(got: &[u8], expected: &Path, without: Without) -> Result<(), String> {
    let want = parse(&std::fs::read(expected).expect("a file"), without)?;
    let have = parse(got, without)?;
    for (i, (a, b)) in have.iter().zip(&want).enumerate() {
        let equal = a.len() == b.len() && a.iter().zip(b).all(|((k, a), (l, b))| k == l && same(a, b));
        if !equal {
            return Err(format!("record {}: got {a:?}, expected {b:?}", i + 1));
        }
    }
    if have.len() == want.len() { Ok(()) } else { Err(format!("{} records, expected {}", have.len(), want.len())) }
}

/// All failures, so that one run reports every failure.
#[derive(Default)]
struct Failures(Vec<String>, usize);

impl Failures {
    fn add(&mut self, case: &Path, what: &str, result: Result<(), String>) {
        self.1 += 1;
        if let Err(why) = result {
            self.0.push(format!("{} {what}: {why}", case.file_name().unwrap_or_default().display()));
        }
    }

    #[track_caller]
    fn none(self) {
        assert!(self.0.is_empty(), "{} of {} failed:\n{}", self.0.len(), self.1, self.0.join("\n"));
    }
}

fn status(run: &Run, wanted: i32) -> Result<(), String> {
    if run.status == wanted { Ok(()) } else { Err(format!("status {}: {}", run.status, run.err)) }
}

/// Returns the options for reading a case.
fn options(case: &Path, info: &Value) -> Vec<String> {
    let word = |key: &str| info.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let dtd = case.join("format.dtd").display().to_string();
    let options: Vec<String> = match word("mode").as_str() {
        "salvage" => vec!["--salvage".into(), "--dtd".into(), dtd],
        // The file describes itself.
        "dump" if case.join("trace.raw").exists() => vec!["--dtd".into(), dtd],
        "raw" => {
            let class = info.get("class").map_or_else(String::new, Value::to_string);
            let (order, section) = (word("byteorder"), word("section"));
            vec!["--raw", "--class", &class, "--byteorder", &order, "--section", &section, "--dtd", &dtd]
                .into_iter()
                .map(str::to_owned)
                .collect()
        }
        _ => Vec::new(),
    };
    options
}

fn dump(case: &Path, trace: &str, more: &[String]) -> Run {
    let mut args = vec!["dump", "--format", "jsonl"];
    args.extend(more.iter().map(String::as_str));
    args.push(trace);
    metatfc(case, &args)
}

#[test]
fn good_traces_are_printed() {
    let mut failures = Failures::default();
    for case in cases("good") {
        let info = json(&case.join("case.json"));
        let raw = case.join("trace.raw").exists();
        let salvage = info.get("mode").and_then(Value::as_str) == Some("salvage");
        let trace = if raw { "trace.raw" } else { "trace.mtf" };
        for (file, all) in [("expected.jsonl", false), ("expected_all.jsonl", true)] {
            if !case.join(file).exists() || salvage && all {
                continue;
            }
            let mut more = options(&case, &info);
            if all {
                more.push("--all".to_owned());
            }
            let run = dump(&case, trace, &more);
            let right = compare(&run.out, &case.join(file), ALL);
            let right = right.map_err(|why| format!("{why}; stderr: {}", run.err));
            failures.add(&case, file, right.and_then(|()| if salvage { Ok(()) } else { status(&run, 0) }));
            if salvage {
                let said = if run.err.contains("salvage: ") { Ok(()) } else { Err("no report".to_owned()) };
                failures.add(&case, "report", said);
            }
        }
    }
    failures.none();
}

/// `dump --all | encode` creates a trace with the same records.
#[test]
fn dump_and_encode() {
    let folder = Folder::new();
    let (dtd, out) = (folder.join("a.dtd"), folder.path("out.mtf"));
    let mut failures = Failures::default();
    for case in cases("good") {
        let is_dump = json(&case.join("case.json")).get("mode").and_then(Value::as_str) == Some("dump");
        if !is_dump || !case.join("trace.mtf").exists() {
            continue;
        }
        std::fs::write(&dtd, metatfc(&case, &["show", "--format", "dtd", "trace.mtf"]).exits(0).out).expect("a file");
        let all = dump(&case, "trace.mtf", &["--all".to_owned()]).exits(0);
        let encode = ["convert", "--dtd", &dtd.display().to_string(), "-", &out];
        let models = case.file_name().is_some_and(|name| name.to_string_lossy().starts_with("x-predicted"));
        // Elements that models add to section `m` depend on the writer's size rule and on the state carried into a
        // group.
        let told = |out: &[u8]| -> Vec<u8> {
            let kept = |line: &&[u8]| !line.starts_with(b"{\"@section\":\"m\",") || !models;
            out.split_inclusive(|b| *b == b'\n').filter(kept).flatten().copied().collect()
        };
        let result = status(&run(&case, &encode, &all.out), 0).and_then(|()| {
            let again = dump(&case, &out, &["--all".to_owned()]);
            status(&again, 0)?;
            let expected = folder.join("all.jsonl");
            std::fs::write(&expected, told(&all.out)).map_err(|e| e.to_string())?;
            compare(&told(&again.out), &expected, Without { offsets: true, sections: true })
        });
        failures.add(&case, "dump | encode", result);
    }
    failures.none();
}

/// The JSON lines (spec 8) are encoded as a trace with any class, byte order and codec.
#[test]
fn good_traces_are_written_again() {
    let folder = Folder::new();
    let mut failures = Failures::default();
    let ways: [&[&str]; 4] = [
        &[],
        &["--class", "1", "--order", "big", "--codec", "lz4", "--chunk", "100"],
        &["--class", "1", "--codec", "zlib:9", "--filter", "transpose"],
        &["--codec", "stored", "--filter", "none"],
    ];
    for case in cases("good") {
        if json(&case.join("case.json")).get("convert") != Some(&Value::Bool(true)) {
            continue;
        }
        let out = folder.path("out.mtf");
        for way in ways {
            let mut args = vec!["convert", "--dtd", "format.dtd"];
            args.extend(way);
            args.extend(["expected_all.jsonl", &out]);
            let run = metatfc(&case, &args);
            failures.add(&case, &format!("encode {way:?}"), status(&run, 0).and_then(|()| read_back(&case, &out)));
        }
    }
    failures.none();
}

fn read_back(case: &Path, out: &str) -> Result<(), String> {
    let without = Without { offsets: true, sections: true };
    for (file, more) in [("expected.jsonl", vec![]), ("expected_all.jsonl", vec!["--all".to_owned()])] {
        let run = dump(case, out, &more);
        status(&run, 0)?;
        compare(&run.out, &case.join(file), without).map_err(|e| format!("{file}: {e}"))?;
    }
    Ok(())
}

#[test]
fn dtds_are_checked() {
    let mut failures = Failures::default();
    for case in cases("good").iter().filter(|c| c.join("format.dtd").exists()) {
        let info = json(&case.join("case.json"));
        let run = metatfc(case, &["check", "format.dtd"]);
        failures.add(case, "check", status(&run, 0));
        if let Some(warnings) = info.get("warnings").and_then(Value::as_u64) {
            let denied = metatfc(case, &["check", "--deny-warnings", "--message-format", "json", "format.dtd"]);
            failures.add(case, "check --deny-warnings", status(&denied, i32::from(warnings > 0)));
            let found = denied.text().lines().count() as u64;
            let right = if found == warnings { Ok(()) } else { Err(format!("{found} warnings, expected {warnings}")) };
            failures.add(case, "warnings", right);
        }
    }
    for case in cases("bad/dtd") {
        let note = json(&case.join("note.json"));
        let run = metatfc(&case, &["check", "format.dtd"]);
        failures.add(&case, "check", status(&run, 1));
        let places = note.get("at").and_then(Value::as_array).into_iter().flatten();
        let places = places.map(|at| format!(":{}:{}", at[0], at[1]));
        failures.add(&case, "place", names(&run.err, places.collect(), &note));
    }
    failures.none();
}

#[test]
fn bad_traces_are_refused() {
    let mut failures = Failures::default();
    for case in cases("bad/trace") {
        let note = json(&case.join("note.json"));
        // A file without a header describes itself.
        let is_raw = case.join("trace.raw").exists();
        let trace = if is_raw { "trace.raw" } else { "trace.mtf" };
        let dtd = if is_raw { &["--dtd", "format.dtd"][..] } else { &[] };
        let run = dump(&case, trace, &dtd.iter().map(ToString::to_string).collect::<Vec<_>>());
        failures.add(&case, "dump", status(&run, 1));
        let expected = case.join("expected.jsonl");
        if expected.exists() {
            failures.add(&case, "records before the error", compare(&run.out, &expected, ALL));
        }
        let offsets = note.get("offsets").and_then(Value::as_array).into_iter().flatten();
        failures.add(&case, "place", names(&run.err, offsets.map(Value::to_string).collect(), &note));
        let verified = metatfc(&case, &[&["verify"], dtd, &[trace]].concat());
        failures.add(&case, "verify", status(&verified, 1));
    }
    failures.none();
}

/// Checks that a message contains one of the places as a separate number. Without places, any message is accepted.
fn names(message: &str, places: Vec<String>, note: &Value) -> Result<(), String> {
    let digit = |c: Option<&u8>| c.is_some_and(u8::is_ascii_digit);
    let named = |place: &String| {
        message.match_indices(place.as_str()).any(|(at, _)| {
            let before = at.checked_sub(1).and_then(|i| message.as_bytes().get(i));
            !digit(before) && !digit(message.as_bytes().get(at + place.len()))
        })
    };
    if places.is_empty() || places.iter().any(named) {
        return Ok(());
    }
    Err(format!("{} at {places:?}; said: {message}", note["what"]))
}
