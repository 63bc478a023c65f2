//! Exporting and importing yields the same records in each file format.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fs::File;
use std::path::PathBuf;

use arrow_schema::DataType;
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use metatf::reader::Event;
use metatf_arrow::files::{Form, TableWriter, import};
use metatf_arrow::{OFFSET, OpenOptions, Scan};
use metatf_parser::schema::{Format, Interpretation};
use metatf_tests::example::Example;
use metatf_tests::random::Seed;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::common::{file, tables};

/// Returns the data records of a trace with section, record and values.
fn records(schema: &Schema, bytes: &[u8]) -> Vec<(usize, u16, OwnedRecord)> {
    let mut trace = Trace::new(schema.clone(), Reader::from_slice(bytes).unwrap()).unwrap();
    let mut all = Vec::new();
    while let Some(entry) = trace.next_entry().unwrap() {
        if let Event::Record(at) = entry.event {
            all.push((at.section, at.record, entry.record.clone()));
        }
    }
    all
}

/// Writes all tables to files in a directory. Returns `None` if a value does not fit.
fn export(schema: &Schema, trace: &[u8], form: Form, stored: bool, folder: &std::path::Path) -> Option<Vec<PathBuf>> {
    let file = file(trace);
    let mut files = Vec::new();
    for table in tables(file.path(), schema, stored) {
        // Elements that are not strings cannot be imported.
        let columns = table.schema();
        let is_text = columns.fields().len() == 2
            && columns.field_with_name("vfield").is_ok_and(|field| *field.data_type() == DataType::Utf8);
        if columns.index_of(OFFSET).is_ok() && !is_text {
            continue;
        }
        let path = folder.join(format!("{}.{}", table.name(), form.name()));
        let mut writer = TableWriter::new(form, &table.schema(), File::create(&path).unwrap()).unwrap();
        for batch in table.scan(&Scan { threads: 1, ..Scan::default() }).unwrap() {
            writer.batch(&batch.ok()?).unwrap();
        }
        writer.finish().unwrap();
        files.push(path);
    }
    Some(files)
}

fn check(example: &Example, form: Form, stored: bool) {
    let Example { schema, trace, .. } = example;
    let folder = tempfile::tempdir().unwrap();
    let Some(files) = export(schema, trace, form, stored, folder.path()) else { return };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), schema, &WriteOptions::default()).unwrap();
    let about = example.about();
    let count =
        import(schema, &files, None, &mut writer, &mut |_| ()).unwrap_or_else(|error| panic!("{error}\n{about}"));
    let copy = writer.finish().unwrap().into_inner();
    let (found, wanted) = (records(schema, &copy), records(schema, trace));
    assert_eq!(count, wanted.len() as u64, "{form:?} {about}");
    for (found, wanted) in found.iter().zip(&wanted) {
        assert_eq!(found, wanted, "{form:?} {about}");
    }
    assert_eq!(found.len(), wanted.len());
}

