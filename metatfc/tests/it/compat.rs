//! `compat`: differences between two DTDs, versions, and incompatibilities.

use super::common::{metatfc, run};
use metatf_test::{Folder, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const OLD: &str = "\
tag.width = 1; tag.version = \"1.2.0\";
time.width = 4; time.interpretation = delta 0;
note: (time, text) { tag.value = 40; text.width = 16; text.interpretation = none; }
ping: (time) { tag.value = 41; }
section tasks 1 {
    state.width = 1; state.interpretation = none; state.values = \"0 running, 1 sleeping, 7 zombie\";
    change: (time, task, state, magic) {
        tag.value = 4;
        task.width = 2; task.interpretation = none;
        magic.width = 1; magic.interpretation = none; magic.value = 7;
    }
    took: (time, wait, load, gone) {
        tag.value = 5;
        wait.width = 4; wait.interpretation = none; wait.unit = \"ms\";
        load.width = 8; load.interpretation = none;
        gone.width = 1; gone.interpretation = none;
    }
    list: (n, m, n*item) {
        tag.value = 6;
        n.width = 1; n.interpretation = none; m.width = 1; m.interpretation = none;
        item.width = 1; item.interpretation = none;
    }
    hop: (time) { tag.value = 7; }
    old: (time) { tag.value = 8; }
}
section moved 2 { a: (time) { tag.value = 4; } }
section lost 3 { a: (time) { tag.value = 4; } }
section log 4 { a: (time) { tag.value = 4; } }
";

const NEW: &str = "\
tag.width = 2; tag.version = \"1.3.0\"; comment.tag.value = 200;
time.width = 4; time.interpretation = delta 0;
note: (time, text) { tag.value = 40; text.width = 16; text.interpretation = none; }
section tasks 1 {
    state.width = 1; state.interpretation = none; state.values = \"0 running, 1 waiting, 8 dead\";
    change: (time, state, id, magic) {
        tag.value = 9;
        id.width = 4; id.interpretation = none; id.was = \"task\";
        magic.width = 1; magic.interpretation = none; magic.value = 8;
    }
    took: (time, wait, load, extra) {
        tag.value = 5;
        time.width = 4; time.interpretation = delta 0;
        wait.width = 4; wait.interpretation = baseOffset 10; wait.unit = \"us\";
        load.width = 8; load.interpretation = none; load.format = \"f64\";
        extra.interpretation = default 5;
    }
    list: (n, m, m*item) {
        tag.value = 6;
        n.width = 1; n.interpretation = none; m.width = 1; m.interpretation = none;
        item.width = 1; item.interpretation = none;
    }
    jump: (time) { tag.value = 7; tag.was = \"hop\"; }
    new: (time) { tag.value = 8; }
    ping: (time) { tag.value = 41; }
}
section moved 5 { a: (time) { tag.value = 4; } }
section found 3 { a: (time) { tag.value = 4; } }
section log 4 { a: (time) { time.width = 4; time.interpretation = none; } }
";

#[test]
fn every_kind_of_change_is_named() {
    let here = Folder::new();
    here.write("v1.dtd", OLD);
    here.write("v2.dtd", NEW);
    insta::assert_snapshot!("compat-text", metatfc(&here, &["diff", "v1.dtd", "v2.dtd"]).exits(1).text());
    let found = metatfc(&here, &["diff", "--format", "json", "v1.dtd", "v2.dtd"]).exits(1).text();
    insta::assert_snapshot!("compat-json", found);
    // The documentation lists every kind with its level.
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let text = |change: &Value, key: &str| change[key].as_str().expect("a text").to_owned();
    let changes = found["changes"].as_array().expect("changes");
    let mut found: BTreeMap<String, String> = changes.iter().map(|c| (text(c, "kind"), text(c, "level"))).collect();
    // Only the version number reveals this kind; see the versions below.
    found.insert("meaning".to_owned(), "the level of the increased number".to_owned());
    let page = std::fs::read_to_string(root().join("docs/versions.md")).expect("the page");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let cell = |rest: &str| rest.split(" | ").nth(1).expect("a level").to_owned();
    let rows: BTreeMap<String, String> = rows.map(|(kind, rest)| (kind.to_owned(), cell(rest))).collect();
    assert_eq!(found, rows);
}

/// Collects every valid DTD in the repository, without duplicates.
fn dtds(folder: &Path, found: &mut BTreeMap<Vec<u8>, PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target" && name != ".git") {
            dtds(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "dtd") {
            let text = std::fs::read(&path).expect("a DTD");
            if metatf_parser::parse("", &text).dtd.is_some() {
                found.insert(text, path);
            }
        }
    }
}

#[test]
fn a_dtd_and_itself_have_no_changes() {
    let mut found = BTreeMap::new();
    dtds(&root(), &mut found);
    assert!(found.len() > 100, "only {} DTDs", found.len());
    let here = Folder::new();
    let mut before: Option<(metatf_parser::Dtd, &str)> = None;
    for (text, path) in &found {
        let path = path.to_str().expect("a path");
        let out = metatfc(&here, &["diff", path, path]).exits(0).text();
        let rest = "old readers, new traces  no break\n  new readers, old traces  no break\n";
        assert!(out.contains("\n  no changes\n") && out.ends_with(rest), "{path}: {out}");
        // In this order, adjacent DTDs are often variants of the same format.
        let dtd = metatf_parser::parse("", text).dtd.expect("parsed before");
        if let Some((other, other_path)) = &before {
            let out = metatfc(&here, &["diff", other_path, path]).text();
            let nothing = out.contains("\n  no changes\n");
            assert!(!nothing || dtd.same_meaning(other), "{other_path} {path}: {out}");
        }
        before = Some((dtd, path));
    }
}

/// Returns a DTD of one record, with a version if it is not `None`.
fn one(version: Option<&str>, fields: &str) -> String {
    let version = version.map(|version| format!("tag.version = \"{version}\";")).unwrap_or_default();
    let names = ["size", "state", "kind", "data"].iter().filter(|name| fields.contains(&format!("{name}.")));
    let names = names.map(|name| format!(", {name}")).collect::<String>();
    format!(
        "{version} section s 1 {{ a: (tag{names}) {{ tag.value = 4; {fields} }} }} section texts 2 {{ text: vfield; }}"
    )
}

const SIZE: &str = "size.width = 4; size.interpretation = none;";
const KIND: &str = "kind.interpretation = default 1;";

/// The fields and version of the old and the new DTD, the minimum version, and whether the new version is sufficient.
type VersionCase<'a> = (&'a str, Option<&'a str>, &'a str, Option<&'a str>, Option<&'a str>, bool);

