//! Reading and writing do not allocate per record. Twice the number of records needs no more allocations, except for
//! chunks, groups, and growing tables.

use crate::ALLOCATOR;
use metatf::dynamic::{self, OwnedRecord, Schema, Writer};
use metatf::reader;
use metatf_bench::ours::hatf10::{self, Fit, plain, split, stored};
use metatf_bench::ours::{heap, universal};
use metatf_bench::{Event, Result, events};
use metatf_test::alone;
use std::hint::black_box;

/// Events of each program in a short and a long run.
const SHORT: usize = 2000;
const LONG: usize = 4000;

/// Returns the number of allocations in a pass.
fn allocations<T>(pass: impl FnOnce() -> Result<T>) -> Result<usize> {
    let (result, allocations) = ALLOCATOR.count(pass);
    black_box(result?);
    Ok(allocations)
}

fn some(most: usize) -> Result<Vec<Event>> {
    let mut all = Vec::new();
    for path in events::shipped()? {
        events::read_file(&path, most, &mut all)?;
    }
    Ok(all)
}

/// Checks that a longer run of `pass` needs fewer than one additional allocation per `records` records. `make` creates
/// the input of `pass`.
fn check<I, T>(
    name: &str,
    records: usize,
    make: impl Fn(&[Event]) -> Result<I>,
    pass: impl Fn(&I) -> Result<T>,
) -> Result<()> {
    let mut counts = Vec::new();
    for most in [SHORT, LONG] {
        let input = make(&some(most)?)?;
        counts.push(allocations(|| pass(&input))?);
    }
    let allowed = (LONG - SHORT) * 7 / records;
    assert!(counts[1] <= counts[0] + allowed, "{name}: {counts:?} allocations, but {allowed} more are allowed");
    Ok(())
}

/// A loop over the bytes of a trace.
type Read = fn(&[u8]) -> Result<u64>;

fn reading(name: &str, records: usize, make: impl Fn(&[Event]) -> Result<Vec<u8>>, read: Read) -> Result<()> {
    check(name, records, make, |trace| read(trace))
}

/// Copies the records of a trace using the dynamic reader and the dynamic writer.
fn copy(trace: &[u8]) -> Result<Vec<u8>> {
    let mut trace_in = dynamic::Trace::from_slice(trace)?;
    let schema = trace_in.schema().clone();
    let mut writer = Writer::new(Vec::with_capacity(trace.len() * 2), &schema, &stored())?;
    while let Some(entry) = trace_in.next_entry()? {
        if let reader::Event::Record(at) = entry.event {
            writer.record(at.section, at.record, entry.record)?;
        }
    }
    Ok(writer.finish()?)
}

/// Returns a trace whose records contain repeated fields and bytes.
fn lists(events: &[Event]) -> Result<Vec<u8>> {
    let schema = Schema::parse(
        "lists.dtd",
        b"section s 1 { t: (tag, n*(a), vfield) { tag.value = 4; n.width = 1; n.interpretation = none;
          a.width = 8; a.interpretation = delta 0; vfield.length.width = 1; vfield.length.interpretation = none; } }",
    )?;
    let section = schema.format.section_named("s").ok_or("no section")?;
    let record = schema.format.records.iter().position(|record| record.name == "t").ok_or("no record")?;
    let mut writer = Writer::new(Vec::new(), &schema, &stored())?;
    let mut owned = OwnedRecord::default();
    for (i, events) in events.chunks(3).enumerate() {
        owned.clear();
        owned.push_number(events.len() as u64);
        for event in events {
            let (Event::Alloc { address, .. } | Event::Realloc { address, .. } | Event::Free { address }) = *event;
            owned.push_number(address);
        }
        let bytes = &b"some bytes, more or less"[..i % 20];
        owned.push_number(bytes.len() as u64);
        owned.push_bytes(bytes);
        writer.record(section, u16::try_from(record)?, &owned)?;
    }
    Ok(writer.finish()?)
}

#[test]
fn nothing_for_a_record() {
    if !alone("allocations::nothing_for_a_record") {
        return;
    }
    run().unwrap();
}

fn run() -> Result<()> {
    let hatf10 = |events: &[Event]| Ok(hatf10::plain_trace(events)?);
    let best = |events: &[Event]| hatf10::best_trace(&hatf10::plain_trace(events)?);
    let split = |events: &[Event]| Ok(split::write(events, &stored(), Fit::Widen, false, Vec::new())?);
    let predicted = |events: &[Event]| Ok(heap::model::write(events, &heap::options(), Vec::new())?);
    for (name, make) in [("plain", &hatf10 as &dyn Fn(&[Event]) -> Result<Vec<u8>>), ("best", &best)] {
        reading(&format!("{name}, `next`"), 1000, make, plain::all)?;
        reading(&format!("{name}, `for_each`"), 1000, make, plain::each_all)?;
        reading(&format!("{name}, `only`"), 1000, make, plain::only_one)?;
        reading(&format!("{name}, columns"), 1000, make, plain::columns_all)?;
        reading(&format!("{name}, universal, columns"), 1000, make, universal::columns_all)?;
        reading(&format!("{name}, universal"), 1000, make, universal::all)?;
        reading(&format!("{name}, universal, `for_each`"), 1000, make, universal::each_all)?;
        reading(&format!("{name}, universal, owned records"), 1000, make, universal::entries_all)?;
        reading(&format!("{name}, skipped"), 1000, make, |trace| Ok(universal::skipped_count(trace)?.iter().sum()))?;
    }
    reading("split, `for_each`", 1000, split, split::each_all)?;
    reading("split, universal", 1000, split, universal::all)?;
    // The models' data about objects grows in blocks.
    reading("heap.dtd, `next`", 100, predicted, heap::model::all)?;
    reading("heap.dtd, `for_each`", 100, predicted, heap::model::each_all)?;
    reading("heap.dtd, universal", 100, predicted, universal::all)?;
    reading("lists, universal", 1000, lists, universal::all)?;

    let same = |events: &[Event]| Ok(events.to_vec());
    let room = |events: &[Event]| Vec::with_capacity(events.len() * 64);
    check("plain, written", 1000, same, |events| {
        Ok(plain::write(events, &stored(), Fit::Strict, true, room(events))?)
    })?;
    check("plain, written at once", 1000, same, |events| {
        Ok(plain::write_all(events, &stored(), Fit::Strict, true, room(events))?)
    })?;
    check("widening", 1000, same, |events| Ok(plain::write(events, &stored(), Fit::Widen, false, room(events))?))?;
    check("split, written", 1000, same, |events| {
        Ok(split::write(events, &stored(), Fit::Widen, false, room(events))?)
    })?;
    check("heap.dtd, written", 100, same, |events| Ok(heap::model::write(events, &heap::options(), room(events))?))?;
    check("plain, copied", 1000, hatf10, |trace| copy(trace))?;
    check("lists, copied", 1000, lists, |trace| copy(trace))
}
