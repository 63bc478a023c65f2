//! Collects the outline of a trace and fits it into the size limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::ages::Ages;
use super::outline::{CUTS, Group, HEAD_BYTES, LARGE, LARGE_PART, Large, MOST_BYTES, Outline, RANKS, WINDOWS};
use hatf_lab::{AddressMap, Change, ObjectEvent};

/// The maximum number of sizes that represent a group of several sizes.
const SIZES: usize = 16;
/// Groupings to try, best first. Each consists of the number of sizes with their own group, and the criterion by which
/// other sizes share a group. The last grouping has a single group, which always fits.
const GROUPINGS: [(usize, Near); 17] = [
    (400, Near::Bits(2)),
    (200, Near::Bits(2)),
    (128, Near::Bits(2)),
    (96, Near::Bits(2)),
    (64, Near::Bits(2)),
    (48, Near::Bits(2)),
    (32, Near::Bits(2)),
    (16, Near::Bits(2)),
    (8, Near::Bits(2)),
    (0, Near::Bits(2)),
    (16, Near::Bits(1)),
    (0, Near::Bits(1)),
    (8, Near::Bits(0)),
    (0, Near::Bits(0)),
    (0, Near::Powers(2)),
    (0, Near::Powers(8)),
    (0, Near::Powers(64)),
];

/// A criterion for sizes that share a group.
#[derive(Clone, Copy, Debug)]
enum Near {
    /// Sizes that agree in their power of two and in this many bits after the leading bit.
    Bits(u32),
    /// Sizes within this many powers of two.
    Powers(u32),
}

impl Near {
    /// Returns the smallest size that shares a group with `size`.
    fn least(self, size: u64) -> u64 {
        let power = size.max(1).ilog2();
        match self {
            Self::Bits(bits) => size.max(1) >> power.saturating_sub(bits) << power.saturating_sub(bits),
            Self::Powers(powers) => 1 << (power / powers * powers),
        }
    }
}

/// The observations of one size.
#[derive(Debug, Default)]
struct OfSize {
    objects: u64,
    ranks: [u64; RANKS],
    /// Frames with events of the size, as frame numbers with the objects allocated and freed.
    frames: Vec<(usize, [u64; 2])>,
    /// The live objects of the size, by age.
    ages: Ages,
}

/// Objects allocated and freed, by size.
type Counts = AddressMap<[u64; 2]>;

/// The current window, cut at the first maximum of its live bytes and at the first maximum of its live objects.
#[derive(Debug, Default)]
struct Window {
    /// Counts up to the first cut, between the cuts, and after the second cut.
    counts: [Counts; CUTS],
    /// The last ticks before the cut for bytes and the cut for objects.
    cuts: [u64; 2],
    /// The maxima of live bytes and of live objects.
    most: [u64; 2],
}

impl Window {
    fn new(tick: u64, live: [u64; 2]) -> Self {
        Self { counts: Default::default(), cuts: [tick; 2], most: live }
    }

    /// Moves a cut to the current tick if its quantity exceeds the maximum so far.
    fn cut(&mut self, which: usize, live: u64, tick: u64) {
        if live <= self.most[which] {
            return;
        }
        let [first, second, third] = &mut self.counts;
        if self.cuts[which] <= self.cuts[1 - which] {
            add(first, second);
            std::mem::swap(second, third);
        } else {
            add(second, third);
        }
        (self.most[which], self.cuts[which]) = (live, tick);
    }
}

/// Moves the counts in `from` to `to`.
fn add(to: &mut Counts, from: &mut Counts) {
    for (size, [allocated, freed]) in from.drain() {
        let counts = to.entry(size).or_default();
        *counts = [counts[0] + allocated, counts[1] + freed];
    }
}

/// A collector of outlines. Memory is bounded by the live objects and the distinct sizes in each frame.
#[derive(Debug)]
pub(super) struct Collector {
    events: u64,
    sizes: AddressMap<OfSize>,
    /// The tick of the last event.
    tick: u64,
    /// Live bytes and live objects.
    now: [u64; 2],
    window: Window,
    windows: u64,
    /// The last tick of each frame.
    ends: Vec<u64>,
    /// The positions of live objects among the objects of their size, by slot.
    places: Vec<u32>,
    /// The largest objects that have ended. The smallest of them is on top.
    large: BinaryHeap<Reverse<(u64, u64, u64)>>,
}

impl Collector {
    /// Creates a collector for a trace with this number of events.
    pub(super) fn new(events: u64) -> Self {
        Self {
            events: events.max(1),
            sizes: AddressMap::default(),
            tick: 0,
            now: [0; 2],
            window: Window::default(),
            windows: 0,
            ends: Vec::new(),
            places: Vec::new(),
            large: BinaryHeap::new(),
        }
    }

    /// Returns the last tick of the current window.
    fn window_end(&self) -> u64 {
        let end = u128::from(self.events) * u128::from(self.windows + 1) / WINDOWS as u128;
        if self.windows + 1 >= WINDOWS as u64 { u64::MAX } else { u64::try_from(end).unwrap_or(u64::MAX) }
    }

    /// Ends a window and stores its frames with the sizes that occurred.
    fn end_window(&mut self, tick: u64) {
        let window = std::mem::replace(&mut self.window, Window::new(tick, self.now));
        let [bytes, objects] = window.cuts;
        for (counts, end) in window.counts.into_iter().zip([bytes.min(objects), bytes.max(objects), tick]) {
            let frame = self.ends.len();
            self.ends.push(end);
            for (size, counts) in counts {
                self.sizes.entry(size).or_default().frames.push((frame, counts));
            }
        }
        self.windows += 1;
    }

