//! Records returned as views are decoded in batches. If reading continues in another way, it continues after the last
//! returned record.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::columns::Columns;
use metatf::container::WriteOptions;
use metatf::dynamic::{Entry, Item, OwnedRecord, RecordView, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

/// DTD whose records are decoded in all ways: in batches, one at a time, and leaf by leaf.
const DTD: &str = "
    t.interpretation = delta 0; t.width = 1;
    section s 1 {
        plain: (tag, n, m, vfield) {
            tag.value = 4; n.width = 2; n.interpretation = none; m.interpretation = default 7;
            vfield.length.width = 1; vfield.length.interpretation = none;
        }
        own: (tag, d, k) { tag.value = 5; d.width = 1; d.interpretation = delta 9; k.interpretation = stride 3 5; }
        both: (tag, t, vfield, u) {
            tag.value = 6; u.width = 1; u.interpretation = none;
            vfield.length.width = 1; vfield.length.interpretation = none;
        }
        also: (tag, t, a) { tag.value = 7; a.width = 12; a.interpretation = none; }
        items: (tag, n, n*(t)) { tag.value = 8; n.width = 1; n.interpretation = none; }
        streamed: (tag, e, f) { tag.value = 9; e.interpretation = sectionStride 2 1; f.width = 1; f.interpretation = none; }
    }
    section elements 2 { element: (item) { item.width = 2; item.interpretation = none; } }";

const RECORDS: u64 = 500;

/// A record with its position, values and bytes.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    at: At,
    values: Vec<Value>,
    bytes: Vec<u8>,
}

/// Returns a trace in which records of each kind are next to each other kind, with long runs of two kinds in the
/// middle.
fn trace(schema: &Schema) -> Vec<u8> {
    let (number, mut owns) = (Value::Number, 0);
    let bytes = |count: u64| [Value::Number(count), Value::Bytes(vec![b'x'; usize::try_from(count).unwrap()])];
    let mut actions = Vec::new();
    for i in 0..RECORDS {
        let of_all = ["plain", "own", "streamed", "own", "both", "also", "plain", "items"];
        let names = if (150..350).contains(&i) { &of_all[..2] } else { &of_all[..] };
        let name = names[usize::try_from(i).unwrap() % names.len()];
        let values = match name {
            "plain" => [number(i), number(7)].into_iter().chain(bytes(i % 3)).collect(),
            "own" => {
                owns += 1;
                vec![number(i / 2), number(3 + 5 * owns)]
            }
            "both" => [number(i / 3)].into_iter().chain(bytes(i % 4)).chain([number(i % 200)]).collect(),
            "streamed" => vec![number(i * 3), number(i % 7)],
            "also" => vec![number(i / 3 + 1), Value::Bytes(vec![b'y'; 12])],
            _ => [number(i % 3)].into_iter().chain((0..i % 3).map(|k| number(i / 3 + k))).collect(),
        };
        let index = schema.format.records.iter().position(|record| record.name == name).unwrap();
        actions.push(Action::Record(1, u16::try_from(index).unwrap(), values));
    }
    let (trace, done) = runtime::write(schema, &actions, &WriteOptions::default());
    assert_eq!(done.len(), actions.len());
    trace
}

fn value(item: Item<'_>) -> Value {
    match item {
        Item::Number(number) => Value::Number(number),
        Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

fn of_owned(owned: &OwnedRecord) -> Vec<Value> {
    owned.iter().map(value).collect()
}

fn of_view(record: &RecordView<'_>) -> (At, Vec<Value>) {
    (record.at(), record.iter().skip(1).map(value).collect())
}

fn bytes(trace: &Trace<'_>, at: At) -> Vec<u8> {
    trace.reader().bytes_of(at).unwrap().1.to_vec()
}

/// Reads the next record from its event.
fn announced(trace: &mut Trace<'_>) -> Option<Known> {
    while let Some(event) = trace.reader_mut().next_event().unwrap() {
        if let Event::Record(at) = event {
            trace.decode(event).unwrap();
            return Some(Known { at, values: of_owned(trace.record()), bytes: bytes(trace, at) });
        }
    }
    None
}

/// Reads the next record as a view.
fn given(trace: &mut Trace<'_>) -> Option<Known> {
    let (at, values) = trace.next_record().unwrap().map(|record| of_view(&record))?;
    Some(Known { at, values, bytes: bytes(trace, at) })
}

/// Reads the next record as an owned record.
fn by_entry(trace: &mut Trace<'_>) -> Option<Known> {
    loop {
        let Entry { event, record } = trace.next_entry().unwrap()?;
        if let Event::Record(at) = event {
            let values = of_owned(record);
            return Some(Known { at, values, bytes: bytes(trace, at) });
        }
    }
}

/// Reads the next record with a loop that stops after it.
fn looped(trace: &mut Trace<'_>) -> Option<Known> {
    let mut found = None;
    let left = trace.try_for_each(|record| {
        found = Some(of_view(&record));
        Err(None)
    });
    assert!(left.is_ok() == found.is_none() && left.err().is_none_or(|error: Option<metatf::Error>| error.is_none()));
    found.map(|(at, values)| Known { at, values, bytes: bytes(trace, at) })
}

#[test]
fn every_way_goes_on_behind_what_was_given() {
    let schema = runtime::schema(DTD);
    let file = trace(&schema);
    let mut by_event = runtime::open(&schema, &file).unwrap();
    let known: Vec<_> = std::iter::from_fn(|| announced(&mut by_event)).collect();
    assert_eq!(known.len() as u64, RECORDS);
    let ways = [announced, given, by_entry, looped];
    for first in (0..known.len()).step_by(7) {
        for way in ways {
            let mut trace = runtime::open(&schema, &file).unwrap();
            for record in &known[..first] {
                assert_eq!(given(&mut trace).as_ref(), Some(record));
            }
            assert_eq!(trace.reader().records_read(), first as u64);
            for record in &known[first..(first + 3).min(known.len())] {
                assert_eq!(way(&mut trace).as_ref(), Some(record), "{first}");
            }
            for record in known.iter().skip(first + 3) {
                assert_eq!(given(&mut trace).as_ref(), Some(record), "{first}");
            }
            assert_eq!(given(&mut trace), None);
            assert_eq!(trace.reader().records_read(), RECORDS);
        }
    }
}

#[test]
fn so_do_columns_and_seeking() {
    let schema = runtime::schema(DTD);
    let file = trace(&schema);
    let mut columns = Columns::default();
    for first in (1..RECORDS).step_by(31) {
        let mut trace = runtime::open(&schema, &file).unwrap();
        let known: Vec<_> = (0..first).map_while(|_| given(&mut trace)).collect();
        assert!(trace.next_columns(&mut columns).unwrap());
        assert_eq!((columns.first(), columns.len() as u64), (first, RECORDS - first));
        trace.reader_mut().seek(first / 2).unwrap();
        let again: Vec<_> = (first / 2..first).map_while(|_| given(&mut trace)).collect();
        assert_eq!(again, known[usize::try_from(first / 2).unwrap()..]);
    }
}
