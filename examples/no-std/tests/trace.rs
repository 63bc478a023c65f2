//! Checks that the trace written by a program without the standard library is an ordinary trace.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use std::sync::atomic::{AtomicU64, Ordering};

use example_no_std::{pools, run};
use metatf::container::Reader;
use metatf::dynamic::{Item, Trace};

fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(0);
    NOW.fetch_add(1 << 33, Ordering::Relaxed)
}

/// Returns the records of a trace by name and numbers.
fn records(bytes: &[u8]) -> Vec<(String, Vec<u64>)> {
    let mut trace = Trace::embedded(Reader::from_slice(bytes).unwrap()).unwrap();
    let schema = trace.schema().clone();
    let mut all = Vec::new();
    while let Some(entry) = trace.next_entry().unwrap() {
        if let metatf::reader::Event::Record(at) = entry.event {
            let leaves = (0..).map_while(|leaf| entry.record.get(leaf));
            let numbers = leaves.filter_map(|item| if let Item::Number(number) = item { Some(number) } else { None });
            all.push((schema.record(at.record).unwrap().name.clone(), numbers.collect()));
        }
    }
    all
}

#[test]
fn the_trace_has_all_events() {
    let (mut bytes, mut writes) = (Vec::new(), 0);
    assert!(run(clock, |part| {
        bytes.extend_from_slice(part);
        writes += 1;
        true
    }));
    let records = records(&bytes);
    assert!(records.len() == 502 && writes > 10, "{} records, {writes} writes", records.len());
    assert_eq!(records[0].0, "create");
    for (number, (name, values)) in (0..).zip(&records[1..501]) {
        assert!(name == "alloc" && values.ends_with(&[0x2000_0000 + 32 * number, 3]), "{name} {values:?}");
    }
    assert!(records[501].0 == "grow" && records[501].1.ends_with(&[3, 0.75_f64.to_bits()]), "{:?}", records[501]);
}

/// Checks that chunks that could not be written count as dropped, and that the trace contains the number of their
/// events.
#[test]
fn what_could_not_be_written_is_counted() {
    let (mut bytes, mut writes) = (Vec::new(), 0);
    run(clock, |part| {
        writes += 1;
        let is_written = !(4..8).contains(&writes);
        if is_written {
            bytes.extend_from_slice(part);
        }
        is_written
    });
    let records = records(&bytes);
    let lost: u64 = records.iter().filter(|(name, _)| name == "dropped").filter_map(|(_, values)| values.last()).sum();
    let whole = records.iter().filter(|(name, _)| name != "dropped").count() as u64;
    assert!(lost > 50 && whole + lost == 502, "{whole} and {lost}");
}

#[test]
fn a_buffer_that_is_too_small_is_refused() {
    let mut buffer = [0; pools::BUFFER_LEAST];
    assert!(pools::Emitter::begin(&mut buffer[1..], clock, |_| true).is_none());
    assert!(pools::Emitter::begin(&mut buffer, clock, |_| false).is_none());
    let mut emitter = pools::Emitter::begin(&mut buffer, clock, |_| true).unwrap();
    // A disabled event is not stored, and the longest string fits.
    pools::create(&mut emitter, 1, 2, "off");
    assert!(emitter.flush() && emitter.dropped() == 0);
    emitter.control = u64::MAX;
    pools::create(&mut emitter, 1, 2, &"\u{e9}".repeat(300));
    assert!(emitter.finish());
}
