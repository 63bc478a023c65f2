use super::*;

fn give(analysis: &mut Analysis, time: u64, what: What, attributes: &str) {
    let attributes = attributes.as_bytes();
    analysis.record(&Record { what, time, thread: 1, heap: 1, attributes }).unwrap();
}

#[test]
fn sums_and_peak() {
    let mut analysis = Analysis::new();
    give(&mut analysis, 0, What::CreateHeap, "");
    give(&mut analysis, 1, What::Alloc { size: 100, address: 16 }, "");
    give(&mut analysis, 2, What::Alloc { size: 50, address: 32 }, "calloc count=2");
    give(&mut analysis, 5, What::Realloc { old: 16, address: 64 }, "size=300");
    give(&mut analysis, 9, What::Free { address: 32 }, "");
    give(&mut analysis, 9, What::Free { address: 7 }, "");
    give(&mut analysis, 10, What::Realloc { old: 64, address: 64 }, "size=10");
    give(&mut analysis, 11, What::DestroyHeap, "exit=0");
    let report = analysis.finish();
    assert_eq!((report.totals.allocs, report.totals.frees), (4, 3));
    assert_eq!((report.totals.bytes, report.totals.unmatched_frees), (460, 1));
    assert_eq!((report.peak.bytes, report.peak.blocks_then, report.peak.time), (350, 2, 5));
    assert_eq!((report.still_live.blocks, report.still_live.bytes), (1, 10));
    assert_eq!(report.still_live.largest, [LargestBlock { size: 10, time: 10, address: 64 }]);
    assert_eq!((report.calls.malloc, report.calls.calloc, report.calls.realloc), (1, 1, 2));
    assert_eq!((report.calls.reallocs_in_place, report.calls.realloc_bytes_copied), (1, 100));
    assert_eq!(report.lifetimes.count(), 3);
    assert_eq!(report.duration, 11);
}

#[test]
fn a_heap_takes_its_blocks_along() {
    let mut analysis = Analysis::new();
    give(&mut analysis, 1, What::Alloc { size: 100, address: 16 }, "");
    give(&mut analysis, 2, What::DestroyHeap, "exec");
    give(&mut analysis, 3, What::Alloc { size: 1, address: 16 }, "");
    let report = analysis.finish();
    assert_eq!(report.totals.allocs_of_live_blocks, 0);
    assert_eq!((report.still_live.blocks, report.still_live.bytes), (2, 101));
}
