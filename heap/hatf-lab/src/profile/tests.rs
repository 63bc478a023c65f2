//! Tests that tables of any size yield the same merged result as a list of all blocks.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::site_counts::Amount;
use crate::{Objects, Observer as _};
use hatf_trace::Event;
use hatf_trace::event::Accesses;

const POLICIES: [Replacement; 3] = [Replacement::Min, Replacement::Lru, Replacement::Fifo];

/// Blocks in the order of their ends.
fn blocks() -> impl Strategy<Value = Vec<Ended>> {
    let block = (1..7_u64, 0..200_u64, 0..4_u64, 0..9_u64, (0..3_u64, 0..3_u64), 0..40_u64, 0..2_u64);
    vec(block, 0..80).prop_map(|blocks| {
        let mut now = 0;
        let block = |(context, size, step, lived, cpus, count, data_type)| {
            now += step;
            let granules = u64::div_ceil(size, 64);
            Ended {
                context,
                size,
                timestamps: Some((u64::saturating_sub(now, lived), now)),
                cpus: Some(cpus),
                accesses: Some(Accesses {
                    loads: count / 3,
                    stores: count - count / 3,
                    touched: granules.min(count),
                    granules,
                    reached: count % 5 == 4,
                    ..Accesses::default()
                }),
                data_type_id: Some(data_type),
            }
        };
        blocks.into_iter().map(block).collect()
    })
}

/// The expected result for a context, computed from a list of all blocks.
fn naive(blocks: &[Ended], context: u64) -> HeapInfo {
    let blocks: Vec<&Ended> = blocks.iter().filter(|block| block.context == context).collect();
    let spread = |value: &dyn Fn(&Ended) -> u64| Spread {
        total: blocks.iter().map(|block| value(block)).sum(),
        min: blocks.iter().map(|block| value(block)).min().unwrap(),
        max: blocks.iter().map(|block| value(block)).max().unwrap(),
    };
    let neighbours = |alike: &dyn Fn(&Ended, &Ended) -> bool| {
        blocks.windows(2).filter(|pair| alike(pair[0], pair[1])).count() as u64
    };
    let (first, last) = (blocks[0], blocks[blocks.len() - 1]);
    let (time, cpu) = (|block: &Ended| block.timestamps.unwrap(), |block: &Ended| block.cpus.unwrap());
    let lifetime = |block: &Ended| time(block).1 - time(block).0;
    let access = |block: &Ended| block.accesses.unwrap();
    let density = |block: &Ended| access(block).count() * 100 / block.size.max(1);
    let over_time = |block: &Ended| density(block) * 1000 / lifetime(block).max(1);
    let percent = |block: &Ended| match access(block) {
        Accesses { granules: 0, .. } => 0,
        Accesses { touched, granules, .. } => 100 * touched / granules,
    };
    HeapInfo {
        context,
        alloc_count: blocks.len() as u64,
        size: spread(&|block| block.size),
        lifetimes: Some(Lifetimes {
            lifetime: spread(&lifetime),
            alloc_timestamp: time(last).0,
            dealloc_timestamp: time(last).1,
            num_lifetime_overlaps: neighbours(&|before, block| time(block).0 < time(before).1),
            first_alloc_timestamp: Some(time(first).0),
        }),
        access_count: Some(spread(&|block| access(block).count())),
        percent_utilized: Some(spread(&percent)),
        cpus: Some(Cpus {
            alloc_cpu_id: cpu(last).0,
            dealloc_cpu_id: cpu(last).1,
            num_migrated_cpu: blocks.iter().filter(|block| cpu(block).0 != cpu(block).1).count() as u64,
            num_same_alloc_cpu: neighbours(&|before, block| cpu(before).0 == cpu(block).0),
            num_same_dealloc_cpu: neighbours(&|before, block| cpu(before).1 == cpu(block).1),
            first: Some(FirstCpus { first_alloc_cpu_id: cpu(first).0, first_dealloc_cpu_id: cpu(first).1 }),
        }),
        data_type_id: blocks.iter().rev().filter_map(|block| block.data_type_id).find(|id| *id != 0),
        access_density: Some(spread(&density)),
        lifetime_access_density: Some(spread(&over_time)),
        access_histogram: None,
        loads: Some({
            let number =
                |is: &dyn Fn(&Accesses) -> bool| blocks.iter().filter(|block| is(&access(block))).count() as u64;
            Loads {
                total_load_count: blocks.iter().map(|block| access(block).loads).sum(),
                total_store_count: blocks.iter().map(|block| access(block).stores).sum(),
                unread_count: number(&|of| of.loads == 0 && !of.reached),
                unknown_count: number(&|of| of.loads == 0 && of.reached),
                reached_count: number(&|of| of.reached),
            }
        }),
        live: None,
    }
}

