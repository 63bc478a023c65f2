//! Tests every way of reading and writing records. The traces are short and uncompressed, so that Miri can run the
//! tests. They cover all `unsafe` code in the runtime except for mapped files.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use loops::{Call, Calls, End, Guess, Guesses, Mark, Marks, Protocol, Record, Tick, Ticks, Trace, Writer};
use metatf::container::{Codec, Filter, Reader, WriteOptions};
use metatf::reader::{FormatRef, Item, RecordReader};
use metatf::typed::Protocol as _;
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

#[metatf_derive::metatf(dtd = "tests/dtds/loops.dtd")]
mod loops {}

/// Returns records of all types. Most of them fit the DTD, but some values require metadata.
fn records() -> Vec<Record> {
    let call = |n: u64| {
        let address = if n == 4 { 1 << 40 } else { 1000 + n };
        let vfield = if n.is_multiple_of(5) { vec![b'x'; 40] } else { Vec::new() };
        Record::Calls(Calls::Call(Call { size: n, address, flag: u64::from(n == 7), vfield }))
    };
    let end = |size| Record::Calls(Calls::End(End { size }));
    let mark = |size| Record::Marks(Marks::Mark(Mark { size, place: 7 * size }));
    let tick = |n| Record::Ticks(Ticks::Tick(Tick { time: n * n, vfield: vec![b'y'; 3] }));
    let guess = |size| Record::Guesses(Guesses::Guess(Guess { size, next: 3 * size + size / 6 }));
    let mut records = Vec::new();
    for n in 0..10 {
        records.extend([call(n), end(n)]);
    }
    records.extend((0..8).map(mark));
    records.extend((0..8).map(tick));
    records.extend((0..8).map(guess));
    for n in 0..3 {
        records.extend([call(n), mark(n), mark(n + 1), tick(n), guess(n)]);
    }
    records
}

/// Returns options for uncompressed chunks of a few records.
fn options() -> WriteOptions {
    WriteOptions { codec: Codec::Stored, filter: Filter::None, chunk_size: 150, ..WriteOptions::default() }
}

fn writer() -> Writer<Vec<u8>> {
    let mut writer = Writer::with_options(Vec::new(), &options()).unwrap();
    writer.set_keep_order(true);
    writer
}

