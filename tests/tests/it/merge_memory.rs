//! Memory use of merging is bounded by the number of traces, not by their length.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::ALLOCATOR;
use metatf::container::WriteOptions;
use metatf::dynamic::{Item, OwnedRecord, Schema, Writer};
use metatf_test::alone;
use metatf_tests::{merging, runtime};
use metatf_tools::convert::ConvertOptions;
use metatf_tools::merge::merge;

/// Returns a trace of this many records, in 64 KiB chunks.
fn trace(schema: &Schema, options: &WriteOptions, records: u64, seed: u64) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), schema, options).unwrap();
    let (mut time, mut random) = (0, seed);
    for _ in 0..records {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        time += random >> 56;
        let mut owned = OwnedRecord::default();
        owned.push_number(time);
        owned.push_number(random >> 32);
        writer.record(1, 3, &owned).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn longer_traces_take_no_more() {
    if !alone("merge_memory::longer_traces_take_no_more") {
        return;
    }
    let schema = runtime::schema(
        "section s 1 { r: (tag, time, n) { tag.value = 4; time.width = 8; time.interpretation = delta 0; n.width = 4;
        n.interpretation = none; } }",
    );
    let options = WriteOptions { chunk_size: 64 << 10, ..WriteOptions::default() };
    let peak = |traces: u64, records: u64| {
        let traces: Vec<_> = (1..=traces).map(|seed| trace(&schema, &options, records, seed)).collect();
        ALLOCATOR.peak(|| {
            let source = |trace| {
                let key = |_, owned: &mut OwnedRecord| match owned.get(0) {
                    Some(Item::Number(time)) => Some(time),
                    _ => None,
                };
                merging::source(&schema, trace, &ConvertOptions::default(), Box::new(key)).unwrap()
            };
            let mut sources: Vec<_> = traces.iter().map(|trace| source(trace)).collect();
            let mut writer = Writer::new(std::io::sink(), &schema, &options).unwrap();
            let (mut last, mut count) = (0, 0);
            merge(&mut sources, &mut writer, &mut |writer, keyed| {
                assert!(keyed.key >= last);
                (last, count) = (keyed.key, count + 1);
                writer
                    .record(keyed.section, keyed.record, &keyed.owned)
                    .map_err(metatf_tools::convert::ConvertError::Write)
            })
            .unwrap();
            writer.finish().unwrap();
            assert_eq!(count, traces.len() as u64 * records);
        })
    };
    let (short, long, wide) = (peak(4, 20_000), peak(4, 200_000), peak(16, 20_000));
    println!("4 traces of 20,000 records: {short} bytes; of 200,000: {long}; 16 traces: {wide}");
    // The index of the new trace has some tens of bytes per chunk.
    assert!(long < short + (64 << 10), "{short} bytes, then {long}");
    let one = wide.saturating_sub(short) / 12;
    assert!(one < 512 << 10, "a trace more takes {one} bytes");
}