    pub(super) fn event(&mut self, event: &ObjectEvent) {
        while event.tick > self.window_end() {
            self.end_window(event.tick - 1);
        }
        self.tick = event.tick;
        let (slot, size) = (event.object.slot, event.object.size);
        let of_size = self.sizes.entry(size).or_default();
        let freed = event.change == Change::Freed;
        self.window.counts[CUTS - 1].entry(size).or_default()[usize::from(freed)] += 1;
        let [bytes, objects] = self.now;
        self.now =
            if freed { [bytes.saturating_sub(size), objects - 1] } else { [bytes.saturating_add(size), objects + 1] };
        self.window.cut(0, self.now[0], event.tick);
        self.window.cut(1, self.now[1], event.tick);
        match event.change {
            Change::Allocated => {
                of_size.objects += 1;
                of_size.ages.add(slot, &mut self.places);
            }
            Change::Freed => {
                of_size.ranks[of_size.ages.take(slot, &self.places).bin()] += 1;
                self.keep_large(size, event.object.tick, event.tick);
            }
        }
    }

    /// Records an ended object if it is one of the largest.
    fn keep_large(&mut self, size: u64, tick: u64, freed: u64) {
        if self.large.len() < LARGE {
            self.large.push(Reverse((size, tick, freed)));
        } else if self.large.peek().is_some_and(|Reverse(least)| size > least.0) {
            self.large.pop();
            self.large.push(Reverse((size, tick, freed)));
        }
    }

    /// Builds the outline. `live` contains the size and tick of each object that was never freed.
    pub(super) fn finish(mut self, live: impl Iterator<Item = (u64, u64)>, max_bytes: u64) -> Outline {
        self.end_window(self.tick);
        live.for_each(|(size, tick)| self.keep_large(size, tick, 0));
        let least = (max_bytes / LARGE_PART).max(1);
        let objects = self.large.drain().map(|Reverse((size, tick, freed))| Large { tick, freed, size });
        let mut large: Vec<Large> = objects.filter(|object| object.size >= least).collect();
        large.sort_unstable_by_key(|object| object.tick);
        for object in &large {
            let frame = |tick: u64| self.ends.partition_point(|end| *end < tick);
            let frames = [Some(frame(object.tick)), (object.freed > 0).then(|| frame(object.freed))];
            if let Some(of_size) = self.sizes.get_mut(&object.size) {
                for (kind, frame) in frames.into_iter().enumerate() {
                    let counts = of_size.frames.iter_mut().find(|(at, _)| Some(*at) == frame);
                    if let Some(count) = counts.and_then(|(_, counts)| counts.get_mut(kind)) {
                        *count -= 1;
                    }
                }
                of_size.objects -= 1;
            }
        }
        let mut sizes: Vec<(u64, OfSize)> = self.sizes.into_iter().filter(|(_, of_size)| of_size.objects > 0).collect();
        sizes.sort_unstable_by_key(|(size, of_size)| (Reverse(of_size.objects), *size));
        let outline =
            |(own, near)| Outline::pack(self.tick, &self.ends, &groups(&sizes, self.ends.len(), own, near), &large);
        let fits = |outline: &Outline| outline.bytes() + HEAD_BYTES <= MOST_BYTES;
        GROUPINGS.into_iter().map(outline).find(fits).unwrap_or_else(|| outline((0, Near::Powers(64))))
    }
}

/// Builds one group for each of the most frequent sizes, and shared groups for other sizes that are close to each
/// other.
fn groups(sizes: &[(u64, OfSize)], frames: usize, own: usize, near: Near) -> Vec<Group> {
    let mut shared: std::collections::BTreeMap<u64, Vec<&(u64, OfSize)>> = std::collections::BTreeMap::new();
    let (own, others) = sizes.split_at(own.min(sizes.len()));
    for other in others {
        shared.entry(near.least(other.0)).or_default().push(other);
    }
    let mut groups: Vec<Vec<&(u64, OfSize)>> = own.iter().map(|size| vec![size]).collect();
    groups.extend(shared.into_values());
    groups.iter_mut().for_each(|members| members.sort_unstable_by_key(|(size, _)| *size));
    groups.iter().map(|members| group(members, frames)).collect()
}

fn group(members: &[&(u64, OfSize)], frames: usize) -> Group {
    let mut group = Group { sizes: Vec::new(), ranks: vec![0; RANKS], counts: vec![[0; 2]; frames] };
    for (_, of_size) in members {
        group.ranks.iter_mut().zip(of_size.ranks).for_each(|(sum, count)| *sum += count);
        for (frame, [allocated, freed]) in &of_size.frames {
            if let Some(counts) = group.counts.get_mut(*frame) {
                *counts = [counts[0] + allocated, counts[1] + freed];
            }
        }
    }
    // Choose the sizes of equidistant objects, so that each represents equally many objects.
    let objects: u64 = members.iter().map(|(_, of_size)| of_size.objects).sum();
    let wanted = if members.len() == 1 { 1 } else { SIZES as u64 };
    for n in 0..wanted {
        let mut place = (2 * n + 1) * objects / (2 * wanted);
        let found = members.iter().find(|(_, of_size)| {
            let here = place < of_size.objects;
            place = place.saturating_sub(of_size.objects);
            here
        });
        group.sizes.extend(found.map(|(size, _)| *size));
    }
    // Duplicates are kept unless there is a single size, because each entry represents equally many objects.
    group.sizes.dedup_by(|a, b| a == b && wanted == 1);
    group
}
