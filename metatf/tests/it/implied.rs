//! Checks the values that a generated writer supplies for fields that store no bytes.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use metatf::container::{FlushEvery, WriteOptions};
use metatf::typed::Event;

#[metatf_derive::metatf(dtd = "tests/dtds/implied.dtd")]
mod sequences {}

use sequences::{Close, Log, Note, Open, Record, Tick, Trace, Writer};

fn options() -> WriteOptions {
    WriteOptions { flush: FlushEvery::NEVER, ..WriteOptions::default() }
}

#[test]
fn sequences_continue_across_records_and_groups() {
    let mut writer = Writer::with_options(Vec::new(), &options()).unwrap();
    writer.open(&Open { path: 3, ..writer.next_open() }).unwrap();
    writer.close(&writer.next_close()).unwrap();
    writer.start_group().unwrap();
    writer.open(&Open { path: 4, ..writer.next_open() }).unwrap();
    writer.close(&writer.next_close()).unwrap();
    let bytes = writer.finish().unwrap();

    // Each sequence costs a metadata record in the second group.
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let mut changes = 0;
    while let Some(event) = trace.next_event().unwrap() {
        changes += usize::from(matches!(event, Event::Metadata { .. }));
    }
    assert_eq!(changes, 2);

    let records: Vec<Record> = Trace::from_slice(&bytes).unwrap().into_iter().collect::<Result<_, _>>().unwrap();
    let expected = [
        Log::Open(Open { id: 15, kind: 7, path: 3 }),
        Log::Close(Close { id: 20, step: -1 }),
        Log::Open(Open { id: 25, kind: 7, path: 4 }),
        Log::Close(Close { id: 30, step: -2 }),
    ];
    assert_eq!(records, expected.map(Record::Log));
}

#[test]
fn supplied_values_take_no_bytes() {
    let mut writer = Writer::with_options(Vec::new(), &options()).unwrap();
    writer.set_strict(true);
    for _ in 0..100 {
        writer.close(&writer.next_close()).unwrap();
    }
    // A strict writer accepts no other value.
    assert!(writer.close(&Close { id: 0, step: 0 }).is_err());
    writer.open(&writer.next_open()).unwrap();
    writer.start_group().unwrap();
    writer.close(&writer.next_close()).unwrap();
    assert_eq!(writer.records_written(), 102);
    writer.finish().unwrap();
}

#[test]
fn differences_in_a_strict_writer_continue_across_groups() {
    let mut writer = Writer::with_options(Vec::new(), &options()).unwrap();
    writer.set_strict(true);
    let times: Vec<u64> = (1..=10).map(|n| n * 100).collect();
    for time in &times {
        writer.tick(&Tick { time: *time }).unwrap();
        if time % 500 == 0 {
            writer.start_group().unwrap();
            // The difference from the last time of the previous group must fit, too.
            assert!(writer.tick(&Tick { time: time + 200 }).is_err());
        }
    }
    let bytes = writer.finish().unwrap();
    let mut read = Vec::new();
    Trace::from_slice(&bytes).unwrap().only::<Tick>().for_each(|tick| read.push(tick.time)).unwrap();
    assert_eq!(read, times);
}

#[test]
fn an_optional_field_must_agree_with_its_condition() {
    let mut writer = Writer::with_options(Vec::new(), &options()).unwrap();
    for (flags, extra) in [(0, Some(1)), (1, None), (2, Some(1))] {
        assert!(writer.note(&Note { flags, extra }).is_err(), "{flags} {extra:?}");
    }
    for (flags, extra) in [(0, None), (1, Some(7)), (2, None)] {
        writer.note(&Note { flags, extra }).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut read = Vec::new();
    Trace::from_slice(&bytes).unwrap().only::<Note>().for_each(|note| read.push((note.flags, note.extra))).unwrap();
    assert_eq!(read, [(0, None), (1, Some(7)), (2, None)]);
}
