//! Memory use of recoding is bounded by its options and by the live blocks in a trace, not by the length of the trace.

#![allow(clippy::unwrap_used, reason = "a test")]

use crate::ALLOCATOR;
use hatf_trace::event::{Call, Event, EventKind, EventSink, Function};
use hatf_trace::heap::{HeapOptions, HeapWriter};
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace};
use metatf_test::alone;
use metatf_tools::recode::{Options, Preset, recode};

/// Records per group, as `hatf` writes them, and about the size of a planned block.
const GROUP: usize = 2000;

/// Returns a heap trace of this many records that allocates and frees a few hundred addresses.
fn trace(records: usize) -> Vec<u8> {
    let options = HeapOptions { group_records: GROUP as u64, ..HeapOptions::default() };
    let mut trace = Vec::new();
    let mut writer = HeapWriter::new(&mut trace, &options).unwrap();
    let mut live = [false; 500];
    let mut random = 1_u64;
    for _ in 0..records {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(random >> 33).unwrap() % live.len();
        let address = 0x10_0000 + 4096 * at as u64;
        live[at] = !live[at];
        let call = Call { size: random >> 52, address, ..Call::new(Function::Malloc) };
        writer.event(&Event::new(if live[at] { EventKind::Call(call) } else { EventKind::Free { address } })).unwrap();
    }
    writer.finish().unwrap();
    trace
}

/// Returns the peak of the bytes that recoding allocates.
fn recoding(trace: &[u8], threads: usize) -> usize {
    let mut write = WriteOptions { threads, ..WriteOptions::default() };
    Preset::Default.apply(&mut write);
    let options = Options { block: GROUP + 100, ..Preset::Default.options() };
    let dtd = metatf_parser::parse("heap.dtd", include_bytes!("../../../dtds/heap.dtd")).dtd.unwrap();
    let schema = Schema::new(dtd);
    ALLOCATOR.peak(|| {
        let mut trace = Trace::new(schema, Reader::from_slice(trace).unwrap()).unwrap();
        let (_, report) = recode(&mut trace, std::io::sink(), &write, options, || ()).unwrap();
        assert!(report.records > 0);
    })
}

#[test]
fn a_trace_three_times_as_long_takes_no_more() {
    if !alone("recode_memory::a_trace_three_times_as_long_takes_no_more") {
        return;
    }
    let (short, long) = (trace(20 * GROUP), trace(60 * GROUP));
    // With several threads, the number of chunks in flight varies.
    for (threads, slack) in [(1, 64 << 10), (2, 400 << 10)] {
        let (once, thrice) = (recoding(&short, threads), recoding(&long, threads));
        // The index has some tens of bytes per chunk, and a group has three chunks. Eight bytes per record would be 640
        // KB.
        let more = 40 * 3 * 200 + slack;
        assert!(thrice < once + more, "{threads} threads: {once} bytes, then {thrice}");
        assert!(once < 4 << 20, "{threads} threads: {once} bytes");
    }
}
