//! Tests of catch-all records, which match all tags that no other record uses.

use super::catch_all::{Columns, Events, Other, Record, Start, Trace, Writer};
use super::evolution::write;

fn written() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.start(&Start { pid: 7 }).unwrap();
    for tag in [0, 5, 0x101, 0xffff] {
        writer.other(&Other { tag, size: 6, rest: &b"hi"[..] }).unwrap();
    }
    // The tags of `start` and of `metadata`, and a tag of three bytes.
    for (tag, why) in [
        (4, "tag 4 belongs to another record"),
        (3, "tag 3 belongs to another record"),
        (0x1_0000, "does not fit in 2 bytes"),
    ] {
        let error = writer.other(&Other { tag, size: 4, rest: &b""[..] }).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    let last = Other { tag: 9, size: 4, rest: Vec::new() };
    writer.write_all([Record::Events(Events::Other(last)), Record::Events(Events::Start(Start { pid: 8 }))]).unwrap();
    writer.finish().unwrap()
}

/// Every way of reading returns the records with their tags.
#[test]
fn are_read_as_written() {
    let bytes = written();
    let records: Vec<Record> = Trace::from_slice(&bytes).unwrap().records().map(Result::unwrap).collect();
    let tag = |record: &Record| match record {
        Record::Events(Events::Other(other)) => Some((other.tag, other.rest.clone())),
        Record::Events(Events::Start(_)) => None,
    };
    let hi = || b"hi".to_vec();
    let others = [(0, hi()), (5, hi()), (0x101, hi()), (0xffff, hi()), (9, Vec::new())];
    assert_eq!(records.iter().filter_map(tag).collect::<Vec<_>>(), others);
    assert_eq!(records.len(), 7);
    let mut seen = Vec::new();
    Trace::from_slice(&bytes).unwrap().for_each(|record| seen.push(record.to_owned())).unwrap();
    assert_eq!(seen, records);
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let only: Vec<u64> = trace.only::<Other>().records().map(|other| other.unwrap().tag).collect();
    assert_eq!(only, [0, 5, 0x101, 0xffff, 9]);
    let mut columns = Columns::default();
    assert!(Trace::from_slice(&bytes).unwrap().next_columns(&mut columns).unwrap());
    assert_eq!(columns.other().tag, [0, 5, 0x101, 0xffff, 9]);
    assert_eq!(columns.start().pid, [7, 8]);
}

/// Catch-all records of a different DTD version are matched by name and keep their tags. No other record becomes a
/// catch-all record.
#[test]
fn are_found_by_name() {
    let dtd = "tag.width = 1; section events 1 {
        fresh: (tag) { tag.value = 5; }
        other: (tag, rest, size) { tag.value = other; rest.width = 9; rest.interpretation = none;
            size.width = 1; size.interpretation = none; } }";
    let lines = [
        r#"{"@section":"events","@record":"fresh"}"#,
        r#"{"@section":"events","@record":"other","tag":200,"rest":"000000000000000000","size":3}"#,
    ];
    let error = Trace::from_slice(&write(dtd, &lines)).unwrap_err().to_string();
    assert!(error.contains("`events.other.rest` is a byte array of variable length in the reader's DTD"), "{error}");
    let dtd = dtd.replace("rest.width = 9;", "rest.width = tag.width + 1;").replace("rest", "more");
    let lines = lines.map(|line| line.replace("\"rest\":\"000000000000000000\"", "\"more\":258"));
    let bytes = write(&dtd, &lines.each_ref().map(String::as_str));
    let records: Vec<Record> = Trace::from_slice(&bytes).unwrap().records().map(Result::unwrap).collect();
    assert_eq!(records, [Record::Events(Events::Other(Other { tag: 200, size: 3, rest: Vec::new() }))]);
}

/// A record with a single tag does not match a catch-all record of the same name.
#[test]
fn have_no_tag_of_their_own() {
    let dtd = "section events 1 { other: (tag, size) { tag.value = 9; size.width = 1; size.interpretation = none; } }";
    let error = Trace::from_slice(&write(dtd, &[])).unwrap_err().to_string();
    let expected =
        "`events.other.tag` is any tag not used by another record in the reader's DTD, but its own tag in the trace's";
    assert!(error.contains(expected), "{error}");
}
