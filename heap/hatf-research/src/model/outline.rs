//! The outline, a model specific to this project. It is small enough to share and follows the live heap over time.
//!
//! A trace is divided into a hundred windows with equal numbers of events. Each window is cut into three frames at the
//! maxima of its live bytes and its live objects, and sizes are divided into groups. For each frame and group, the
//! model stores the numbers of allocated and freed objects. Live objects and bytes are therefore correct at the end of
//! each frame and thus at the peaks of every window. The object to free within a group is chosen by rank, which is the
//! number of younger or older live objects. The largest objects are stored individually. The model preserves neither
//! the order of events within a frame nor the sequence of sizes.

use serde::{Deserialize, Serialize};

use super::packed::Packed;

/// The maximum size of an outline file in bytes.
pub(super) const MOST_BYTES: usize = 64 << 10;
/// Bytes reserved for the rest of the file, which consists of the row of Table 4 and the moments.
pub(super) const HEAD_BYTES: usize = 2 << 10;
/// The number of windows, which have equal numbers of events.
pub(super) const WINDOWS: usize = 100;
/// The number of frames per window.
pub(super) const CUTS: usize = 3;
/// The maximum number of objects stored individually.
pub(super) const LARGE: usize = 2000;
/// An object is large if its size is at least the maximum number of live bytes divided by this number.
pub(super) const LARGE_PART: u64 = 400;
/// The maximum number of groups in a model.
const MOST_GROUPS: usize = 1 << 10;
const MOST_FRAMES: usize = 1 << 9;
const MOST_SIZES: usize = 1 << 10;

/// The number of rank classes. Ranks are counted by power of two from the young end and from the old end, and in a
/// single class in between.
pub(super) const RANKS: usize = 2 * ENDS + 1;
/// The number of powers of two counted at each end.
pub(super) const ENDS: usize = 10;

/// The rank of a freed object among the live objects of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// The number of younger objects.
    Young(u32),
    /// The number of older objects.
    Old(u32),
    /// A rank too far from both ends.
    Between,
}

impl Rank {
    /// Returns the index of the rank's count.
    pub(super) fn bin(self) -> usize {
        let power = |rank: u32| ((rank + 1).ilog2() as usize).min(ENDS - 1);
        match self {
            Self::Young(rank) => power(rank),
            Self::Old(rank) => ENDS + power(rank),
            Self::Between => 2 * ENDS,
        }
    }
}

/// The stored form of an outline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outline {
    /// The number of events in the trace.
    pub(super) events: u64,
    /// The number of events in each frame.
    frames: Packed,
    /// For each group, its sizes (which are equally frequent) and the number of freed objects in each rank class.
    groups: Vec<(Packed, Packed)>,
    /// For each group and frame, the number of objects allocated and the number freed.
    counts: Packed,
    /// Large objects in order of allocation. Each consists of the ticks since the previous object, the lifetime in
    /// ticks (0 if the object is live at the end), and the size.
    large: Packed,
}

/// The contents of an outline.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Unpacked {
    /// The last tick of each frame.
    pub(super) ends: Vec<u64>,
    pub(super) groups: Vec<Group>,
    pub(super) large: Vec<Large>,
}

/// A group of sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Group {
    pub(super) sizes: Vec<u64>,
    pub(super) ranks: Vec<u64>,
    /// Objects allocated and freed in each frame.
    pub(super) counts: Vec<[u64; 2]>,
}

/// An individually stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Large {
    /// The tick of the allocation.
    pub(super) tick: u64,
    /// The tick of the free, or 0 if the object is never freed.
    pub(super) freed: u64,
    pub(super) size: u64,
}

