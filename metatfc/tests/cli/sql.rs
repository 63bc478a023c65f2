//! `dump --format sql`: what SQLite makes of it.

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
    run(here, &["encode", "--dtd", "s.dtd", "-", "s.mtf"], LINES.as_bytes()).exits(0);
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