#[test]
fn the_version_must_be_enough() {
    let here = Folder::new();
    let with_kind = format!("{SIZE} {KIND}");
    let wide = SIZE.replace('4', "8");
    let named = format!("{SIZE} size.values = \"0 none\";");
    let cases: &[VersionCase<'_>] = &[
        (SIZE, None, &wide, None, None, true),
        (SIZE, None, &wide, Some("7.0.0"), None, true),
        (SIZE, Some("1.2.3"), SIZE, Some("1.2.3"), Some("1.2.3"), true),
        (SIZE, Some("1.2.3"), SIZE, Some("1.2.2"), Some("1.2.3"), false),
        (SIZE, Some("1.2.3"), SIZE, None, Some("1.2.3"), false),
        (SIZE, Some("1.2.3"), &named, Some("1.2.3"), Some("1.2.4"), false),
        (SIZE, Some("1.2.3"), &named, Some("1.2.10"), Some("1.2.4"), true),
        (SIZE, Some("1.2.3"), &wide, Some("1.2.9"), Some("1.3.0"), false),
        (SIZE, Some("1.2.3"), &wide, Some("1.10.0"), Some("1.3.0"), true),
        (SIZE, Some("1.2.3"), &with_kind, Some("1.3.0"), Some("1.3.0"), true),
        (&with_kind, Some("1.2.3"), SIZE, Some("1.3.0"), Some("1.3.0"), true),
    ];
    for (old, old_version, new, new_version, least, enough) in cases {
        here.write("v1.dtd", one(*old_version, old));
        here.write("v2.dtd", one(*new_version, new));
        let run = metatfc(&here, &["diff", "--format", "json", "v1.dtd", "v2.dtd"]).exits(i32::from(!enough));
        let found: Value = serde_json::from_str(&run.text()).expect("JSON");
        assert_eq!((found["least_version"].as_str(), &found["version_is_enough"]), (*least, &Value::Bool(*enough)));
    }
}

