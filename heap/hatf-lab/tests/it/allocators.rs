//! Tests of allocators: by hand, against a naive second implementation, and with all invariants on arbitrary sequences
//! of calls.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use crate::naive::Naive;
use hatf_lab::allocator::{Act, Acts, Allocator, NAMES, Place, by_name};
use hatf_lab::simulate::{Grid, Outcome, Simulation};
use hatf_lab::{ObjectEvent, Objects, Observer as _};
use hatf_trace::Event;
use proptest::prelude::*;

/// A call that allocates this many bytes, or frees one of the live objects.
#[derive(Clone, Copy, Debug)]
enum Call {
    Allocate(u64),
    Free(usize),
    Reallocate(usize, u64),
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let size = prop_oneof![8 => 0..200_u64, 3 => 0..5000_u64, 2 => 0..400_000_u64];
    let allocate = size.clone().prop_map(Call::Allocate);
    let reallocate = (any::<usize>(), size).prop_map(|(which, size)| Call::Reallocate(which, size));
    let call = prop_oneof![5 => allocate, 4 => any::<usize>().prop_map(Call::Free), 2 => reallocate];
    prop::collection::vec(call, 0..300)
}

/// Passes calls to an observer. Three threads allocate in turn and free each other's objects.
fn give(calls: &[Call], grid: &mut Grid) {
    let (mut objects, mut live) = (Objects::new(), Vec::new());
    let mut give = |thread: u64, event: Event<'_>| {
        let event = Event { thread, ..event };
        objects.follow(&event, 0, &mut |event: &ObjectEvent| grid.event(event)).unwrap();
    };
    for (address, call) in (1..).zip(calls) {
        match *call {
            Call::Allocate(size) => {
                live.push(address);
                give(address % 3, Event::malloc(address, size));
            }
            Call::Free(which) if !live.is_empty() => {
                let address = live.swap_remove(which % live.len());
                give(which as u64 % 3, Event::free(address));
            }
            Call::Reallocate(which, size) if !live.is_empty() => {
                let at = which % live.len();
                give(address % 3, Event::realloc(live[at], address, size));
                live[at] = address;
            }
            Call::Free(_) | Call::Reallocate(..) => {}
        }
    }
}

fn simulated(calls: &[Call], names: &[&str], threads: usize) -> Vec<Outcome> {
    let simulation = |name: &&str| Simulation::new(*name, by_name(name).unwrap()).with_invariants(16);
    let mut grid = Grid::new(names.iter().map(simulation).collect(), threads).unwrap();
    give(calls, &mut grid);
    grid.finish().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn invariants_hold(calls in calls()) {
        let names = ["bsd", "bsd:header=4:least=8:refill=4096", "first", "first:word=4:grow=64", "best", "best:least=128",
            "cache", "cache:entries=1:round=1", "cache:entries=40:round=8:grow=32", "glibc", "glibc:tcache=0:mmap=20000",
            "glibc:fast=0:tcache=2:trim=4096:pad=0", "jemalloc", "jemalloc:tcache=0:decay=9", "jemalloc:arenas=1:oversize=20000:decay=0",
            "mimalloc", "mimalloc:purge=0:page=16384", "tcmalloc", "tcmalloc:release=1000:caches=0", "tcmalloc:aggressive=1:batch=2",
            "tlsf", "tlsf:steps=2:header=0:grow=16", "buddy", "buddy:region=8192", "bump", "bump:arena=4096"];
        let outcomes = simulated(&calls, &names, 1);
        let again = simulated(&calls, &names, 4);
        prop_assert_eq!(&outcomes, &again);
        for outcome in outcomes {
            prop_assert!(outcome.memory_efficiency.unwrap_or(0.0) <= 1.0);
            prop_assert!(outcome.most_heap >= outcome.most_live);
            prop_assert!(outcome.mean_held <= outcome.most_held && outcome.most_held <= outcome.most_heap.next_multiple_of(4096));
        }
    }

    /// Unrealistic sizes are rejected or placed, using memory that does not grow with them.
    #[test]
    fn any_sizes(calls in calls(), shift in 0..64_u32, most: bool) {
        let size = |size: u64| if most && size.is_multiple_of(7) { u64::MAX - size } else { size << shift };
        let calls: Vec<Call> = calls.into_iter().map(|call| match call {
            Call::Allocate(of) => Call::Allocate(size(of)),
            Call::Reallocate(which, of) => Call::Reallocate(which, size(of)),
            Call::Free(which) => Call::Free(which),
        }).collect();
        for outcome in simulated(&calls, NAMES, 1) {
            prop_assert!(outcome.most_heap <= 1 << 47, "{}", outcome.name);
        }
    }

    /// FIRST and BEST place every object at the same address as a naive list of intervals.
    #[test]
    fn first_and_best_are_as_written(calls in calls(), best: bool) {
        let mut allocator = by_name(if best { "best" } else { "first" }).unwrap();
        let (mut naive, mut acts, mut live) = (Naive::new(best), Acts::default(), Vec::new());
        for call in calls {
            match call {
                Call::Allocate(size) => {
                    let place = allocator.allocate(size, &mut acts).unwrap();
                    prop_assert_eq!(place.address, naive.allocate(size));
                    live.push((place, size));
                }
                Call::Free(which) if !live.is_empty() => {
                    let (place, size) = live.swap_remove(which % live.len());
                    allocator.free(place, size, &mut acts);
                    naive.free(place.address);
                }
                Call::Free(_) | Call::Reallocate(..) => {}
            }
            prop_assert_eq!(allocator.heap(), naive.heap);
            prop_assert_eq!(acts.of(Act::Examined), naive.examined);
        }
    }
}

