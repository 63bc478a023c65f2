use super::*;
use hatf_lab::HeapTracker;
use hatf_lab::sites::{Counts, Measure, Sites as Counting, ranked};
use hatf_trace::event::EventSink as _;
use proptest::prelude::*;

fn new() -> HeapTracker<ReportBuilder> {
    HeapTracker::new(ReportBuilder::new())
}

fn report(tracker: &HeapTracker<ReportBuilder>) -> Report {
    tracker.observer().report(tracker.heap())
}

fn give(analysis: &mut HeapTracker<ReportBuilder>, time: u64, kind: EventKind<'_>) {
    analysis.event(&Event { time, heap: 1, ..Event::new(kind) }).unwrap();
}

fn call(function: Function, size: u64, old: u64, address: u64) -> EventKind<'static> {
    EventKind::Call(Call { size, old, address, ..Call::new(function) })
}

#[test]
fn sums_and_peak() {
    let mut analysis = new();
    give(&mut analysis, 0, EventKind::CreateHeap);
    give(&mut analysis, 1, call(Function::Malloc, 100, 0, 16));
    give(&mut analysis, 2, call(Function::Calloc, 50, 0, 32));
    give(&mut analysis, 5, call(Function::Realloc, 300, 16, 64));
    give(&mut analysis, 9, EventKind::Free { address: 32 });
    give(&mut analysis, 9, EventKind::Free { address: 7 });
    give(&mut analysis, 10, call(Function::Realloc, 10, 64, 64));
    give(&mut analysis, 11, EventKind::DestroyHeap);
    let report = report(&analysis);
    assert_eq!((report.totals.allocs, report.totals.frees), (4, 3));
    assert_eq!((report.totals.bytes, report.totals.contradictions.unmatched_frees), (460, 1));
    assert_eq!((report.peak.bytes, report.peak.blocks_then, report.peak.time), (350, 2, 5));
    assert_eq!((report.still_live.blocks, report.still_live.bytes), (1, 10));
    assert_eq!(report.still_live.largest, [LargestBlock { size: 10, time: 10, address: 64 }]);
    assert_eq!((report.calls.malloc, report.calls.calloc, report.calls.realloc), (1, 1, 2));
    assert_eq!((report.calls.reallocs_in_place, report.calls.realloc_bytes_copied), (1, 100));
    assert_eq!(report.lifetimes.count(), 3);
    assert_eq!(report.duration, 11);
}

/// A corrupt trace can contain arbitrary sizes.
#[test]
fn copied_bytes_end_at_the_most_there_can_be() {
    let mut analysis = new();
    let most = UNKNOWN_SIZE - 1;
    give(&mut analysis, 1, call(Function::Malloc, most, 0, 16));
    give(&mut analysis, 2, call(Function::Realloc, most, 16, 32));
    give(&mut analysis, 3, call(Function::Realloc, most, 32, 16));
    let calls = report(&analysis).calls;
    assert_eq!((calls.realloc, calls.realloc_bytes_copied), (2, u64::MAX));
    assert_eq!((calls.reallocs_grown, calls.reallocs_shrunk), (0, 0));
}

#[test]
fn a_heap_takes_its_blocks_along() {
    let mut analysis = new();
    give(&mut analysis, 1, call(Function::Malloc, 100, 0, 16));
    give(&mut analysis, 2, EventKind::DestroyHeap);
    give(&mut analysis, 3, call(Function::Malloc, 1, 0, 16));
    let report = report(&analysis);
    assert_eq!(report.totals.contradictions.allocs_of_live_blocks, 0);
    assert_eq!((report.still_live.blocks, report.still_live.bytes), (2, 101));
}

/// A block that is live when its heap ends is leaked and does not contribute to later peaks. A block that is live when
/// another program replaces its program is not leaked.
#[test]
fn sites_of_heaps_that_end() {
    let mut analysis = new();
    let mut give =
        |heap, stack: &[u64], kind| analysis.event(&Event { heap, stack: stack.into(), ..Event::new(kind) }).unwrap();
    let malloc = |size, address| call(Function::Malloc, size, 0, address);
    give(1, &[0x10], malloc(100, 16));
    give(1, &[0x20], malloc(50, 32));
    give(1, &[], EventKind::Image { process: 1, path: b"/bin/p" });
    give(2, &[0x30], malloc(120, 16));
    give(2, &[], EventKind::DestroyHeap);
    give(3, &[0x30], malloc(70, 16));
    give(3, &[], malloc(200, 32));
    let report = report(&analysis);
    let sites = report.sites.unwrap();
    assert_eq!((sites.total.peak.bytes, report.peak.bytes), (270, 270));
    assert_eq!((sites.total.leaked.bytes, report.still_live.bytes), (390, 390));
    assert_eq!((report.still_live.replaced_blocks, report.still_live.replaced_bytes), (2, 150));
    let leaked: Vec<_> = sites.leaked.iter().map(|site| (site.bytes, site.functions.join(" "))).collect();
    let expected = [(200, ""), (190, "0x30")];
    assert_eq!(leaked, expected.map(|(bytes, name)| (bytes, name.to_owned())));
}

#[test]
fn without_stacks_there_are_no_sites() {
    let mut analysis = new();
    give(&mut analysis, 1, call(Function::Malloc, 100, 0, 16));
    let report = report(&analysis);
    assert_eq!(report.sites, None);
    assert!(!serde_json::to_string(&report).unwrap().contains("sites"));
}

proptest! {
    /// Site counts match those that `hatf sites` computes in a separate pass, for blocks that are freed, moved,
    /// allocated twice, and unknown.
    #[test]
    fn sites_as_counted_alone(calls in prop::collection::vec((0..5_u8, 0..8_u64, 0..50_u64, 0..5_usize), 0..200)) {
        let (mut analysis, mut alone) = (new(), HeapTracker::new(Counting::new()));
        let stacks: [&[u64]; 5] = [&[], &[0x10], &[0x10, 0x20], &[0x20], &[0x30]];
        for (kind, block, size, stack) in calls {
            let (address, old) = (16 + block * 64, 16 + size % 8 * 64);
            let kind = match kind {
                0 | 1 => call(Function::Malloc, size, 0, address),
                2 => EventKind::Free { address },
                3 => call(Function::Realloc, size, old, address),
                _ => call(Function::Realloc, 0, old, 0),
            };
            let event = Event { heap: 1, stack: stacks[stack].into(), ..Event::new(kind) };
            analysis.event(&event).unwrap();
            alone.event(&event).unwrap();
        }
        let (heap, counting) = alone.into_parts();
        let (stacks, sites) = (heap.stacks, counting.report());
        let report = report(&analysis);
        prop_assert_eq!(report.sites.is_some(), stacks.count() > 1);
        let Some(found) = report.sites else { return Ok(()) };
        let mut total = Counts::default();
        sites.iter().for_each(|site| total.add(site));
        prop_assert_eq!(found.total, total);
        prop_assert_eq!((total.peak.bytes, total.leaked.bytes), (report.peak.bytes, report.still_live.bytes));
        for measure in Measure::ALL {
            let rows: Vec<_> = found.get(measure).iter().map(|row| (row.bytes, row.blocks, row.functions.join(";"))).collect();
            let expected = ranked(&sites, measure, false).into_iter().map(|(site, amount)| {
                let names: Vec<_> = stacks.get(site as u64).flat_map(hatf_trace::stacks::Location::names).collect();
                (amount.bytes, amount.blocks, names.join(";"))
            });
            prop_assert_eq!(rows, expected.collect::<Vec<_>>());
        }
    }
}
