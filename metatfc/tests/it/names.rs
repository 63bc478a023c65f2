//! Names of values and flags: showing, printing, reading and filtering them; former names of fields.

use crate::common::metatfc;
use insta::assert_snapshot;
use metatf_test::Folder;

const DTD: &str = "\
state.values = \"0 running, 1 sleeping, 7 not found, -1 gone\";
mode.flags = \"0 read, 1 write, 63 top\";
section s 1 {
    task: (state, mode, n*hold) {
        tag.value = 4;
        state.width = 1; state.interpretation = baseOffset 0; state.format = \"signed\";
        mode.width = 8; mode.interpretation = none;
        n.width = 1; n.interpretation = none;
        hold.width = 1; hold.interpretation = none; hold.flags = \"0 a lock\";
    }
    // Another enumeration with this name.
    file: (state, name) {
        tag.value = 5;
        state.width = 1; state.interpretation = none; state.values = \"0 open, 1 closed\";
        name.width = 9; name.interpretation = none; name.format = \"utf8\";
    }
}
";

const LINES: &str = r#"{"@section":"s","@record":"task","state":"running","mode":"read|write","hold":[]}
{"@section":"s","@record":"task","state":7,"mode":0,"hold":["a lock",3]}
{"@section":"s","@record":"task","state":-1,"mode":"write|top|0x10","hold":[0]}
{"@section":"s","@record":"task","state":100,"mode":8,"hold":[]}
{"@section":"s","@record":"file","state":1,"name":"sleeping!"}
{"@section":"s","@record":"file","state":"open","name":"not found"}
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("named.dtd", DTD);
    folder.write("named.jsonl", LINES);
    metatfc(&folder, &["check", "--deny-warnings", "named.dtd"]).exits(0);
    metatfc(&folder, &["convert", "--dtd", "named.dtd", "named.jsonl", "named.mtf"]).exits(0);
    folder
}

#[test]
fn names_are_printed() {
    let folder = &folder();
    let printed = |args: &[&str]| metatfc(folder, args).exits(0).text();
    assert_snapshot!("names-show", printed(&["show", "named.dtd"]));
    assert_snapshot!("names-text", printed(&["dump", "named.mtf"]));
    assert_snapshot!("names-jsonl", printed(&["dump", "--format", "jsonl", "--names", "named.mtf"]));
    let stat = printed(&["stat", "named.mtf"]);
    for counts in ["running 1, \"not found\" 1, 100 1, gone 1\n", "read|write 1, ", "open 1, closed 1\n"] {
        assert!(stat.contains(counts), "{stat}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["stat", "--format", "json", "named.mtf"])).expect("JSON");
    let kinds = json["kinds"].as_array().expect("kinds");
    let file = kinds.iter().find(|kind| kind["record"] == "file").expect("file");
    assert_eq!(file["leaves"][1]["names"], serde_json::json!({ "open": 1, "closed": 1 }));
    assert!(printed(&["dump", "--format", "hex", "named.mtf"]).contains("\"not found\""));
    assert!(
        !printed(&["dump", "--format", "jsonl", "named.mtf"]).contains("running"),
        "numbers, where no names are asked for"
    );
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["show", "--format", "json", "named.dtd"])).expect("JSON");
    let leaf = &json["sections"][1]["records"][0]["leaves"][1];
    assert_eq!((&leaf["values"][0][1], &leaf["flags"]), (&"running".into(), &serde_json::Value::Null));
}

/// Dumping a trace with or without names and encoding it yields the same trace.
#[test]
fn names_are_read() {
    let folder = &folder();
    for names in [&["--names"][..], &[]] {
        let args = [&["dump", "--all", "--format", "jsonl", "named.mtf"], names].concat();
        folder.write("again.jsonl", metatfc(folder, &args).exits(0).text());
        metatfc(folder, &["convert", "--dtd", "named.dtd", "again.jsonl", "again.mtf"]).exits(0);
        metatfc(folder, &["diff", "named.mtf", "again.mtf"]).exits(0);
    }
    folder.write("wrong.jsonl", LINES.replace("\"running\"", "\"runing\""));
    metatfc(folder, &["convert", "--dtd", "named.dtd", "wrong.jsonl", "again.mtf"])
        .exits(1)
        .says("the field has no value with the name \"runing\"");
}

#[test]
fn conditions_go_by_names() {
    let folder = &folder();
    let count = |condition: &str| {
        metatfc(folder, &["dump", "--format", "jsonl", "--where", condition, "named.mtf"])
            .exits(0)
            .text()
            .lines()
            .count()
    };
    for (condition, records) in [
        ("state == running", 1),
        ("running == state", 1),
        ("state == \"not found\"", 1),
        ("state != running", 5),
        ("state < running", 1),
        ("state == closed", 1),
        ("state == 1", 1),
        ("state >= 0", 5),
        ("mode & write", 2),
        ("mode & \"read|top\"", 2),
        ("mode & 0x18 && state == gone", 1),
        ("mode == \"read|write\"", 1),
        ("hold & \"a lock\"", 1),
        ("name == \"sleeping!\"", 1),
    ] {
        assert_eq!(count(condition), records, "{condition}");
    }
    metatfc(folder, &["dump", "--where", "state == asleep", "named.mtf"]).exits(2).says("unknown field `asleep`");
    metatfc(folder, &["dump", "--where", "name == running", "named.mtf"]).exits(2).says("unknown field `running`");
}