/// Returns the nonzero operation counts since the previous call.
struct Bench {
    allocator: Box<dyn Allocator>,
    acts: Acts,
}

impl Bench {
    fn new(name: &str) -> Self {
        let mut allocator = by_name(name).unwrap();
        allocator.switch_to(0);
        Self { allocator, acts: Acts::default() }
    }

    fn free(&mut self, place: Place, size: u64) {
        self.allocator.free(place, size, &mut self.acts);
    }

    fn reallocate(&mut self, place: Place, old: u64, size: u64) -> Place {
        self.allocator.reallocate(place, old, size, &mut self.acts).unwrap()
    }

    fn allocate(&mut self, size: u64) -> Place {
        self.allocator.allocate(size, &mut self.acts).unwrap()
    }

    fn acts(&mut self) -> Vec<(&'static str, u64)> {
        self.allocator.check().unwrap();
        let acts = std::mem::take(&mut self.acts);
        let counts = Act::ALL.iter().map(|act| (act.name(), acts.of(*act)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

#[test]
fn bsd_by_hand() {
    let mut bsd = Bench::new("bsd");
    // 8 and an 8-byte header are 16, the smallest block; 2,048 bytes are cut into 128 of them.
    assert_eq!(bsd.allocate(8).address, 8);
    assert_eq!(bsd.acts(), [("unlinked", 1), ("cut", 128), ("sbrk", 1)]);
    let second = bsd.allocate(0);
    assert_eq!((second.address, bsd.acts()), (24, vec![("unlinked", 1)]));
    bsd.allocator.free(second, 0, &mut bsd.acts);
    assert_eq!((bsd.allocate(5), bsd.acts()), (second, vec![("unlinked", 1), ("inserted", 1)]));
    // 9 and 8 need 32, one doubling. A block of 4,096 is allocated alone.
    assert_eq!((bsd.allocate(9).address, bsd.allocate(2041).address), (2048 + 8, 4096 + 8));
    assert_eq!(bsd.acts(), [("unlinked", 2), ("doubled", 1 + 8), ("cut", 64 + 1), ("sbrk", 2)]);
    assert_eq!(bsd.allocator.heap(), 8192);
}

#[test]
fn first_by_hand() {
    let mut first = Bench::new("first");
    // 1 byte gets the smallest block, 32; the rest of 8,192 stays free.
    let [a, b, c] = [1, 16, 17].map(|size| first.allocate(size));
    assert_eq!([a, b, c].map(|place| place.address), [8, 40, 72]);
    assert_eq!(first.acts(), [("examined", 2), ("tagged", 3), ("split", 3), ("sbrk", 1)]);
    // Freed between used blocks, it is inserted before the rover, which moves to it. The next search begins there.
    first.allocator.free(b, 16, &mut first.acts);
    assert_eq!(first.acts(), [("tagged", 1), ("inserted", 1)]);
    assert_eq!(first.allocate(16), b);
    assert_eq!(first.acts(), [("examined", 1), ("tagged", 1), ("unlinked", 1)]);
    // With a free block on both sides.
    first.allocator.free(a, 1, &mut first.acts);
    first.allocator.free(c, 17, &mut first.acts);
    first.allocator.free(b, 16, &mut first.acts);
    assert_eq!(first.acts(), [("tagged", 3), ("merged", 1 + 2), ("inserted", 1)]);
    // One free block of 8,192 is too small. The free top grows by the entire need, not by the missing part.
    assert_eq!((first.allocate(8192).address, first.allocator.heap()), (8, 8192 + 16384));
    assert_eq!(first.acts(), [("examined", 1), ("tagged", 1), ("split", 1), ("sbrk", 1)]);
    assert_eq!(first.allocator.allocate(u64::MAX, &mut first.acts), None);
    assert_eq!(first.allocator.allocate(1 << 47, &mut first.acts), None);
}

#[test]
fn cache_by_hand() {
    let mut cache = Bench::new("cache");
    // 33 bytes have size 2, so 64 are requested from FIRST. Nothing is cached before a free.
    let a = cache.allocate(33);
    assert_eq!(cache.acts(), [("tagged", 1), ("split", 1), ("sbrk", 1), ("misses", 1)]);
    cache.allocator.free(a, 33, &mut cache.acts);
    assert_eq!(cache.acts(), [("inserted", 1)]);
    assert_eq!(cache.allocate(64), a);
    assert_eq!(cache.acts(), [("unlinked", 1), ("compared", 1), ("hits", 1)]);
    // Sizes 3 to 6 fill the list; an access to size 2, even though it has no item, makes it the most recently used.
    let items = [65, 97, 129, 161].map(|size| (cache.allocate(size), size));
    items.iter().for_each(|(place, size)| cache.allocator.free(*place, *size, &mut cache.acts));
    cache.acts();
    let b = cache.allocate(40);
    assert_eq!(cache.acts(), [("examined", 1), ("tagged", 1), ("split", 1), ("compared", 5), ("misses", 1)]);
    // Size 1 has no entry: the least recently used entry, size 3, is evicted, and its item returns to FIRST.
    let c = cache.allocate(1);
    cache.acts();
    cache.allocator.free(c, 1, &mut cache.acts);
    assert_eq!(cache.acts(), [("tagged", 1), ("inserted", 2), ("compared", 5), ("flushed", 1), ("flushes", 1)]);
    // Size 2 is still there, third after 1 and 6, because its own access is older.
    cache.allocator.free(b, 40, &mut cache.acts);
    assert_eq!(cache.acts(), [("inserted", 1), ("compared", 2)]);
}

/// An entry with two items is evicted. FIRST searches from the last block inserted into its list, so the order of the
/// items determines which one it returns first.
#[test]
fn the_order_of_flushed_items() {
    let places = |name: &str| {
        let mut cache = Bench::new(name);
        // Blocks in between keep the items apart.
        let blocks: Vec<Place> = [64, 96, 64, 96].map(|size| cache.allocate(size)).into();
        cache.allocator.free(blocks[0], 64, &mut cache.acts);
        cache.allocator.free(blocks[2], 64, &mut cache.acts);
        // The only entry is that of 64; another size replaces it.
        let other = cache.allocate(200);
        cache.allocator.free(other, 200, &mut cache.acts);
        assert!(cache.acts().contains(&("flushed", 2)));
        let next = [cache.allocate(64), cache.allocate(64)];
        next.map(|place| blocks.iter().position(|block| *block == place))
    };
    let (newest, oldest) = (places("cache:entries=1"), places("cache:entries=1:oldest=1"));
    assert_ne!(newest, oldest);
    assert_eq!((newest, oldest), ([Some(0), Some(2)], [Some(2), Some(0)]));
}

/// Live bytes are 10, 30, 20, 0; the heap of `first` is 8,192 throughout.
#[test]
fn measures_by_hand() {
    let calls = [Call::Allocate(10), Call::Allocate(20), Call::Free(0), Call::Free(0)];
    let [outcome] = &simulated(&calls, &["first"], 1)[..] else { panic!("one simulation has one outcome") };
    assert_eq!((outcome.events, outcome.objects, outcome.live_sum, outcome.heap_sum), (4, 2, 60, 4 * 8192));
    let close = |value: Option<f64>, expected: f64| assert!((value.unwrap() - expected).abs() < 1e-12 * expected);
    close(outcome.memory_efficiency, 60.0 / (4.0 * 8192.0));
    let of = &outcome.fragmentation;
    close(of.mean, (8192.0 / 10.0 + 8192.0 / 30.0 + 8192.0 / 20.0) / 3.0);
    close(of.at_most_live, 8192.0 / 30.0);
    close(of.at_most_heap, 8192.0 / 10.0);
    close(of.most_heap_to_most_live, 8192.0 / 30.0);
    // Two mallocs: 2 each, one examined block (the second), one sbrk; two frees: 2 or more each, 2 merges of the last.
    close(outcome.ops, f64::from(2 * 2 + 1 + 1 + 2 + 3) / 2.0);
    let empty = &simulated(&[], &["bsd"], 1)[0];
    assert_eq!((empty.memory_efficiency, empty.ops, empty.fragmentation.mean), (None, None, None));
}

/// Start of the mapped blocks, which are in the upper half of the address space.
const MAPPED: u64 = 1 << 46;

#[test]
fn glibc_by_hand() {
    let mut glibc = Bench::new("glibc");
    // After the cache itself, of 0x290 bytes, and 16 bytes of chunk header, as in every program: 0x2a0.
    let chunks: Vec<Place> = (0..10).map(|_| glibc.allocate(24)).collect();
    assert_eq!([0, 1].map(|n| chunks[n].address), [0x2a0, 0x2c0]);
    // The cache takes seven. Of the other three, in a fast bin, the last is used first, and the others go into the
    // cache.
    chunks.iter().for_each(|chunk| glibc.free(*chunk, 24));
    glibc.acts();
    assert_eq!((glibc.allocate(20), glibc.acts()), (chunks[6], vec![("unlinked", 1)]));
    (0..6).for_each(|_| assert!(glibc.allocate(1).address < chunks[6].address));
    glibc.acts();
    assert_eq!((glibc.allocate(24), glibc.acts()), (chunks[9], vec![("unlinked", 1), ("inserted", 2)]));
    assert_eq!([glibc.allocate(24), glibc.allocate(24)], [chunks[7], chunks[8]]);
    // The chunk grows in place into the top.
    let text = glibc.allocate(2000);
    assert_eq!(glibc.reallocate(text, 2000, 3000).address, text.address);
    // 200,000 bytes are mapped; after they are freed, the next ones are not.
    let held = glibc.allocator.held();
    let mapped = glibc.allocate(200_000);
    assert_eq!((mapped.address >= MAPPED, glibc.allocator.held() - held), (true, 200_704));
    glibc.free(mapped, 200_000);
    assert_eq!((glibc.allocator.held(), glibc.allocate(200_000).address < MAPPED), (held, true));
    glibc.allocator.check().unwrap();
}

#[test]
fn jemalloc_by_hand() {
    let mut jemalloc = Bench::new("jemalloc");
    // A 4,096-byte slab has 32 regions of 128; half of 64 are taken in one batch, and the lowest is used first.
    let [a, b] = [113, 128].map(|size| jemalloc.allocate(size));
    assert_eq!(b.address - a.address, 128);
    // Two extents, each with a record of 128 bytes: the slab and the rest.
    assert_eq!((jemalloc.allocator.heap(), jemalloc.allocator.held()), (2 << 20, 4096 + 2 * 128));
    jemalloc.free(a, 113);
    assert_eq!(jemalloc.allocate(120), a);
    // Resizing is in place within the class only.
    assert_eq!(jemalloc.reallocate(a, 120, 128), a);
    assert_ne!(jemalloc.reallocate(a, 128, 129).address, a.address);
    // 8 MiB are returned immediately.
    let held = jemalloc.allocator.held();
    let large = jemalloc.allocate(8 << 20);
    assert_eq!(jemalloc.allocator.held(), held + (8 << 20));
    jemalloc.free(large, 8 << 20);
    assert_eq!(jemalloc.allocator.held(), held);
    jemalloc.allocator.check().unwrap();
}

#[test]
fn mimalloc_by_hand() {
    let mut mimalloc = Bench::new("mimalloc");
    // The first page begins after the segment's header and links 4,096 bytes of blocks.
    let [a, b] = [1000, 1024].map(|size| mimalloc.allocate(size));
    assert_eq!([a, b].map(|place| place.address), [65536, 65536 + 1024]);
    assert_eq!((mimalloc.allocator.heap(), mimalloc.allocator.held()), (32 << 20, 4096));
    // Freed blocks are reused after the previously linked blocks have been taken.
    mimalloc.free(a, 1000);
    assert_eq!([(); 3].map(|()| mimalloc.allocate(1000).address - 65536), [2048, 3072, 0]);
    // Resizing is in place down to half of the block.
    assert_eq!(mimalloc.reallocate(b, 1024, 512), b);
    assert_ne!(mimalloc.reallocate(b, 512, 500), b);
    mimalloc.allocator.check().unwrap();
}

#[test]
fn tcmalloc_by_hand() {
    let mut tcmalloc = Bench::new("tcmalloc");
    // A cache list is short at first: one block is taken, then two.
    let a = tcmalloc.allocate(100);
    assert_eq!(tcmalloc.acts().iter().find(|(act, _)| *act == "cut"), Some(&("cut", 8192 / 112)));
    let b = tcmalloc.allocate(112);
    assert_eq!((b.address - a.address, tcmalloc.allocator.held()), (112, 8192));
    // The block grows by a quarter or more: 113 bytes become 140, in the class of 144.
    let c = tcmalloc.reallocate(b, 112, 113);
    assert_eq!(tcmalloc.reallocate(c, 113, 144), c);
    tcmalloc.allocator.check().unwrap();
}

#[test]
fn others_by_hand() {
    let mut tlsf = Bench::new("tlsf");
    let [a, b, c] = [24, 25, 24].map(|size| tlsf.allocate(size));
    assert_eq!([a, b, c].map(|place| place.address), [8, 40, 88]);
    tlsf.free(b, 25);
    assert_eq!(tlsf.allocate(40), b);
    let mut buddy = Bench::new("buddy");
    let [a, b, c] = [100, 60, 128].map(|size| buddy.allocate(size));
    assert_eq!([a, b, c].map(|place| place.address), [0, 128, 256]);
    [(a, 100), (b, 60), (c, 128)].into_iter().for_each(|(place, size)| buddy.free(place, size));
    assert!(buddy.acts().contains(&("merged", 15 + 1 + 1)), "splits are undone");
    let mut bump = Bench::new("bump:arena=4096");
    let places: Vec<Place> = (0..5).map(|_| bump.allocate(1024)).collect();
    assert_eq!((places[3].address - places[0].address, bump.allocator.held()), (3072, 8192));
    // The first arena is released along with the last of its four blocks.
    places[..3].iter().for_each(|place| bump.free(*place, 1024));
    assert_eq!(bump.allocator.held(), 8192);
    bump.free(places[3], 1024);
    assert_eq!(bump.allocator.held(), 4096);
    bump.allocator.check().unwrap();
}