impl Outline {
    /// Packs the collected data. `ends` contains the last ticks of the frames.
    pub(super) fn pack(events: u64, ends: &[u64], groups: &[Group], large: &[Large]) -> Self {
        let lengths = ends.iter().zip([&0].into_iter().chain(ends)).map(|(end, before)| end - before);
        let frames = Packed::new(lengths);
        let group =
            |group: &Group| (Packed::new(group.sizes.iter().copied()), Packed::new(group.ranks.iter().copied()));
        let mut before = 0;
        let objects = large.iter().flat_map(|object| {
            let since = object.tick - std::mem::replace(&mut before, object.tick);
            [since, object.freed.saturating_sub(object.tick), object.size]
        });
        // Store frees as differences from allocations. The differences are 0 while the heap neither grows nor shrinks.
        let counts = groups.iter().flat_map(|group| &group.counts);
        let counts = counts.flat_map(|[allocated, freed]| [*allocated, zigzag(*freed, *allocated)]);
        Self {
            events,
            frames,
            groups: groups.iter().map(group).collect(),
            counts: Packed::new(counts),
            large: Packed::new(objects),
        }
    }

    /// Returns the approximate size of the serialized outline in bytes.
    pub(super) fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|(sizes, ranks)| sizes.len() + ranks.len() + 8).sum();
        groups + self.frames.len() + self.counts.len() + self.large.len() + 100
    }

    /// Returns the number of stored integers.
    pub(super) fn words(&self) -> usize {
        self.unpack().map_or(0, |Unpacked { ends, groups, large }| {
            let of_group = |group: &Group| group.sizes.len() + group.ranks.len() + 2 * ends.len();
            ends.len() + groups.iter().map(of_group).sum::<usize>() + 3 * large.len()
        })
    }

    /// Unpacks the data. Returns `None` if the model is inconsistent.
    pub(super) fn unpack(&self) -> Option<Unpacked> {
        let mut end = 0_u64;
        let lengths = self.frames.numbers(MOST_FRAMES)?;
        let sum = |length: u64| {
            end = end.checked_add(length)?;
            Some(end)
        };
        let ends: Vec<u64> = lengths.into_iter().map(sum).collect::<Option<_>>()?;
        let frames = ends.len();
        let bounded = frames > 0 && self.groups.len() <= MOST_GROUPS && (1..1 << 48).contains(&self.events);
        if !bounded || end != self.events {
            return None;
        }
        let counts = self.counts.numbers(self.groups.len() * frames * 2)?;
        if counts.len() != self.groups.len() * frames * 2 {
            return None;
        }
        let (mut groups, mut events) = (Vec::new(), 0_u64);
        for ((sizes, ranks), counts) in self.groups.iter().zip(counts.chunks(2 * frames)) {
            let (sizes, ranks) = (sizes.numbers(MOST_SIZES)?, ranks.numbers(RANKS)?);
            let pair = |pair: &[u64]| pair.first().zip(pair.get(1)).and_then(|(a, f)| Some([*a, unzigzag(*f, *a)?]));
            let counts: Vec<[u64; 2]> = counts.chunks(2).map(pair).collect::<Option<_>>()?;
            events = counts.iter().flatten().try_fold(events, |sum, count| sum.checked_add(*count))?;
            if sizes.is_empty() || ranks.len() != RANKS || ranks.iter().any(|count| *count >= 1 << 48) {
                return None;
            }
            groups.push(Group { sizes, ranks, counts });
        }
        let numbers = self.large.numbers(3 * LARGE)?;
        let (mut large, mut tick) = (Vec::new(), 0_u64);
        for three in numbers.as_chunks::<3>().0 {
            let [since, live, size] = *three;
            tick = tick.checked_add(since)?;
            let freed = if live == 0 { 0 } else { tick.checked_add(live)? };
            large.push(Large { tick, freed, size });
        }
        let sound = tick <= self.events && events <= self.events && (events > 0 || !large.is_empty());
        (sound && numbers.len().is_multiple_of(3)).then_some(Unpacked { ends, groups, large })
    }
}

/// Encodes the signed difference between two numbers as a non-negative number.
fn zigzag(number: u64, from: u64) -> u64 {
    if number >= from { (number - from) << 1 } else { ((from - number) << 1) - 1 }
}

fn unzigzag(distance: u64, from: u64) -> Option<u64> {
    if distance.is_multiple_of(2) { from.checked_add(distance >> 1) } else { from.checked_sub((distance >> 1) + 1) }
}
