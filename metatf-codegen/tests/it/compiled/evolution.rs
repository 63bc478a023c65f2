//! Traces of other DTD versions, read by name (spec 5.3).

use super::string_table::{Alloc, Record, S, Trace};
use metatf::container::{Sink, WriteOptions};
use metatf::dynamic::{Schema, Writer};
use metatf::typed::TraceOptions;

pub(crate) fn write(dtd: &str, lines: &[&str]) -> Vec<u8> {
    let parsed = metatf_parser::parse("test.dtd", dtd.as_bytes());
    let schema = Schema::new(parsed.dtd.unwrap());
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let mut owned = metatf::dynamic::OwnedRecord::default();
    for line in lines {
        let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    let mut bytes = writer.finish().unwrap();
    assert!(bytes.mark().is_some());
    bytes
}

fn read(bytes: &[u8]) -> Vec<Record> {
    Trace::from_slice(bytes).unwrap().into_iter().map(Result::unwrap).collect()
}

/// A trace is readable if its DTD has different numbers, a different order, added and removed fields, and different
/// encodings.
#[test]
fn another_version() {
    let dtd = "tag.width = 2;
        section s 9 {
          more: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; }
          alloc: (tag, extra, size, note, kind) { tag.value = 700; extra.width = 1; extra.interpretation = none;
            size.width = 3; size.interpretation = delta 0; note.width = extra.value; note.interpretation = none;
            kind.width = 1; kind.interpretation = none; } }";
    let bytes = write(
        dtd,
        &[
            r#"{"@section":"s","@record":"more","a":1}"#,
            r#"{"@section":"s","@record":"alloc","extra":2,"size":300,"note":"abcd","kind":7}"#,
        ],
    );
    assert_eq!(read(&bytes), [Record::S(S::Alloc(Alloc { r#type: 0, size: 300 }))]);
}

#[test]
fn tables_by_name() {
    let dtd = "section names 7 { entry: (vfield, more) { more.width = 1; more.interpretation = none; } }
        section s 1 { alloc: (tag, type) { tag.value = 4; type.width = 2; type.interpretation = sectionOffset 7; } }";
    let bytes = write(
        dtd,
        &[
            r#"{"@section":"names","@record":"entry","vfield":"6869","more":1}"#,
            r#"{"@section":"names","@record":"entry","vfield":"686f","more":2}"#,
            r#"{"@section":"s","@record":"alloc","type":4}"#,
        ],
    );
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let Some(Record::S(S::Alloc(alloc))) = trace.next().unwrap() else { panic!() };
    assert_eq!(trace.names().get(alloc.r#type).unwrap().vfield, b"ho");
}

#[test]
fn annotations_do_not_matter() {
    let dtd = format!(
        "// new head\n{}",
        super::string_table::FORMAT.dtd.replace("size.width = 1;", "size.width=1;size.unit = \"b\";")
    );
    let bytes = write(&dtd, &[r#"{"@section":"s","@record":"alloc","type":0,"size":3}"#]);
    assert_eq!(read(&bytes), [Record::S(S::Alloc(Alloc { r#type: 0, size: 3 }))]);
}

#[test]
fn what_cannot_be_resolved_is_named() {
    let cases = [
        (
            "section s 1 { alloc: (tag, size) { tag.value = 4; size.width = 9; size.interpretation = none; } }",
            "`s.alloc.size` is a number in the reader's DTD, but an array of 9 bytes in the trace's",
        ),
        (
            "section s 1 { alloc: (tag, n*size) { tag.value = 4; n.width = 1; n.interpretation = none; size.width = 1;
             size.interpretation = none; } }",
            "`s.alloc.size` is not repeated in the reader's DTD, but repeated by `n` in the trace's",
        ),
        (
            "section s 1 { alloc: vfield; }",
            "section `s` is a section of tagged records in the reader's DTD, but a stream section in the trace's",
        ),
    ];
    for (dtd, expected) in cases {
        let error = Trace::from_slice(&write(dtd, &[])).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn no_embedded_dtd() {
    let options = |url: &str| WriteOptions { embed_dtd: false, dtd_url: url.to_owned(), ..WriteOptions::default() };
    let write = |url| {
        let mut writer = super::string_table::Writer::with_options(Vec::new(), &options(url)).unwrap();
        writer.alloc(&Alloc { r#type: 0, size: 3 }).unwrap();
        writer.finish().unwrap()
    };
    assert_eq!(read(&write("")).len(), 1);
    assert_eq!(read(&write("file:///usr/share/string_table.dtd")).len(), 1);
    let other = write("other.dtd");
    assert!(Trace::from_slice(&other).unwrap_err().to_string().contains("names `other.dtd`"));
    let text = super::string_table::FORMAT.dtd.to_string();
    let trace = Trace::from_opened(TraceOptions::new().dtd(text).from_slice(&other).unwrap());
    assert_eq!(trace.into_iter().count(), 1);
}