#[test]
fn versions_come_from_traces_and_options() {
    let here = Folder::new();
    here.write("v1.dtd", one(Some("1.2.3"), SIZE));
    here.write("v2.dtd", one(None, &SIZE.replace('4', "8")));
    run(&here, &["convert", "--dtd", "v1.dtd", "-", "v1.mtf"], br#"{"@section":"s","@record":"a","size":1}"#).exits(0);
    let compat = |options: &[&str]| metatfc(&here, &[&["diff", "v1.mtf", "v2.dtd"], options].concat());
    compat(&[]).exits(1).prints("none in the new one (too low); required after a median change: 1.3.0");
    compat(&["--new-version", "1.3.0"]).exits(0).prints("1.3.0 in the new one; required after a median change: 1.3.0");
    compat(&["--old-version", "1.3.0", "--new-version", "1.3.0"]).exits(1).prints("a median change: 1.4.0");
    for wrong in ["1.2", "1.2.3.4", "1.2.x", "1.+2.3", "1..3", "", "1.2.4294967296"] {
        compat(&["--new-version", wrong]).exits(2).says("expected a version of three numbers");
    }
    run(&here, &["diff", "v1.dtd", "-"], one(Some("1.2"), SIZE).as_bytes())
        .exits(1)
        .says("tag.version = \"1.2\": expected a version of three numbers");
    run(&here, &["diff", "v1.dtd", "-"], one(Some("1.\u{1b}.0"), SIZE).as_bytes()).exits(1).says(r"1.\u{1b}.0");
    let differing = "section s 1 { a: (tag) { tag.value = 4; tag.version = \"1.0.0\"; } b: (tag) { tag.value = 5; } }";
    run(&here, &["diff", "v1.dtd", "-"], differing.as_bytes()).exits(1).says("set it once, at the top level");
    metatfc(&here, &["diff", "-", "-"]).exits(2).says("only one of the files");
}

/// Control characters in an untrusted DTD do not reach the terminal.
#[test]
fn control_characters_are_escaped() {
    let here = Folder::new();
    here.write("v1.dtd", one(None, &format!("{SIZE} size.unit = \"ms\";")));
    here.write("v2.dtd", one(None, &format!("{SIZE} size.unit = \"\u{1b}[31m\\n\";")));
    metatfc(&here, &["diff", "v1.dtd", "v2.dtd"]).exits(1).prints(r"unit: ms, now \u{1b}[31m\n");
}

/// If the version increases more than the format requires, the meaning has changed.
#[test]
fn the_version_tells_of_meaning() {
    let here = Folder::new();
    here.write("v1.dtd", one(Some("1.2.3"), SIZE));
    for (version, level, code) in [("1.2.4", None, 0), ("1.3.0", Some("median"), 1), ("2.0.0", Some("major"), 1)] {
        here.write("v2.dtd", one(Some(version), SIZE));
        let run = metatfc(&here, &["diff", "--format", "json", "v1.dtd", "v2.dtd"]).exits(code);
        let found: Value = serde_json::from_str(&run.text()).expect("JSON");
        assert_eq!(found["level"].as_str(), level, "{version}");
        assert_eq!(found["changes"][0]["kind"].as_str(), level.map(|_| "meaning"), "{version}");
        assert_eq!(found["new_readers_old_traces"]["break"], Value::Bool(level.is_some()), "{version}");
    }
    metatfc(&here, &["diff", "--allow-breaks", "v1.dtd", "v2.dtd"]).exits(0);
}

#[test]
fn breaks_name_who_reads_what() {
    let here = Folder::new();
    let data = "data.width = 12; data.interpretation = none;";
    let state = "state.width = 1; state.interpretation = none;";
    let with = |more: &str| format!("{SIZE} {more}");
    // The old fields, the new fields, and the expected breaks for old and new readers.
    let cases: &[(&str, &str, Option<&str>, Option<&str>)] = &[
        (SIZE, "size.width = 2; size.interpretation = delta 7;", None, None),
        (
            SIZE,
            "size.width = 4; size.interpretation = sectionOffset 2;",
            Some("the reader misinterprets s.a.size"),
            Some("the reader misinterprets s.a.size"),
        ),
        (SIZE, &with(KIND), None, None),
        (SIZE, &with(state), None, Some("the reader returns 0 or nothing for s.a.state")),
        (&with(state), SIZE, Some("the reader returns 0 or nothing for s.a.state"), None),
        (
            SIZE,
            "state.width = 4; state.interpretation = none; state.was = \"size\";",
            Some("the reader returns 0 or nothing for s.a.size"),
            None,
        ),
        (
            data,
            &data.replace("12", "13"),
            Some("the reader rejects the trace: `s.a.data` is an array of 12"),
            Some("the reader rejects the trace: `s.a.data` is an array of 13"),
        ),
        (data, "data.width = 4; data.interpretation = none;", Some("the reader rejects"), Some("the reader rejects")),
        (data, &format!("{data} data.format = \"utf8\";"), None, None),
        (
            SIZE,
            &with("size.format = \"f64\";").replace("= 4;", "= 8;"),
            Some("the reader misinterprets s.a.size"),
            Some("the reader misinterprets s.a.size"),
        ),
        (
            &with("size.unit = \"ms\";"),
            &with("size.unit = \"us\";"),
            Some("the reader misinterprets s.a.size"),
            Some("the reader misinterprets s.a.size"),
        ),
        (&with("size.unit = \"us\";"), &with("size.format = \"time_us\";"), None, None),
        (SIZE, &with("size.unit = \"us\";"), None, None),
        (&with("size.values = \"1 a\";"), &with("size.values = \"1 a, 2 b\";"), None, None),
        (
            &with("size.values = \"1 a\";"),
            &with("size.values = \"1 b\";"),
            Some("the reader misinterprets s.a.size"),
            Some("the reader misinterprets s.a.size"),
        ),
        (
            &with("size.values = \"1 a\";"),
            &with("size.flags = \"1 a\";"),
            Some("the reader misinterprets s.a.size"),
            Some("the reader misinterprets s.a.size"),
        ),
    ];
    for (old, new, forward, backward) in cases {
        here.write("v1.dtd", one(None, old));
        here.write("v2.dtd", one(None, new));
        let code = i32::from(forward.or(*backward).is_some());
        let out = metatfc(&here, &["diff", "v1.dtd", "v2.dtd"]).exits(code).text();
        for (who, expected) in [("  old readers, new traces  ", forward), ("  new readers, old traces  ", backward)] {
            let line = out.lines().find_map(|line| line.strip_prefix(who)).expect("a line");
            let expected = expected.map_or("no break".to_owned(), |text| format!("break: {text}"));
            assert!(line.starts_with(&expected), "{old}\n{new}\n{out}");
        }
        metatfc(&here, &["diff", "--allow-breaks", "v1.dtd", "v2.dtd"]).exits(0);
    }
}

/// A record that shares its previous value with different fields has changed; new and removed records do not affect
/// others.
#[test]
fn sharing_of_previous_values_is_compared() {
    let here = Folder::new();
    let dtd = |shared: &str, records: &[&str]| {
        let records: Vec<String> = records
            .iter()
            .map(|record| format!("{record}: (time) {{ tag.value = {}; }}\n", record.as_bytes()[0]))
            .collect();
        format!("section s 1 {{ time.width = 4; time.interpretation = delta 0; {shared} {} }}", records.concat())
    };
    here.write("v1.dtd", dtd("", &["a", "b"]));
    here.write("v2.dtd", dtd("", &["z", "b", "a"]));
    metatfc(&here, &["diff", "v1.dtd", "v2.dtd"]).exits(0).prints("minor  s.z    record added\n\n  minor  a section");
    here.write("v2.dtd", dtd("time.previous = own;", &["a", "b"]));
    metatfc(&here, &["diff", "v1.dtd", "v2.dtd"])
        .exits(0)
        .prints("median  s.b.time  shares its previous value with different fields\n\n  median  the format");
}

/// A global record that moves into a section remains the same record, and no record is listed twice.
#[test]
fn records_move_between_the_top_and_sections() {
    let here = Folder::new();
    let record = "a: (size) { tag.value = 4; size.width = 1; size.interpretation = none; }";
    let rest = "b: (size) { tag.value = 5; size.width = 1; size.interpretation = none; }";
    let dtds = [
        format!("{record} section s 1 {{ {rest} }} section t 2 {{ {rest} }}"),
        format!("section s 1 {{ {record} {rest} }} section t 2 {{ {record} {rest} }}"),
    ];
    for (old, new) in [(0, 1), (1, 0)] {
        here.write("v1.dtd", &dtds[old]);
        here.write("v2.dtd", &dtds[new]);
        let run = metatfc(&here, &["diff", "--format", "json", "v1.dtd", "v2.dtd"]).exits(0);
        let found: Value = serde_json::from_str(&run.text()).expect("JSON");
        let kinds: BTreeSet<_> =
            found["changes"].as_array().expect("changes").iter().map(|c| c["kind"].as_str()).collect();
        assert_eq!(kinds, BTreeSet::from([Some("record_scope")]), "{}", run.text());
    }
}

/// `--dtd` specifies the version that the caller understands: a different major or median version is refused unless it
/// is requested.
#[test]
fn a_trace_of_another_version_is_refused() {
    let here = Folder::new();
    let dtd = |version: &str| {
        format!(
            "tag.version = \"{version}\"; section s 1 {{ a: (n) {{ tag.value = 4; n.width = 1; n.interpretation = none; }} }}"
        )
    };
    for version in ["1.2.0", "1.2.5", "2.0.0"] {
        here.write(&format!("{version}.dtd"), dtd(version));
        let line = b"{\"@section\":\"s\",\"@record\":\"a\",\"n\":7}\n";
        run(&here, &["convert", "--dtd", &format!("{version}.dtd"), "-", &format!("{version}.mtf")], line).exits(0);
    }
    let none = dtd("").replace("tag.version = \"\";", "");
    here.write("none.dtd", none);
    metatfc(&here, &["dump", "--dtd", "1.2.0.dtd", "1.2.5.mtf"]).exits(0).prints("n=7");
    metatfc(&here, &["dump", "--dtd", "none.dtd", "2.0.0.mtf"]).exits(0).prints("n=7");
    let refused = metatfc(&here, &["dump", "--dtd", "1.2.0.dtd", "2.0.0.mtf"]).exits(1);
    refused.says("2.0.0.mtf: its DTD has version 2.0.0, but 1.2.0.dtd has version 1.2.0").says("--by-name");
    metatfc(&here, &["stat", "--dtd", "2.0.0.dtd", "1.2.5.mtf"]).exits(1).says("version 1.2.5");
    metatfc(&here, &["dump", "--dtd", "1.2.0.dtd", "--by-name", "2.0.0.mtf"]).exits(0).prints("n=7");
    metatfc(&here, &["dump", "--by-name", "2.0.0.mtf"]).exits(2).says("--dtd");
    metatfc(&here, &["sort", "--by", "n", "1.2.0.mtf", "2.0.0.mtf", "-o", "no.mtf"]).exits(1).says("its records");
}

#[test]
fn a_trace_is_shown_as_another_version_has_it() {
    let here = Folder::new();
    here.write(
        "old.dtd",
        "tag.version = \"1.0.0\";
        section s 1 {
            n.width = 1; n.interpretation = none; took_us.width = 2; took_us.interpretation = none;
            path.width = 1; path.interpretation = sectionOffset 2;
            access: (n, took_us, path, gone) { tag.value = 4; gone.width = 1; gone.interpretation = none; }
            removed: (n) { tag.value = 5; }
        }
        section paths 2 { text: vfield { vfield.data.format = \"utf8\"; } }",
    );
    here.write(
        "new.dtd",
        "tag.version = \"2.0.0\";
        section s 1 {
            n.width = 4; n.interpretation = none;
            took.width = 4; took.interpretation = none; took.was = \"took_us\";
            status.width = 2; status.interpretation = default 200; path.width = 1; path.interpretation = sectionOffset 2;
            access: (status, took, path, n) { tag.value = 9; }
            added: (n) { tag.value = 5; }
        }
        section paths 2 { text: vfield { vfield.data.format = \"utf8\"; } }",
    );
    let lines = "{\"@section\":\"paths\",\"@record\":\"text\",\"vfield\":\"/a\",\"@shared\":true}
{\"@section\":\"s\",\"@record\":\"access\",\"n\":7,\"took_us\":31,\"path\":0,\"gone\":1}
{\"@section\":\"s\",\"@record\":\"removed\",\"n\":8}
{\"@section\":\"s\",\"@record\":\"access\",\"n\":9,\"took_us\":32,\"path\":0,\"gone\":1}
";
    run(&here, &["convert", "--dtd", "old.dtd", "-", "old.mtf"], lines.as_bytes()).exits(0);
    let dump = ["dump", "--dtd", "new.dtd", "--by-name", "--format", "jsonl", "--resolve", "old.mtf"];
    let line = |took: u8, n: u8| {
        format!(
            "{{\"@section\":\"s\",\"@record\":\"access\",\"status\":200,\"took\":{took},\
             \"path\":{{\"offset\":0,\"element\":{{\"vfield\":\"/a\"}}}},\"n\":{n}}}\n"
        )
    };
    assert_eq!(metatfc(&here, &dump).exits(0).text(), line(31, 7) + &line(32, 9));
    metatfc(&here, &["dump", "--dtd", "new.dtd", "--by-name", "--where", "took == 32", "old.mtf"])
        .exits(0)
        .prints("n=9");
    // Without `--dtd`, a trace is read with its own DTD. Without `--by-name`, a different version is refused.
    metatfc(&here, &["dump", "old.mtf"]).exits(0).prints("took_us=31");
    metatfc(&here, &["dump", "--dtd", "new.dtd", "old.mtf"]).exits(1).says("add --by-name");
    metatfc(&here, &["dump", "--dtd", "new.dtd", "--by-name", "--salvage", "old.mtf"]).exits(2);
    // A number that has become a byte array cannot be converted.
    here.write("bytes.dtd", "section s 1 { access: (n) { tag.value = 4; n.width = 12; n.interpretation = none; } }");
    metatfc(&here, &["dump", "--dtd", "bytes.dtd", "--by-name", "old.mtf"])
        .exits(1)
        .says("cannot be converted to bytes.dtd");
}
