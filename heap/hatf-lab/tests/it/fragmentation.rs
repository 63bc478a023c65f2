//! Waste and its attribution, compared with brute force over every byte.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use hatf_lab::fragmentation::{Held, Moment, Names, PAGES, Pages, Settings, map};
use hatf_lab::statistics::{class_of, range};
use hatf_lab::{Cause, Change, HeapTracker, Object, ObjectEvent, Objects, Observer as _};
use hatf_trace::{Event, EventSink as _};
use metatf_page::{Form, Page, render};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes per page in the brute-force search, which examines each byte.
const PAGE: u64 = 64;

/// Sites are named by their numbers, and functions by the number of two sites.
const NUMBERS: Names<'_> = Names { site: &|site| site.to_string(), function: &|site| (site / 2).to_string() };

/// Generates non-overlapping blocks from gaps and sizes.
fn blocks() -> impl Strategy<Value = Vec<Object>> {
    let size = prop_oneof![4 => 0..40_u64, 2 => 0..300_u64];
    prop::collection::vec((0..80_u64, size, 1..4_u64, 0..3_u64), 0..60).prop_map(|parts| {
        let mut address = 0x1000;
        let mut objects = Vec::new();
        for (slot, (gap, size, thread, site)) in (0..).zip(parts) {
            address += gap;
            let tick = u64::from(slot) + 1;
            let number = tick - 1;
            objects.push(Object { slot, number, address, size, tick, time: 0, thread, site, heap: 0, allocated: 0 });
            address += size.max(1);
        }
        objects
    })
}

/// Computes the waste of each block byte by byte: the holders of a page, and the block that receives each free byte.
fn brute(objects: &[Object], page: u64) -> (Vec<u64>, Pages) {
    let mut pages = BTreeMap::<u64, (BTreeSet<u64>, BTreeSet<usize>)>::new();
    for (block, object) in objects.iter().enumerate() {
        for byte in object.address..object.address + object.size.max(1) {
            let (bytes, holders) = pages.entry(byte / page).or_default();
            if object.size > 0 {
                bytes.insert(byte);
            }
            holders.insert(block);
        }
    }
    let (mut wasted, mut sum) = (vec![0; objects.len()], Pages { page, pin: page / 16, ..Pages::default() });
    for (bytes, holders) in pages.values() {
        let live = bytes.len() as u64;
        let free = page - live;
        holders.iter().cycle().take(usize::try_from(free).unwrap()).for_each(|block| wasted[*block] += 1);
        sum.held += 1;
        sum.wasted += free;
        let tenth = (1..10).zip(0..).find(|(n, _)| live * 10 <= n * page).map_or(9, |(_, at)| at);
        sum.by_live_bytes[tenth] += 1;
        if live <= sum.pin {
            sum.pinned += 1;
            sum.pinned_by_live_bytes[tenth] += 1;
            sum.live_on_pinned += live;
            sum.wasted_on_pinned += free;
        }
    }
    (wasted, sum)
}

/// Counts the pages held by blocks, byte by byte.
fn holds(objects: &[Object], page: u64) -> u64 {
    let bytes = objects.iter().flat_map(|object| object.address..object.address + object.size.max(1));
    bytes.map(|byte| byte / page).collect::<BTreeSet<u64>>().len() as u64
}