/// Returns the heap info blocks written by a table.
fn written(blocks: &[Ended], settings: TableSettings) -> (Vec<HeapInfo>, Vec<u64>) {
    let mut table = InfoTable::new(settings).unwrap();
    let mut infos = Vec::new();
    for block in blocks {
        infos.extend(table.insert(HeapInfo::new(block, TICK)));
    }
    let evicted = infos.iter().map(|info| info.context).collect();
    let lookups = table.lookups();
    infos.extend(table.finish());
    // Each inserted entry is written once.
    assert_eq!(lookups.first_fills + lookups.evictions, infos.len() as u64);
    assert_eq!(lookups.lookups, blocks.len() as u64);
    (infos, evicted)
}

fn without_first(mut info: HeapInfo) -> HeapInfo {
    if let Some(times) = &mut info.lifetimes {
        times.first_alloc_timestamp = None;
    }
    if let Some(cpus) = &mut info.cpus {
        cpus.first = None;
    }
    info
}

/// Returns the three counts that compare neighbors.
fn compared(info: &HeapInfo) -> [u64; 3] {
    let (times, cpus) = (info.lifetimes.unwrap(), info.cpus.unwrap());
    [times.num_lifetime_overlaps, cpus.num_same_alloc_cpu, cpus.num_same_dealloc_cpu]
}

fn without_compared(info: &HeapInfo) -> HeapInfo {
    let mut info = without_first(info.clone());
    info.lifetimes.as_mut().unwrap().num_lifetime_overlaps = 0;
    let cpus = info.cpus.as_mut().unwrap();
    (cpus.num_same_alloc_cpu, cpus.num_same_dealloc_cpu) = (0, 0);
    info
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn table_and_merge_are_exact(blocks in blocks(), sets in 1..6_usize, ways in 1..5_usize, policy in 0..3_usize) {
        let settings = TableSettings { sets, ways, replacement: POLICIES[policy] };
        let (infos, evicted) = written(&blocks, settings);
        let merged = infos.iter().cloned().collect::<Merged>().finish();
        let lossy = infos.into_iter().map(without_first).collect::<Merged>().finish();
        let contexts: std::collections::BTreeSet<u64> = blocks.iter().map(|block| block.context).collect();
        prop_assert_eq!(merged.len(), contexts.len());
        for (info, lossy) in merged.iter().zip(&lossy) {
            let exact = naive(&blocks, info.context);
            prop_assert_eq!(info, &exact);
            // Without the `first_*` fields, each eviction loses at most one pair of neighbors; all other values are
            // exact.
            prop_assert_eq!(without_compared(lossy), without_compared(&exact));
            let evictions = evicted.iter().filter(|context| **context == info.context).count() as u64;
            for (lossy, exact) in compared(lossy).into_iter().zip(compared(&exact)) {
                prop_assert!(lossy <= exact && exact - lossy <= evictions);
            }
        }
    }
}

/// Comparing the two blocks at the boundary between two entries requires the `first_*` fields.
#[test]
fn a_b_a_in_one_set_of_one_way() {
    let block = |context, alloc, dealloc| Ended {
        context,
        size: 8,
        timestamps: Some((alloc, dealloc)),
        cpus: Some((0, 0)),
        accesses: Some(Accesses::default()),
        ..Ended::default()
    };
    let blocks = [block(1, 0, 10), block(2, 0, 11), block(1, 5, 12)];
    let (infos, evicted) = written(&blocks, TableSettings { sets: 1, ways: 1, ..TableSettings::default() });
    assert_eq!(evicted, [1, 2]);
    assert_eq!(compared(&naive(&blocks, 1)), [1, 1, 1]);
    let lossy = infos.iter().cloned().map(without_first).collect::<Merged>().finish();
    assert_eq!(compared(&lossy[0]), [0, 0, 0]);
    // Blocks of different runs are not compared.
    let mut runs = Merged::new();
    infos.into_iter().for_each(|info| runs.add(info, false));
    assert_eq!(compared(&runs.finish()[0]), [0, 0, 0]);
}

/// Checks which entries a full set evicts and where the other entries move.
#[test]
fn replacement_by_hand() {
    let evicted = |replacement, contexts: &[u64]| {
        let block = |context: &u64| Ended { context: *context, size: 1, ..Ended::default() };
        let blocks: Vec<_> = contexts.iter().map(block).collect();
        let (infos, evicted) = written(&blocks, TableSettings { sets: 1, ways: 3, replacement });
        let left: Vec<u64> = infos[evicted.len()..].iter().map(|info| info.context).collect();
        (evicted, left)
    };
    // The set contains 3 1 2, and a hit of 1 changes it to 1 3 2. Both 3 and 2 have one block, so 3, which is in the
    // lower way, is evicted. Then 1 moves to its way and 4 to way 0: 4 1 2.
    assert_eq!(evicted(Replacement::Min, &[1, 2, 3, 1, 4]), (vec![3], vec![4, 1, 2]));
    // All entries have one block, so way 0 (the newest) is evicted.
    assert_eq!(evicted(Replacement::Min, &[1, 2, 3, 4, 5]), (vec![3, 4], vec![5, 1, 2]));
    assert_eq!(evicted(Replacement::Lru, &[1, 2, 3, 1, 4]), (vec![2], vec![4, 1, 3]));
    assert_eq!(evicted(Replacement::Fifo, &[1, 2, 3, 1, 4]), (vec![1], vec![4, 3, 2]));
}

