//! Checks which tier decodes the records of the project's own formats. If a fast path is no longer taken, reading is
//! slower but returns the same records, so no other test would fail.

use crate::decode::logged;
use crate::format::Interpretation;
use crate::state::Change;

#[metatf_derive::metatf(dtd = "dtds/HATF10.dtd")]
mod plain {}

#[metatf_derive::metatf(dtd = "dtds/HATF10-split.dtd")]
mod split {}

#[metatf_derive::metatf(dtd = "dtds/heap.dtd")]
mod heap {}

/// Number of records in a trace. It is large enough that the few records at the end of a part, which are decoded leaf
/// by leaf, do not matter.
const RECORDS: u64 = 1000;
const LAST: u64 = 16;

/// Reads a trace in every way and asserts that this tier (specialized, planned, stateful, general) decoded all records
/// except for the last ones and those that the models cannot predict yet.
macro_rules! assert_tier {
    ($format:ident, $trace:expr, $tier:literal, $columns:literal) => {{
        let bytes = $trace;
        let mostly = |tier: usize, way: &str| {
            let counts = logged();
            assert!(counts[tier] >= RECORDS - LAST, "{way}: {counts:?}, expected tier {tier}");
        };
        logged();
        $format::Trace::from_slice(&bytes).unwrap().for_each(|_| {}).unwrap();
        mostly($tier, "for_each");
        let mut trace = $format::Trace::from_slice(&bytes).unwrap();
        while trace.next().unwrap().is_some() {}
        mostly($tier, "next");
        let (mut trace, mut columns) = ($format::Trace::from_slice(&bytes).unwrap(), $format::Columns::default());
        while trace.next_columns(&mut columns).unwrap() {}
        mostly($columns, "columns");
    }};
}

fn plain(address: impl Fn(u64) -> u64, options: impl Fn(&mut plain::Writer<Vec<u8>>)) -> Vec<u8> {
    let mut writer = plain::Writer::new(Vec::new()).unwrap();
    options(&mut writer);
    for n in 0..RECORDS {
        let (size, address) = (n, address(n));
        let alloc = plain::Alloc { size, address, time: 0, thread: 0, heap: 0, vfield: b"".as_slice() };
        writer.alloc(&alloc).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn records_as_the_dtd_has_them_are_specialized() {
    assert_tier!(plain, plain(|n| 16 * n, |_| {}), 0, 0);
}

#[test]
fn other_widths_are_planned() {
    // `next` and columns use the same rows.
    assert_tier!(plain, plain(|n| (1 << 40) + 16 * n, |_| {}), 1, 1);
}

#[test]
fn deltas_are_general_where_the_dtd_has_none() {
    let delta = |writer: &mut plain::Writer<Vec<u8>>| {
        writer.set("heap", "alloc", "address", Change::Interpretation(Interpretation::Delta(0))).unwrap();
    };
    assert_tier!(plain, plain(|n| 16 * n, delta), 3, 3);
}

#[test]
fn numbers_of_streams_are_stateful() {
    let mut writer = split::Writer::new(Vec::new()).unwrap();
    for n in 0..RECORDS {
        let alloc = split::Alloc { size: n, address: 16 * n, time: 0, thread: 0, heap: 0, vfield: b"".as_slice() };
        writer.alloc(&alloc).unwrap();
    }
    assert_tier!(split, writer.finish().unwrap(), 2, 2);
}

/// Writes a heap trace with or without the times of its calls.
fn heap(with_times: bool) -> Vec<u8> {
    let mut writer = heap::Writer::new(Vec::new()).unwrap();
    if with_times {
        let change = Change::Interpretation(Interpretation::SectionStride(4, 1));
        writer.set_all("heap", "malloc", "time", change).unwrap();
    }
    for n in 0..RECORDS / 2 {
        let (time, address) = (if with_times { 2 * n } else { 0 }, 0x5000 + 32 * (n % 7));
        writer.malloc(&heap::Malloc { time, stack: 0, size: 24, usable: 0, address }).unwrap();
        writer.free(&heap::Free { time: time + u64::from(with_times), stack: 0, address }).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn predicted_addresses_are_stateful() {
    assert_tier!(heap, heap(false), 2, 2);
}

#[test]
fn times_of_recordings_are_stateful() {
    assert_tier!(heap, heap(true), 2, 2);
}