const FORMATS: &str = "\
section s 1 {
    r: (ok, c, v4, v6, id, ns, us, s, d) {
        tag.value = 4;
        ok.width = 1; ok.interpretation = none; ok.format = \"bool\";
        c.width = 4; c.interpretation = none; c.format = \"char\";
        v4.width = 4; v4.interpretation = none; v4.format = \"ipv4\";
        v6.width = 16; v6.interpretation = none; v6.format = \"ipv6\";
        id.width = 16; id.interpretation = none; id.format = \"uuid\";
        ns.width = 8; ns.interpretation = none; ns.format = \"time_ns\"; ns.unit = \"ns\";
        us.width = 8; us.interpretation = none; us.format = \"time_us\";
        s.width = 8; s.interpretation = none; s.format = \"time_s\";
        d.width = 8; d.interpretation = none; d.format = \"duration_ns\";
    }
}
";

const FORMATTED: &str = r#"{"@section":"s","@record":"r","ok":true,"c":"a","v4":"10.0.0.1","v6":"2001:db8::1","id":"00112233-4455-6677-8899-aabbccddeeff","ns":1500000000,"us":1500000,"s":5,"d":1500}
{"@section":"s","@record":"r","ok":2,"c":55296,"v4":2130706433,"v6":"00000000000000000000000000000001","id":"ffffffffffffffffffffffffffffffff","ns":0,"us":1,"s":0,"d":2000000000}
"#;

/// Values of every format are printed as numbers and as words, and the words can be encoded.
#[test]
fn formats_have_words() {
    let folder = &Folder::new();
    folder.write("f.dtd", FORMATS);
    folder.write("f.jsonl", FORMATTED);
    metatfc(folder, &["check", "--deny-warnings", "f.dtd"]).exits(0);
    metatfc(folder, &["convert", "--dtd", "f.dtd", "f.jsonl", "f.mtf"]).exits(0);
    let printed = |args: &[&str]| metatfc(folder, &[&["dump", "f.mtf"], args].concat()).exits(0).text();
    assert_snapshot!("formats-text", printed(&[]));
    assert_snapshot!("formats-jsonl", printed(&["--format", "jsonl"]));
    let words = printed(&["--format", "jsonl", "--names"]);
    assert_snapshot!("formats-words", words);
    folder.write("words.jsonl", words);
    metatfc(folder, &["convert", "--dtd", "f.dtd", "words.jsonl", "again.mtf"]).exits(0);
    metatfc(folder, &["diff", "f.mtf", "again.mtf"]).exits(0);
    for condition in ["ok == true", "ok != true", "v4 == \"10.0.0.1\"", "c == a", "v4 & 0x75000000", "d < 2000"] {
        assert_eq!(printed(&["--where", condition]).lines().count(), 1, "{condition}");
    }
    folder.write("wrong.jsonl", FORMATTED.replace("10.0.0.1", "10.0.0"));
    metatfc(folder, &["convert", "--dtd", "f.dtd", "wrong.jsonl", "again.mtf"])
        .exits(1)
        .says("the field has no value with the name \"10.0.0\"");
}

const OLD: &str = "section s 1 {
    hop: (vector, note) { tag.value = 4; vector.width = 1; vector.interpretation = none;
        note.width = 1; note.interpretation = none; }
}
";

/// Renamed records and fields cause warnings, which `was` removes.
#[test]
fn earlier_names() {
    let folder = &Folder::new();
    let new = OLD.replace("hop", "jump").replace("vector", "line");
    folder.write("old.dtd", OLD);
    folder.write("new.dtd", &new);
    folder.write(
        "healed.dtd",
        new.replace("tag.value = 4;", "tag.value = 4; tag.was = \"hop\"; line.was = \"vec, vector\";"),
    );
    folder.write("old.jsonl", "{\"@section\":\"s\",\"@record\":\"hop\",\"vector\":7,\"note\":1}\n");
    metatfc(folder, &["convert", "--dtd", "old.dtd", "old.jsonl", "old.mtf"]).exits(0);
    for old in ["old.dtd", "old.mtf"] {
        let check = |args: &[&str]| metatfc(folder, &[&["check", "--reads", old], args].concat());
        check(&["new.dtd"])
            .exits(0)
            .says("the trace has s.hop, which")
            .says("the reader has s.jump, which")
            .says("2 warnings");
        check(&["--deny-warnings", "new.dtd"]).exits(1);
        assert!(!check(&["--deny-warnings", "healed.dtd"]).exits(0).text().contains("warning"));
    }
    folder.write("wrong.dtd", OLD.replace("note.width = 1", "note.width = 9"));
    metatfc(folder, &["check", "--reads", "old.mtf", "wrong.dtd"]).exits(1).says("`s.hop.note` is an array of 9 bytes");
    metatfc(folder, &["convert", "old.mtf", "new.mtf", "--to-dtd", "new.dtd"]).exits(1).says("has no record hop");
    metatfc(folder, &["convert", "old.mtf", "new.mtf", "--to-dtd", "healed.dtd"]).exits(0);
    metatfc(folder, &["dump", "new.mtf"]).exits(0).prints("s jump  line=7  note=1");
    metatfc(folder, &["show", "healed.dtd"]).exits(0).prints("was vec, vector");
}