/// Covers contexts, rounded times, and objects live at the end.
#[test]
fn a_profile_of_events() {
    let mut objects = Objects::new();
    let settings =
        ProfilerSettings { table: TableSettings { sets: 1, ways: 1, ..TableSettings::default() }, tick: TICK };
    let sizes = Sizes::new(["1x1".parse().unwrap(), "2x1".parse().unwrap()]).unwrap();
    let mut profiler = Profiler::new(settings, sizes, Vec::new()).unwrap();
    let events = [
        (Event::malloc(1, 40), 9, 0),
        (Event::malloc(2, 64), 0, 1_999_999),
        (Event::malloc(3, 33), 0, 2_000_000),
        (Event::malloc(4, 65), 0, 2_000_000),
        (Event::free(3), 0, 3_999_999),
        (Event::free(4), 0, 4_000_001),
    ];
    for (event, site, time) in events {
        let event = Event { time: 500_000 + time, thread: 3, ..event };
        objects.follow(&event, site, &mut |event| profiler.event(event)).unwrap();
    }
    let profiled = profiler.finish(objects.live()).unwrap();
    let size = |class| ContextKey::Size { class, thread: 3 };
    assert_eq!(profiled.contexts, [ContextKey::Stack(9), size(6), size(7)]);
    let lived = |info: &HeapInfo| {
        let times = info.lifetimes.unwrap();
        (info.context, info.alloc_count, times.alloc_timestamp, times.dealloc_timestamp, times.lifetime.total)
    };
    // 3 and 4 come in the order of their frees, followed by 1 and 2 in allocation order.
    let (infos, empty): (Vec<HeapInfo>, Vec<HeapInfo>) =
        profiled.sink.into_iter().partition(|info| info.alloc_count > 0);
    // The live amounts of each context occur once, in the remaining entry or in an entry without blocks.
    let amount = |blocks, bytes| Amount { blocks, bytes };
    let live: Vec<_> = infos.iter().chain(&empty).filter_map(|info| Some((info.context, info.live?))).collect();
    let of = |context, peak, end| (context, Live { peak, end });
    let [first, second] = [amount(1, 40), amount(1, 64)];
    assert_eq!(live, [of(2, amount(2, 97), second), of(1, first, first), of(3, amount(1, 65), Amount::default())]);
    let infos: Vec<_> = infos.iter().map(lived).collect();
    assert_eq!(infos, [(2, 1, 2, 3, 1), (3, 1, 2, 4, 2), (1, 1, 0, 4, 4), (2, 1, 1, 4, 3)]);
    assert_eq!(profiled.lookups, Lookups { lookups: 4, first_fills: 1, evictions: 3 });
    let other = profiled.sizes.outcomes();
    // Contexts 1 and 3 share a set.
    assert_eq!(other[1].lookups, Lookups { lookups: 4, first_fills: 2, evictions: 1 });
    assert_eq!(ContextKey::new(0, 0, 3), ContextKey::new(0, 1, 3));
    assert_eq!(ContextKey::new(0, u64::MAX, 3), size(64));
}

#[test]
fn a_trace_without_times() {
    let mut objects = Objects::new();
    let settings = ProfilerSettings { table: "1x1".parse().unwrap(), ..ProfilerSettings::default() };
    let mut profiler = Profiler::new(settings, Sizes::default(), Vec::new()).unwrap();
    for size in [1, 2, 4] {
        for event in [Event::malloc(1, size), Event::free(1)] {
            objects.follow(&event, 0, &mut |event| profiler.event(event)).unwrap();
        }
    }
    let infos = profiler.finish(objects.live()).unwrap().sink;
    // The last heap info blocks contain the live amounts of the two evicted contexts.
    assert!(infos.len() == 5 && infos.iter().all(|info| info.lifetimes.is_none()));
}

#[test]
fn what_one_does_not_know_is_not_known_of_both() {
    let known = HeapInfo::new(
        &Ended {
            context: 1,
            size: 8,
            accesses: Some(Accesses { loads: 3, stores: 1, touched: 1, granules: 1, reached: false, address: 0 }),
            ..Ended::default()
        },
        TICK,
    );
    let unknown = HeapInfo::new(&Ended { context: 1, size: 8, ..Ended::default() }, TICK);
    for (mut earlier, later) in [(known.clone(), unknown.clone()), (unknown, known)] {
        earlier.merge_with(later, true);
        assert_eq!((earlier.alloc_count, earlier.access_count, earlier.access_density), (2, None, None));
    }
}

