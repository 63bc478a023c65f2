//! Tests tables with a `metatfc` built without Parquet.
#![cfg(not(feature = "tables"))]

use crate::common::metatfc;

#[test]
fn csv_and_sqlite_need_no_feature() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::write(
        here.join("p.dtd"),
        "section s 1 { p: (tag, a) { tag.value = 4; a.width = 2; a.interpretation = none; } }",
    )
    .unwrap();
    std::fs::write(
        here.join("p.jsonl"),
        "{\"@section\":\"s\",\"@record\":\"p\",\"a\":7}\n{\"@section\":\"s\",\"@record\":\"p\",\"a\":9}\n",
    )
    .unwrap();
    let run = |args: &[&str], status| {
        let run = metatfc(here, args);
        assert_eq!(run.status, status, "{args:?}: {}", run.err);
        run
    };
    run(&["convert", "--dtd", "p.dtd", "p.jsonl", "p.mtf"], 0);
    run(&["convert", "p.mtf", "--record", "p", "p.csv"], 0);
    run(&["convert", "p.mtf", "p.sqlite"], 0);
    assert!(std::fs::read(here.join("p.sqlite")).unwrap().starts_with(b"SQLite format 3"));
    run(&["convert", "--dtd", "p.dtd", "p.csv", "back.mtf"], 0);
    run(&["diff", "p.mtf", "back.mtf"], 0);
    // In a build of the whole workspace, other crates enable Parquet.
    if !run(&["convert", "-h"], 0).text().contains("[possible values: csv, sqlite]") {
        return;
    }
    let refused = run(&["convert", "p.mtf", "--to", "parquet", "tables"], 2);
    assert!(refused.err.contains("[possible values: csv, sqlite]"), "{}", refused.err);
    std::fs::write(here.join("p.parquet"), b"PAR1....PAR1").unwrap();
    let refused = run(&["convert", "--dtd", "p.dtd", "p.parquet", "x.mtf"], 1);
    assert!(refused.err.contains("p.parquet: this build cannot read Parquet and Arrow files"), "{}", refused.err);
}
