//! `dump --format sql`, tested with SQLite, and formulas in CSV.

use super::common::{metatfc, run};
use metatf_test::{Folder, run_with, skip};
use std::process::Command;

const DTD: &str = "section s 1 {
    at.width = 4; at.interpretation = none; at.role = \"time\";
    n.width = 8; n.interpretation = none; i.width = 4; i.interpretation = none; i.format = \"signed\";
    r.width = 8; r.interpretation = none; r.format = \"f64\"; raw.width = 9; raw.interpretation = none;
    count.width = 1; count.interpretation = none;
    all: (tag, n, i, at, raw, r, vfield) { tag.value = 4; vfield.data.format = \"utf8\"; }
    list: (tag, count*(n, i)) { tag.value = 5; }
    ALL: (tag, at) { tag.value = 6; }
    sqlite_x: (tag, box) { tag.value = 7; }
    box: (n, i);
}";

const LINES: &str = r#"{"@section":"s","@record":"all","n":18446744073709551615,"i":-5,"at":7,"raw":"00ff10000000000000","r":0.5,"vfield":"it's\n\"x\""}
{"@section":"s","@record":"all","n":1,"i":1,"at":8,"raw":"000000000000000000","r":-2.0,"vfield":"a\u0000b"}
{"@section":"s","@record":"list","count_items":[{"n":1,"i":-2},{"n":3,"i":4}]}
{"@section":"s","@record":"ALL","at":9}
{"@section":"s","@record":"sqlite_x","box":{"n":3,"i":4}}
"#;

#[test]
fn tables_of_records() {
    let here = &Folder::new();
    here.write("s.dtd", DTD);
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], LINES.as_bytes()).exits(0);
    let sql = metatfc(here, &["dump", "--format", "sql", "s.mtf"]).exits(0);
    insta::assert_snapshot!("sql", sql.text());
    let script = "import sqlite3, sys\n\
        db = sqlite3.connect(':memory:')\n\
        db.executescript(sys.stdin.read())\n\
        for query in ('select * from \"all\"', 'select * from list', 'select * from \"s_ALL\"', 'select \"box.n\" from t_sqlite_x'):\n\
        \u{20}   print(db.execute(query).fetchall())";
    let Ok(version) = Command::new("python3").args(["-c", "import sqlite3"]).status() else {
        return skip("python3 is not there");
    };
    if !version.success() {
        return skip("python3 has no sqlite3");
    }
    let read = run_with(Command::new("python3").args(["-c", script]), &sql.out).exits(0);
    assert_eq!(
        read.text(),
        "[(7, -1, -5, b'\\x00\\xff\\x10\\x00\\x00\\x00\\x00\\x00\\x00', 0.5, 'it\\'s\\n\"x\"', 5), (8, 1, 1, b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00', -2.0, 'a\\x00b', 52)]\n\
         [(2, '[{\"n\":1,\"i\":-2},{\"n\":3,\"i\":4}]', 99)]\n[(9, 133)]\n[(3,)]\n"
    );
    let selected = metatfc(here, &["dump", "--format", "sql", "--record", "ALL", "--all", "s.mtf"]).exits(0).text();
    assert!(selected.starts_with("BEGIN;\nCREATE TABLE \"ALL\" (\"at\" INTEGER, "), "{selected}");
    assert!(selected.ends_with("COMMIT;\n"), "{selected}");
}