/// Writes the records one by one, with a comment among them.
fn trace() -> Vec<u8> {
    let mut writer = writer();
    for (n, record) in records().iter().enumerate() {
        if n == 5 {
            writer.comment(1, "five records").unwrap();
        }
        writer.write(record).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn records_are_written_one_by_one_and_at_once() {
    let records = records();
    let mut one_by_one = writer();
    records.iter().for_each(|record| one_by_one.write(record).unwrap());
    let one_by_one = one_by_one.finish().unwrap();

    let mut at_once = writer();
    at_once.write_all(&records).unwrap();
    assert!(at_once.finish().unwrap() == one_by_one);

    // This sink does not lend its memory to the writer.
    let mut apart = Writer::with_options(Cursor::new(Vec::new()), &options()).unwrap();
    apart.set_keep_order(true);
    apart.write_all(&records).unwrap();
    assert_eq!(Trace::from_slice(apart.finish().unwrap().get_ref()).unwrap().records().count(), records.len());

    // Version 0 is written in place or spooled.
    let version_0 = WriteOptions { version: 0, ..options() };
    let mut in_place = Writer::with_options(Vec::new(), &version_0).unwrap();
    in_place.write_all(&records).unwrap();
    let mut spooled = Writer::with_options(Cursor::new(Vec::new()), &version_0).unwrap();
    records.iter().for_each(|record| spooled.write(record).unwrap());
    assert!(in_place.finish().unwrap() == spooled.finish().unwrap().into_inner());

    let mut interrupted = writer();
    let (first, rest) = records.split_at(13);
    let panics = std::iter::from_fn(|| resume_unwind(Box::new("no more records")));
    catch_unwind(AssertUnwindSafe(|| interrupted.write_all(first.iter().chain(panics)))).unwrap_err();
    interrupted.write_all(rest).unwrap();
    assert!(interrupted.finish().unwrap() == one_by_one);
}

#[test]
fn records_are_read_one_by_one() {
    let (bytes, records) = (trace(), records());
    let mut trace = Trace::from_slice(&bytes).unwrap();
    for record in &records {
        assert_eq!(trace.next().unwrap().unwrap().to_owned(), *record);
    }
    assert_eq!(trace.next(), Ok(None));
    let owned: Vec<_> = Trace::from_slice(&bytes).unwrap().records().map(Result::unwrap).collect();
    assert_eq!(owned, records);
}

#[test]
fn records_are_read_in_loops_that_are_left() {
    let (bytes, records) = (trace(), records());
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let mut seen = Vec::new();
    trace.for_each(|record| seen.push(record.to_owned())).unwrap();
    assert_eq!(seen, records);

    let mut trace = Trace::from_slice(&bytes).unwrap();
    let (mut seen, mut most) = (Vec::new(), 1);
    loop {
        // The loop itself does not fail; the closure stops it.
        let left = trace.try_for_each(|record| {
            seen.push(record.to_owned());
            if seen.len() % most == 0 {
                Err(std::io::Error::other("enough").into())
            } else {
                Ok::<_, metatf::Error>(())
            }
        });
        if left.is_ok() {
            break;
        }
        seen.extend(trace.next().unwrap().map(|record| record.to_owned()));
        most += 3;
    }
    assert_eq!(seen, records);
}

#[test]
fn records_of_one_type_and_of_one_section_are_read() {
    let (bytes, records) = (trace(), records());
    let calls: Vec<Call> = records
        .iter()
        .filter_map(|r| if let Record::Calls(Calls::Call(call)) = r { Some(call.clone()) } else { None })
        .collect();
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let (mut only, mut seen) = (trace.only::<Call>(), Vec::new());
    while let Some(call) = only.next_record().unwrap() {
        seen.push(call.to_owned());
    }
    assert_eq!(seen, calls);

    let ticks = records.iter().filter(|record| matches!(record, Record::Ticks(_)));
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let mut section = trace.ticks();
    for tick in ticks {
        assert_eq!(Record::Ticks(section.next_record().unwrap().unwrap().to_owned()), *tick);
    }
    assert_eq!(section.next_record(), Ok(None));
}

#[test]
fn records_are_read_by_columns_and_by_values() {
    let (bytes, records) = (trace(), records());
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let (mut columns, mut addresses, mut texts) = (loops::Columns::default(), Vec::new(), 0);
    while trace.next_columns(&mut columns).unwrap() {
        addresses.extend_from_slice(columns.call().address);
        texts += columns.call().vfield.data().len() + columns.tick().vfield.data().len();
    }
    let calls = records.iter().filter_map(|r| if let Record::Calls(Calls::Call(call)) = r { Some(call) } else { None });
    assert_eq!(addresses, calls.clone().map(|call| call.address).collect::<Vec<_>>());
    assert_eq!(texts, calls.map(|call| call.vfield.len()).sum::<usize>() + 11 * 3);

    let format = FormatRef::Static(Protocol::FORMAT);
    let mut reader = RecordReader::new(format.clone(), Reader::from_slice(&bytes).unwrap()).unwrap();
    let mut sums = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        sums.push(record.iter().fold(0, sum));
    }
    assert_eq!(sums.len(), records.len());
    let mut reader = RecordReader::new(format, Reader::from_slice(&bytes).unwrap()).unwrap();
    let mut looped = Vec::new();
    reader.for_each(|record| looped.push(record.iter().fold(0, sum))).unwrap();
    assert_eq!(looped, sums);
}

fn sum(sum: u64, item: Item<'_>) -> u64 {
    sum.wrapping_add(match item {
        Item::Number(number) => number,
        Item::Bytes(bytes) => bytes.len() as u64,
    })
}
