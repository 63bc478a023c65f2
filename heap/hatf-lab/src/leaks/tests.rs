use super::*;
use hatf_trace::Event;

/// Allocates at given addresses from given sites.
struct Run {
    heap: Heap,
    leaks: Leaks,
    time: u64,
    step: u64,
}

impl Run {
    fn new(step: u64) -> Self {
        Self { heap: Heap::default(), leaks: Leaks::new(), time: 0, step }
    }

    fn give(&mut self, event: Event<'_>, site: u64) {
        self.time += self.step;
        let event = Event { time: self.time, ..event };
        let Self { heap: Heap { objects, .. }, leaks, .. } = self;
        objects.follow(&event, site, &mut |event| leaks.event(event)).unwrap();
    }

    fn malloc(&mut self, address: u64, size: u64, site: u64) {
        self.give(Event::malloc(address, size), site);
    }
}

/// Site 1 owns the first allocations, site 2 leaks, and site 3 is a cache that fills and is emptied.
fn program(step: u64) -> Run {
    let mut run = Run::new(step);
    (0..10).for_each(|n| run.malloc(0x1000 + n * 64, 50, 1));
    let mut leaked = 0;
    for round in 0..200 {
        for n in 0..20 {
            run.malloc(0x10_0000 + n * 64, 32, 3);
        }
        run.malloc(0x20_0000 + round * 64, 16, 2);
        leaked += 16;
        (0..20).for_each(|n| run.give(Event::free(0x10_0000 + n * 64), 0));
    }
    assert_eq!(run.heap.objects.live_bytes(), 500 + leaked);
    // The cache is full at the end.
    (0..20).for_each(|n| run.malloc(0x10_0000 + n * 64, 32, 3));
    run
}

fn site(site: u64) -> Option<u32> {
    u32::try_from(site).ok()
}

#[test]
fn groups_are_told_apart() {
    let run = program(1000);
    let leaked = run.leaks.report(&run.heap);
    let amount = |blocks, bytes| Amount { blocks, bytes };
    assert_eq!(
        leaked.sites().into_iter().collect::<Vec<_>>(),
        [(1, amount(10, 500)), (2, amount(200, 3200)), (3, amount(20, 640))]
    );
    let groups = leaked.groups(10, site);
    let of = |site: u32| groups[&site];
    let ways: Vec<_> = [1, 2, 3].map(of).iter().map(|group| group.growth.map(|growth| growth.direction)).collect();
    assert_eq!(ways, [Some(Direction::Steady), Some(Direction::Growing), Some(Direction::Steady)]);
    assert_eq!([1, 2, 3].map(|site| of(site).startup), [amount(10, 500), amount(0, 0), amount(0, 0)]);
    // 16 bytes per 41 events of one microsecond each.
    let growth = of(2).growth.unwrap();
    let rate = 16.0 / 41e-6;
    assert!(growth.low <= rate && rate <= growth.high && (growth.rate / rate - 1.0).abs() < 0.1, "{growth:?}");
    assert_eq!(growth.intervals, INTERVALS);
    // The last event occurs at its own time, so ages are exact.
    let events = run.heap.totals().events;
    assert_eq!(
        of(1).ages,
        Ages { youngest: (events - 10) * 1000, median: (events - 6) * 1000, oldest: (events - 1) * 1000 }
    );
    assert_eq!(of(3).ages, Ages { youngest: 0, median: 9000, oldest: 19_000 });
    // All sites form one group, or no site belongs to a group.
    let all = leaked.groups(10, |_| Some(0));
    assert_eq!((all[&0].live, all[&0].growth.unwrap().direction), (amount(230, 4340), Direction::Growing));
    assert!(leaked.groups(10, |_| None).is_empty());
}

/// Without timestamps, ages are in bytes and rates are per thousand events.
#[test]
fn without_times() {
    let run = program(0);
    let leaked = run.leaks.report(&run.heap);
    assert!(!leaked.has_times);
    let groups = leaked.groups(10, site);
    let growth = groups[&2].growth.unwrap();
    let rate = 16.0 / 0.041;
    assert!(growth.direction == Direction::Growing && (growth.rate / rate - 1.0).abs() < 0.1, "{growth:?}");
    assert_eq!(groups[&3].ages, Ages { youngest: 0, median: 9 * 32, oldest: 19 * 32 });
    assert_eq!(groups[&1].ages.youngest, run.heap.totals().bytes - 500);
}

/// With too few snapshots, growth is `None`. Without live blocks, there is no group.
#[test]
fn few_events() {
    let mut run = Run::new(1000);
    assert!(run.leaks.report(&run.heap).groups(0, site).is_empty());
    (0..40).for_each(|n| run.malloc(0x1000 + n * 64, 50, 1));
    let groups = run.leaks.report(&run.heap).groups(2, site);
    assert_eq!(groups[&1].growth, None);
    assert_eq!(groups[&1].live, Amount { blocks: 40, bytes: 2000 });
}

/// Blocks that were live when a heap was destroyed were never freed. Their age is the age at that point.
#[test]
fn heaps_that_ended() {
    let mut run = Run::new(1000);
    run.malloc(0x1000, 50, 1);
    run.give(Event::new(hatf_trace::EventKind::DestroyHeap), 0);
    (0..9).for_each(|n| run.malloc(0x2000 + n * 64, 1, 2));
    let groups = run.leaks.report(&run.heap).groups(1, site);
    assert_eq!(groups[&1].live, Amount { blocks: 1, bytes: 50 });
    assert_eq!((groups[&1].ages.oldest, groups[&1].startup.blocks), (1000, 1));
}