/// Returns whether converted values are exact. Converted strings lack the bytes after the terminating zero, and random
/// offsets do not refer to strings.
fn is_exact(schema: &Schema) -> bool {
    schema
        .dtd
        .records
        .iter()
        .flat_map(|record| &record.leaves)
        .all(|leaf| leaf.format != Format::CString && !matches!(leaf.interpretation, Interpretation::SectionOffset(_)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_exported_is_imported(
        dtd in vec(any::<u8>(), 0..300),
        data in vec(any::<u8>(), 0..800),
        options in vec(any::<u8>(), 9),
    ) {
        let example = Example::new(&Seed { dtd, data, options }, false);
        check(&example, Form::Parquet, true);
        check(&example, Form::Arrow, true);
        if is_exact(&example.schema) {
            Form::ALL.iter().for_each(|form| check(&example, *form, false));
        }
    }
}

#[test]
fn what_has_no_place_is_named() {
    let dtd = b"section s 1 { tick: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }";
    let schema = Schema::parse("ticks.dtd", dtd).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, text, error) in [
        ("tick.csv", "n,m\n1,2\n", "has no column m"),
        ("tock.csv", "n\n1\n", "no record `tock`"),
        ("tick.csv", "n\nx\n", "row 1: `n`"),
        ("tick.csv", "n\n1,2\n", "line 2: expected 1 cells, found 2"),
        ("tick.csv", "@number\n1\n", "`n` is missing"),
        ("tick.csv", "@number,n\nx,1\n", "@number must be a nonnegative integer"),
        ("tick.parquet", "PAR1 and no more", "tick.parquet"),
        ("tick.arrow", "ARROW1 and no more", "tick.arrow"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
        let found =
            import(&schema, std::slice::from_ref(&path), None, &mut writer, &mut |_| ()).unwrap_err().to_string();
        assert!(found.contains(error) && found.contains(name), "{text:?}: {found}");
        writer.abandon();
    }
}

#[test]
fn texts_that_offsets_point_to_are_read_back() {
    let dtd = br#"section s 1 {
        mark: (tag, name) { tag.value = 4; name.width = 4; name.interpretation = sectionOffset 2; }
    } section names 2 { entry: vfield { vfield.data.format = "utf8"; } }"#;
    let schema = Schema::parse("marks.dtd", dtd).unwrap();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    let mut put = |line: &str| {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    };
    put(r#"{"@section":"names","@record":"entry","vfield":"one"}"#);
    put(r#"{"@section":"s","@record":"mark","name":0}"#);
    put(r#"{"@group":1}"#);
    put(r#"{"@section":"names","@record":"entry","vfield":"two, \"2\""}"#);
    put(r#"{"@section":"s","@record":"mark","name":4}"#);
    let trace = writer.finish().unwrap().into_inner();
    let texts = |trace: &[u8]| {
        let file = file(trace);
        let tables = tables(file.path(), &schema, false);
        let marks = tables.iter().find(|table| table.name() == "mark").unwrap();
        let (rows, error) = crate::common::rows(&**marks, &Scan::default());
        assert_eq!(error, None);
        rows.iter().map(|row| row["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&trace), ["one", "two, \"2\""]);
    for form in Form::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let files = export(&schema, &trace, form, false, folder.path()).unwrap();
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
        assert_eq!(import(&schema, &files, None, &mut writer, &mut |_| ()).unwrap(), 2);
        assert_eq!(texts(&writer.finish().unwrap().into_inner()), ["one", "two, \"2\""]);
    }
}

/// The text of a missing element is null in every form, and an error on request.
#[test]
fn texts_that_are_missing() {
    let dtd = br#"section s 1 {
        mark: (tag, n*name) { tag.value = 4; n.width = 1; n.interpretation = none;
            name.width = 4; name.interpretation = sectionOffset 2; }
        one: (tag, name) { tag.value = 5; name.width = 4; name.interpretation = sectionOffset 2; }
    } section names 2 { entry: vfield { vfield.data.format = "utf8"; } }"#;
    let schema = Schema::parse("marks.dtd", dtd).unwrap();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for line in [
        r#"{"@section":"names","@record":"entry","vfield":"one","@shared":true}"#,
        r#"{"@section":"s","@record":"mark","name":[0,1,0]}"#,
        r#"{"@section":"s","@record":"one","name":7}"#,
        r#"{"@section":"s","@record":"one","name":0}"#,
    ] {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    let trace = writer.finish().unwrap().into_inner();
    let file = file(&trace);
    let opened = |strict| {
        let options = OpenOptions { dtd: Some(schema.clone()), strict, ..OpenOptions::default() };
        metatf_arrow::open_tables(file.path(), &options).unwrap()
    };
    let tables = opened(false);
    let rows = |place: usize| {
        let (rows, error) = crate::common::rows(&*tables.all()[place], &Scan::default());
        assert_eq!(error, None);
        rows.iter().map(|row| row["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((rows(0), rows(1)), (vec![json!(["one", null, "one"])], vec![json!(null), json!("one")]));
    assert_eq!(tables.dangling(), 2);
    let (rows, error) = crate::common::rows(&*opened(true).all()[1], &Scan::default());
    let error = error.unwrap();
    assert!(rows.is_empty() && error.contains("section 2 has no element at offset 7"), "{error}");
    // A null cannot be imported, because it is no reference.
    for form in Form::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let files = export(&schema, &trace, form, false, folder.path()).unwrap();
        let one: Vec<_> = files.into_iter().filter(|file| file.file_stem().unwrap() == "one").collect();
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
        let error = import(&schema, &one, None, &mut writer, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("row 1: `name` is missing"), "{error}");
        writer.abandon();
    }
}

/// In some formats, words can consist of digits; for named values, digits are the number.
#[test]
fn numbers_among_names_are_read_back() {
    let dtd = br#"section s 1 {
        mark: (tag, kind) { tag.value = 4; kind.width = 4; kind.interpretation = none; kind.format = "chars_le"; kind.values = "0 zero, 255 all"; }
    }"#;
    let schema = Schema::parse("marks.dtd", dtd).unwrap();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for kind in [0, 226, 255, 0x363232] {
        let line = format!(r#"{{"@section":"s","@record":"mark","kind":{kind}}}"#);
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    let trace = writer.finish().unwrap().into_inner();
    for form in Form::ALL.iter().copied() {
        let folder = tempfile::tempdir().unwrap();
        let files = export(&schema, &trace, form, false, folder.path()).unwrap();
        let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
        assert_eq!(import(&schema, &files, None, &mut writer, &mut |_| ()).unwrap(), 4);
        assert_eq!(records(&schema, &writer.finish().unwrap().into_inner()), records(&schema, &trace), "{form:?}");
    }
}

/// Items that consist of constants have no column, regardless of their nesting and their counts.
#[test]
fn items_of_constants_are_read_back() {
    let dtd = b"section s 1 {
        c.width = 1; c.interpretation = none; c.value = 9;
        n.width = 1; n.interpretation = none; m.width = 1; m.interpretation = none;
        two: (tag, (2)*((3)*(c))) { tag.value = 4; }
        counted: (tag, n*(m*(c, (m.value)*(c)))) { tag.value = 5; }
        outer: (tag, m, n*(m*(c))) { tag.value = 6; }
        optional: (tag, n, (n.bit 0)*(c, (2)*part)) { tag.value = 7; }
        part: (c);
    }";
    let schema = Schema::parse("c.dtd", dtd).unwrap();
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for line in [
        r#"{"@section":"s","@record":"two"}"#,
        r#"{"@section":"s","@record":"counted","n":2,"n_items":[{"m":0},{"m":3}]}"#,
        r#"{"@section":"s","@record":"outer","m":2,"n":3}"#,
        r#"{"@section":"s","@record":"optional","n":1}"#,
        r#"{"@section":"s","@record":"optional","n":2}"#,
    ] {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    let trace = writer.finish().unwrap().into_inner();
    assert_eq!(records(&schema, &trace).len(), 5);
    for form in Form::ALL.iter().copied() {
        for stored in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let files = export(&schema, &trace, form, stored, folder.path()).unwrap();
            let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &WriteOptions::default()).unwrap();
            import(&schema, &files, None, &mut writer, &mut |_| ()).unwrap_or_else(|error| panic!("{form:?}: {error}"));
            let copy = writer.finish().unwrap().into_inner();
            assert_eq!(records(&schema, &copy), records(&schema, &trace), "{form:?}");
        }
    }
    // A record cannot have more items than the limit.
    let many = br#"{"@section":"s","@record":"outer","m":65535,"n":65535}"#;
    assert!(schema.read_json(many, &mut owned).unwrap_err().to_string().contains("at most 65536 items"));
}
