//! Tests of traces that several dynamic writers continue.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use metatf::container::{AppendFile, Class, ErrorKind, Order, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use std::ops::Range;
use std::path::Path;

/// A table, numbers in a stream section, and values that depend on the previous record.
const DTD: &str = r#"
section log 1 {
    r: (at, time, size) {
        tag.value = 4;
        at.width = 4;
        at.interpretation = sectionOffset 2;
        time.width = 1;
        time.interpretation = delta 0;
        size.interpretation = sectionStride 3 1;
    }
}
section names 2 { name: vfield { vfield.data.format = "utf8"; } }
section sizes 3 { number: (n) { n.width = 4; n.interpretation = none; } }
"#;

fn append(path: &Path, dtd: &str, options: &WriteOptions, records: Range<u64>) -> metatf::Result<()> {
    let schema = Schema::parse("log.dtd", dtd.as_bytes()).unwrap();
    let mut owned = OwnedRecord::default();
    let mut writer = Writer::new(AppendFile::open(path)?, &schema, options)?;
    for n in records {
        let name = format!(r#"{{"@section":"names","@record":"name","vfield":"n{}","@shared":true}}"#, n % 10);
        // A name takes three bytes.
        let (at, time, size) = (3 * n, 1000 * n, n * n);
        let record = format!(r#"{{"@section":"log","@record":"r","at":{at},"time":{time},"size":{size}}}"#);
        for line in [name, record] {
            let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned)?;
        }
    }
    writer.finish().map(drop)
}

#[test]
fn tables_streams_and_deltas_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mtf");
    let first = WriteOptions { class: Class::Bits32, order: Order::Big, ..WriteOptions::default() };
    append(&path, DTD, &first, 0..1000).unwrap();
    // Later writers use the byte order of the file, and may have another text of the same DTD.
    append(&path, DTD, &WriteOptions { group_size: 500, ..WriteOptions::default() }, 1000..1500).unwrap();
    append(&path, &format!("// Another text.\n{DTD}"), &WriteOptions::default(), 1500..1501).unwrap();
    append(&path, DTD, &WriteOptions::default(), 1501..1501).unwrap();

    let mut trace = Trace::open(&path).unwrap();
    assert_eq!(trace.reader_mut().container().header().nrecords, 1501);
    let mut next = 0;
    trace
        .for_each(|record| {
            assert_eq!(record.numbers(), [4, 3 * next, 1000 * next, next * next]);
            next += 1;
        })
        .unwrap();
    assert_eq!(next, 1501);
    assert!(trace.reader_mut().container().warnings().is_empty());
    for n in [1499, 3, 1500, 1000] {
        trace.reader_mut().seek(n).unwrap();
        assert_eq!(trace.next_record().unwrap().unwrap().numbers()[3], n * n);
    }
}

#[test]
fn another_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mtf");
    append(&path, DTD, &WriteOptions::default(), 0..10).unwrap();
    let before = std::fs::read(&path).unwrap();
    let other = DTD.replace("time.width = 1;", "time.width = 2;");
    let error = append(&path, &other, &WriteOptions::default(), 10..20).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Mismatch(_)), "{error}");
    let error = append(&path, DTD, &WriteOptions { version: 0, ..WriteOptions::default() }, 10..20).unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Usage(_)), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}