/// Renders a snapshot and its map as text and as HTML.
fn printed(moment: &Moment) -> String {
    let mut page = Page::new("now");
    moment.describe("now", &mut page);
    page.figure(map("now".to_owned(), moment));
    let mut out = Vec::new();
    render(&page, Form::text(None), &mut out).unwrap();
    render(&page, Form::Html, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn attribution_is_that_of_brute_force(objects in blocks()) {
        let (wasted, sum) = brute(&objects, PAGE);
        let shuffled: Vec<Object> = objects.iter().rev().copied().collect();
        let settings = Settings { page: PAGE, pin: None };
        let moment = Moment::new(shuffled, (1000, 0), settings, NUMBERS);
        prop_assert_eq!(&moment.pages[0], &sum);
        for (shares, key) in [(&moment.sites, (|o| o.site) as fn(&Object) -> u64), (&moment.threads, |o| o.thread), (&moment.sizes, |o| o.size)] {
            if objects.iter().all(|object| object.site == 0) && std::ptr::eq(shares, &moment.sites) {
                prop_assert!(shares.is_empty());
                continue;
            }
            let mut by_key = BTreeMap::<u64, (u64, u64)>::new();
            for (object, wasted) in objects.iter().zip(&wasted) {
                let sum = by_key.entry(key(object)).or_default();
                *sum = (sum.0 + wasted, sum.1 + 1);
            }
            let mut expected: Vec<_> = by_key.into_values().collect();
            expected.sort_unstable();
            let mut found: Vec<_> = shares.iter().map(|share| (share.wasted, share.blocks)).collect();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
            // The shares add up to the total exactly.
            prop_assert_eq!(shares.iter().map(|share| share.wasted).sum::<u64>(), sum.wasted);
            prop_assert_eq!(shares.iter().map(|share| share.wasted_on_pinned).sum::<u64>(), sum.wasted_on_pinned);
        }
        let on = |is: fn(u8) -> bool| moment.on_pages.iter().filter(|on| is(on.full)).map(|on| on.wasted).sum::<u64>();
        prop_assert_eq!((on(|_| true), on(|full| full == 0)), (sum.wasted, sum.wasted_on_pinned));
        if objects.iter().any(|object| object.site != 0) {
            let functions: BTreeSet<_> = objects.iter().map(|object| (object.site / 2, class_of(object.size))).collect();
            let names = functions.iter().map(|(function, class)| format!("{} bytes, {function}", range(*class)));
            let found: BTreeSet<_> = moment.sizes_of_functions.iter().map(|share| share.name.clone()).collect();
            prop_assert_eq!(found, names.collect::<BTreeSet<_>>());
            prop_assert_eq!(moment.sizes_of_functions.iter().map(|share| share.wasted).sum::<u64>(), sum.wasted);
        }
        for pages in &moment.pages[1..] {
            prop_assert_eq!(pages.held, holds(&objects, pages.page));
        }
        prop_assert!(!printed(&moment).contains("NaN"));
    }

    /// The pages held after each event match the blocks live at that point. The peak is the first event with the most
    /// pages, and the worst point is the first event with the most wasted bytes. Blocks are close together, so that
    /// freed blocks leave pages to others.
    #[test]
    fn pages_held_over_time(blocks in prop::collection::vec((0..400_u64, 1..1_500_u64), 1..40), frees in prop::collection::vec(any::<prop::sample::Index>(), 0..40)) {
        let mut objects = Objects::new();
        let (mut held, mut live) = (Held::new(), BTreeMap::new());
        let (mut peaks, mut worst) = ([(0, 0); PAGES.len()], [(0, 0); PAGES.len()]);
        let mut all = [const { Vec::new() }; PAGES.len()];
        let mut observer = |event: &ObjectEvent| {
            match event.change {
                Change::Allocated => drop(live.insert(event.object.address, event.object)),
                Change::Freed => drop(live.remove(&event.object.address)),
            }
            let now: Vec<Object> = live.values().copied().collect();
            let bytes: u64 = now.iter().map(|object| object.size).sum();
            for (((page, peak), worst), all) in PAGES.into_iter().zip(&mut peaks).zip(&mut worst).zip(&mut all) {
                let pages = holds(&now, page);
                all.push((pages, bytes, event.tick));
                if pages > peak.0 {
                    *peak = (pages, event.tick);
                }
                if pages * page - bytes > worst.0 {
                    *worst = (pages * page - bytes, event.tick);
                }
            }
            held.event(event)
        };
        let mut frees = frees.iter();
        for (place, size) in blocks {
            let address = (place + 1) * 1_500;
            objects.follow(&Event::malloc(address, size), 0, &mut observer).unwrap();
            let addresses: Vec<u64> = objects.live().map(|object| object.address).collect();
            if let Some(index) = frees.next().filter(|index| index.index(3) > 0) {
                objects.follow(&Event::free(addresses[index.index(addresses.len())]), 0, &mut observer).unwrap();
            }
        }
        let found = held.report();
        prop_assert_eq!(found.peaks.iter().map(|peak| (peak.pages, peak.tick)).collect::<Vec<_>>(), peaks.to_vec());
        for (all, sparsest) in all.iter().zip(&found.sparsest) {
            let most = all.iter().map(|(pages, _, _)| *pages).max().unwrap();
            let many = all.iter().filter(|(pages, _, _)| *pages >= 1 << most.ilog2());
            // The first among those with the same ratio.
            let best = many.rev().max_by(|one, other| (one.0 * other.1.max(1)).cmp(&(other.0 * one.1.max(1)))).unwrap();
            prop_assert_eq!((sparsest.pages, sparsest.live, sparsest.tick), *best);
        }
        prop_assert_eq!(found.worst.iter().map(|worst| (worst.wasted(), worst.tick)).collect::<Vec<_>>(), worst.to_vec());
    }
}

/// A 24-byte block at the start of each of eight pages, whose other blocks were freed.
#[test]
fn a_planted_pin() {
    let mut tracker = HeapTracker::new(Held::new());
    let mut give = |event: Event<'_>| tracker.event(&event).unwrap();
    // 64 KiB pages begin here.
    let pages = || (0..8).map(|page| (1 << 20) + page * 4096);
    for page in pages() {
        for (offset, size) in [(0, 24), (64, 1000), (1100, 2000)] {
            give(Event::malloc(page + offset, size));
        }
    }
    for page in pages() {
        give(Event::free(page + 64));
        give(Event::free(page + 1100));
    }
    let (heap, held) = tracker.into_parts();
    let (objects, held) = (heap.objects, held.report());
    assert_eq!(held.peaks.iter().map(|peak| (peak.pages, peak.tick)).collect::<Vec<_>>(), [(8, 22), (1, 1), (1, 1)]);
    let moment = Moment::new(objects.live().collect(), (held.tick, held.time), Settings::default(), NUMBERS);
    let [small, middle, _] = &moment.pages[..] else { panic!("{moment:?}") };
    assert_eq!((small.held, small.wasted, small.pinned, small.live_on_pinned), (8, 8 * (4096 - 24), 8, 8 * 24));
    assert_eq!((middle.held, middle.wasted, middle.pinned), (1, 65536 - 8 * 24, 1));
    let [size] = &moment.sizes[..] else { panic!("{moment:?}") };
    assert_eq!((size.name.as_str(), size.wasted, size.oldest), ("24 bytes", small.wasted, 39));
}

/// Overlapping blocks, blocks at the end of the address space, and blocks larger than it.
#[test]
fn wrong_blocks_are_counted() {
    let at = |slot: u32, address, size| Object {
        slot,
        number: slot.into(),
        address,
        size,
        tick: 1,
        time: 0,
        thread: 1,
        site: 0,
        heap: 0,
        allocated: 0,
    };
    let objects = vec![at(0, 0, 4000), at(1, 8, 4000), at(2, u64::MAX, 9), at(3, 1 << 63, u64::MAX), at(4, 1 << 62, 0)];
    let mut held = Held::new();
    for change in [Change::Allocated, Change::Freed] {
        for object in &objects {
            held.event(&ObjectEvent { tick: 1, time: 0, thread: 1, change, cause: Cause::Call, object: *object })
                .unwrap();
        }
    }
    let moment = Moment::new(objects, (1, 0), Settings::default(), NUMBERS);
    assert_eq!(moment.pages[0].overlapping, 1);
    assert_eq!(moment.sizes.iter().map(|share| share.wasted).sum::<u64>(), moment.pages[0].wasted);
    assert!(printed(&moment).contains("on 1 pages of 4.00 KiB, a block starts inside another"));
}