#[test]
fn hot_and_cold() {
    let info = |lived, count| {
        let accesses = Some(Accesses { loads: count, touched: 1, granules: 1, ..Accesses::default() });
        HeapInfo::new(&Ended { context: 1, size: 10, timestamps: Some((0, lived)), accesses, ..Ended::default() }, TICK)
    };
    let limits = Thresholds::default();
    let advice = |lived, count| limits.advise(&info(lived, count), TICK);
    assert_eq!(advice(200_000, 10), Advice::Cold);
    assert_eq!(advice(199_999, 10), Advice::NotCold);
    assert_eq!(advice(1, 11), Advice::Hot);
    assert_eq!(advice(1, 10), Advice::NotCold);
    assert_eq!(limits.advise(&info(1, 1).without_times(), TICK), Advice::Unknown);
    let lived = Ended { timestamps: Some((0, 200_000)), ..Ended::default() };
    assert_eq!(limits.advise(&HeapInfo::new(&lived, TICK), TICK), Advice::LongLived);
}

#[test]
fn columns_have_names() {
    let info = HeapInfo::new(&Ended { context: 7, size: 9, timestamps: Some((2, 5)), ..Ended::default() }, TICK);
    let get = |name: &str| name.parse::<Column>().unwrap().get(&info);
    assert_eq!((get("context"), get("average_size"), get("max_lifetime")), (Some(7), Some(9), Some(3)));
    assert_eq!((get("min_access_count"), get("num_migrated_cpu")), (None, None));
    assert!("size".parse::<Column>().unwrap_err().contains("total_size"));
    let mut names: Vec<_> = Column::all().map(Column::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Column::all().count());
}

#[test]
fn tables_have_entries() {
    assert!(
        ["0x4", "4x0", "x", "99999999999x4", "16777217x1"].iter().all(|text| text.parse::<TableSettings>().is_err())
    );
    assert_eq!("16381x4".parse(), Ok(TableSettings::default()));
}

/// Only blocks whose loads are all known can count as never read.
#[test]
fn blocks_that_are_never_read() {
    let of = |blocks: &[(u64, u64, bool)]| {
        let mut all: Option<HeapInfo> = None;
        for &(loads, stores, reached) in blocks {
            let accesses = Some(Accesses { loads, stores, touched: 1, granules: 1, reached, address: 0 });
            let info = HeapInfo::new(&Ended { context: 1, size: 8, accesses, ..Ended::default() }, TICK);
            match &mut all {
                Some(all) => all.merge_with(info, true),
                None => all = Some(info),
            }
        }
        Reads::of(&all.unwrap())
    };
    assert_eq!(of(&[(0, 0, false), (0, 0, false)]), Reads::NeverAccessed);
    assert_eq!(of(&[(0, 0, false), (0, 3, false)]), Reads::OnlyWritten);
    assert_eq!(of(&[(0, 3, false), (0, 3, true)]), Reads::Unknown);
    assert_eq!(of(&[(2, 3, true), (0, 3, true)]), Reads::Unknown);
    assert_eq!(of(&[(2, 3, true), (0, 3, false)]), Reads::SomeUnread);
    assert_eq!(of(&[(2, 3, true), (1, 0, false)]), Reads::Read);
    let unknown = HeapInfo::new(&Ended { context: 1, ..Ended::default() }, TICK);
    assert_eq!(Reads::of(&unknown), Reads::Unknown);
}

/// The live blocks of a run are counted once, regardless of evictions. The live blocks of two runs are added if both
/// are known.
#[test]
fn live_blocks_are_merged() {
    let amount = |blocks| Amount { blocks, bytes: 10 * blocks };
    let live = |blocks| Some(Live { peak: amount(blocks), end: amount(1) });
    let info = |blocks, live| HeapInfo::of_sums(1, amount(blocks), live);
    let merged = |first: &HeapInfo, second: HeapInfo, neighbours| {
        let mut first = first.clone();
        first.merge_with(second, neighbours);
        (first.alloc_count, first.size.min, first.live)
    };
    let evicted = info(7, None);
    assert_eq!(merged(&evicted, info(2, live(3)), true), (9, 10, live(3)));
    assert_eq!(merged(&evicted, info(0, live(3)), true), (7, 10, live(3)));
    let summed = Some(Live { peak: amount(7), end: amount(2) });
    assert_eq!(merged(&info(5, live(4)), info(2, live(3)), false), (7, 10, summed));
    assert_eq!(merged(&info(5, live(4)), evicted, false), (12, 10, None));
}
