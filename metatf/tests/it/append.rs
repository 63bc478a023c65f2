//! Tests of traces that several dynamic writers continue.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use metatf::container::{AppendFile, Class, ErrorKind, Order, Reader, TimeRange, WriteOptions};
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

/// The times of groups are those of all writers, or unknown where a writer did not state them.
#[test]
fn the_times_of_all_groups_are_stated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.mtf");
    let dtd = DTD.replace("delta 0;", "delta 0; time.role = \"time\";");
    let groups = || Reader::open(&path).unwrap().group_times().unwrap().map(|times| times.groups);
    let range = |lowest, highest| TimeRange { lowest, highest };
    let options = WriteOptions::default();
    append(&path, &dtd, &options, 0..3).unwrap();
    assert_eq!(groups(), None, "a single group");
    append(&path, &dtd, &options, 3..6).unwrap();
    append(&path, &dtd, &options, 6..7).unwrap();
    assert_eq!(groups().unwrap(), [TimeRange::ALL, range(3000, 5000), range(6000, 6000)]);
    let chunks = Reader::open(&path).unwrap().chunks().unwrap().to_vec();
    assert_eq!(chunks.iter().filter(|chunk| chunk.kind == 129).count(), 1);

    // The writer was killed: before the index, inside the times, and before them.
    let whole = std::fs::read(&path).unwrap();
    let last = chunks.last().unwrap();
    let end = usize::try_from(last.offset).unwrap();
    let index = end + 48 + last.stored_len as usize;
    for (length, known) in [(index, true), (index + 10, true), (index - 1, false), (end, false)] {
        std::fs::write(&path, &whole[..length]).unwrap();
        append(&path, &dtd, &options, 7..8).unwrap();
        let expected = if known { [range(3000, 5000), range(6000, 6000)] } else { [TimeRange::ALL; 2] };
        assert_eq!(groups().unwrap()[..3], [[TimeRange::ALL].as_slice(), &expected].concat(), "{length}");
        assert_eq!(groups().unwrap()[3..], [range(7000, 7000)]);
    }
    // Annotations do not change the meaning of a DTD, but the times of a writer without them are unknown.
    append(&path, DTD, &options, 8..9).unwrap();
    assert_eq!(groups(), None);
    append(&path, &dtd, &options, 9..10).unwrap();
    assert_eq!(groups().unwrap()[4..], [TimeRange::ALL, range(9000, 9000)]);
}
