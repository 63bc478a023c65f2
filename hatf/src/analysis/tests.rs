use super::*;

fn give(analysis: &mut Analysis, time: u64, kind: EventKind<'_>) {
    analysis.event(&Event { time, heap: 1, ..Event::new(kind) }).unwrap();
}

fn call(function: Function, size: u64, old: u64, address: u64) -> EventKind<'static> {
    EventKind::Call(Call { size, old, address, ..Call::new(function) })
}

#[test]
fn sums_and_peak() {
    let mut analysis = Analysis::new();
    give(&mut analysis, 0, EventKind::CreateHeap);
    give(&mut analysis, 1, call(Function::Malloc, 100, 0, 16));
    give(&mut analysis, 2, call(Function::Calloc, 50, 0, 32));
    give(&mut analysis, 5, call(Function::Realloc, 300, 16, 64));
    give(&mut analysis, 9, EventKind::Free { address: 32 });
    give(&mut analysis, 9, EventKind::Free { address: 7 });
    give(&mut analysis, 10, call(Function::Realloc, 10, 64, 64));
    give(&mut analysis, 11, EventKind::DestroyHeap);
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
    give(&mut analysis, 1, call(Function::Malloc, 100, 0, 16));
    give(&mut analysis, 2, EventKind::DestroyHeap);
    give(&mut analysis, 3, call(Function::Malloc, 1, 0, 16));
    let report = analysis.finish();
    assert_eq!(report.totals.allocs_of_live_blocks, 0);
    assert_eq!((report.still_live.blocks, report.still_live.bytes), (2, 101));
}