/// With `--no-formulas`, untrusted strings remain strings in a spreadsheet, and numbers remain numbers.
#[test]
fn csv_without_formulas() {
    let here = &Folder::new();
    here.write("s.dtd", DTD);
    let texts = ["=1+2", "@SUM(A1)", "+x", "-y", "\\t=1", "plain", "-7", "1e3"];
    let line = |text: &&str| {
        format!(
            "{{\"@section\":\"s\",\"@record\":\"all\",\"n\":1,\"i\":-5,\"at\":1,\"raw\":\"{}\",\"r\":-0.5,\"vfield\":\"{text}\"}}\n",
            "00".repeat(9)
        )
    };
    let lines: String = texts.iter().map(line).collect();
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    let cells = |options: &[&str]| -> Vec<String> {
        let args = [&["dump", "--format", "csv", "--record", "all"], options, &["s.mtf"]].concat();
        let csv = metatfc(here, &args).exits(0).text();
        csv.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1.to_owned()).collect()
    };
    assert_eq!(cells(&[]), ["=1+2", "@SUM(A1)", "+x", "-y", "\t=1", "plain", "-7", "1e3"]);
    assert_eq!(cells(&["--no-formulas"]), ["'=1+2", "'@SUM(A1)", "'+x", "'-y", "'\t=1", "plain", "-7", "1e3"]);
    let csv = metatfc(here, &["dump", "--format", "csv", "--no-formulas", "--record", "all", "s.mtf"]).exits(0).text();
    assert!(csv.contains(",-5,") && csv.contains("-0.5"), "numbers are numbers: {csv}");
    metatfc(here, &["dump", "--no-formulas", "s.mtf"]).exits(2).says("--no-formulas require --format csv");
}

/// An optional field, and a field that refers to a string table.
const OPTIONAL: &str = "
    section names 2 { name_item: vfield { vfield.data.format = \"utf8\"; } }
    section s 1 {
        task: (tag, comm, has_cpu*cpu) {
            tag.value = 4; comm.width = 4; comm.interpretation = sectionOffset 2;
            has_cpu.width = 1; has_cpu.interpretation = none; has_cpu.format = \"bool\";
            cpu.width = 2; cpu.interpretation = none;
        }
    }
";

const TASKS: &str = r#"{"@section":"names","@record":"name_item","vfield":"spawned/0"}
{"@section":"names","@record":"name_item","vfield":"it's, quoted"}
{"@section":"s","@record":"task","comm":0,"has_cpu":1,"cpu":[100]}
{"@section":"s","@record":"task","comm":10,"has_cpu":0,"cpu":[]}
{"@section":"s","@record":"task","comm":0,"has_cpu":2,"cpu":[1,2]}
"#;

#[test]
fn strings_are_text_and_optional_fields_are_values() {
    let here = &Folder::new();
    here.write("t.dtd", OPTIONAL);
    run(here, &["convert", "--dtd", "t.dtd", "-", "t.mtf"], TASKS.as_bytes()).exits(0);
    let csv = metatfc(here, &["dump", "--format", "csv", "--resolve", "t.mtf"]).exits(0).text();
    assert_eq!(csv, "comm,has_cpu,cpu\nspawned/0,1,100\n\"it's, quoted\",0,\nspawned/0,2,\"[1,2]\"\n");
    let plain = metatfc(here, &["dump", "--format", "csv", "t.mtf"]).exits(0).text();
    assert_eq!(plain, "comm,has_cpu,cpu\n0,1,100\n10,0,\n0,2,\"[1,2]\"\n");
    let sql = metatfc(here, &["dump", "--format", "sql", "--resolve", "--record", "task", "t.mtf"]).exits(0).text();
    let rows: Vec<_> = sql.lines().filter(|line| !line.starts_with("BEGIN") && !line.starts_with("COMMIT")).collect();
    assert_eq!(rows[0], r#"CREATE TABLE "task" ("comm", "has_cpu" INTEGER, "cpu" INTEGER, "@offset" INTEGER);"#);
    assert_eq!(rows[1], r#"INSERT INTO "task" VALUES('spawned/0',1,100,0);"#);
    assert!(rows[2].starts_with(r#"INSERT INTO "task" VALUES('it''s, quoted',0,NULL,"#), "{}", rows[2]);
    assert!(rows[3].starts_with(r#"INSERT INTO "task" VALUES('spawned/0',2,'[1,2]',"#), "{}", rows[3]);
}
