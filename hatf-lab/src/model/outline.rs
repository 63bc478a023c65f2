//! The outline: a model that is small enough to share, and follows the live heap over time. This project's own.
//!
//! A trace is cut into a hundred windows of equal numbers of events, each window into three frames where its live bytes and
//! its live objects are greatest, and sizes into groups. For each frame and group the model holds how many objects were
//! allocated and how many freed, so that live objects and bytes are right at the end of each frame: at every window's peaks.
//! Which object of a group is freed is drawn by its rank: how many younger, or older, ones are live. The largest objects are
//! held one by one. No order of events within a frame is kept, nor which sizes follow each other.

use serde::{Deserialize, Serialize};

use super::packed::Packed;

/// The most bytes of the file of an outline.
pub(super) const MOST_BYTES: usize = 64 << 10;
/// What the rest of the file may need: the row of Table 4, and the moments.
pub(super) const HEAD_BYTES: usize = 2 << 10;
/// Windows of equal numbers of events.
pub(super) const WINDOWS: usize = 100;
/// Frames that a window is cut into.
pub(super) const CUTS: usize = 3;
/// Objects that are held one by one, at most.
pub(super) const LARGE: usize = 2000;
/// An object is large from this part of the most live bytes on.
pub(super) const LARGE_PART: u64 = 400;
/// The most groups, and the most sizes of one, that a model may have.
const MOST_GROUPS: usize = 1 << 10;
const MOST_FRAMES: usize = 1 << 9;
const MOST_SIZES: usize = 1 << 10;

/// Ranks are counted by the power of two that they are below: from the young end, from the old end, and neither.
pub(super) const RANKS: usize = 2 * ENDS + 1;
/// Powers of two at each end: ranks up to 511.
pub(super) const ENDS: usize = 10;

/// Where a freed object was among the live ones of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// This many were younger.
    Young(u32),
    /// This many were older.
    Old(u32),
    /// More at either end.
    Between,
}

impl Rank {
    /// Returns the index of its count.
    pub(super) fn bin(self) -> usize {
        let power = |rank: u32| ((rank + 1).ilog2() as usize).min(ENDS - 1);
        match self {
            Self::Young(rank) => power(rank),
            Self::Old(rank) => ENDS + power(rank),
            Self::Between => 2 * ENDS,
        }
    }
}

/// An outline as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Outline {
    /// Events of the trace.
    pub(super) events: u64,
    /// Events of each frame.
    frames: Packed,
    /// Sizes of each group, each as frequent as the others; and how often each rank was freed.
    groups: Vec<(Packed, Packed)>,
    /// By group and frame: objects allocated, and objects freed.
    counts: Packed,
    /// Large objects, in the order of their ticks: ticks since the one before, ticks that it is live (0: to the end), size.
    large: Packed,
}

/// What is in an outline.
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
    /// Allocated and freed, by frame.
    pub(super) counts: Vec<[u64; 2]>,
}

/// An object that is held by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Large {
    /// When it is allocated.
    pub(super) tick: u64,
    /// When it is freed; 0: never.
    pub(super) freed: u64,
    pub(super) size: u64,
}

impl Outline {
    /// Packs what was collected; `ends` are the last ticks of frames.
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
        // Frees as their distance from allocations: a heap that neither grows nor shrinks has zeros.
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

    /// Returns the bytes of its text, about.
    pub(super) fn bytes(&self) -> usize {
        let groups: usize = self.groups.iter().map(|(sizes, ranks)| sizes.len() + ranks.len() + 8).sum();
        groups + self.frames.len() + self.counts.len() + self.large.len() + 100
    }

    /// Returns how many numbers it holds.
    pub(super) fn words(&self) -> usize {
        self.unpack().map_or(0, |Unpacked { ends, groups, large }| {
            let of_group = |group: &Group| group.sizes.len() + group.ranks.len() + 2 * ends.len();
            ends.len() + groups.iter().map(of_group).sum::<usize>() + 3 * large.len()
        })
    }

    /// Returns what was packed; `None` if the model contradicts itself.
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

/// The distance of a number from another, as one that is not negative.
fn zigzag(number: u64, from: u64) -> u64 {
    if number >= from { (number - from) << 1 } else { ((from - number) << 1) - 1 }
}

fn unzigzag(distance: u64, from: u64) -> Option<u64> {
    if distance.is_multiple_of(2) { from.checked_add(distance >> 1) } else { from.checked_sub((distance >> 1) + 1) }
}
