//! Wasted bytes by a common property of blocks, such as site, thread or size.

use std::collections::BTreeMap;

use serde::Serialize;

/// The blocks with the same site, thread or size (or site and size), and the waste attributed to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// The name of the common property.
    pub name: String,
    /// The wasted bytes attributed to the blocks. All shares add up to the total exactly.
    pub wasted: u64,
    /// The part of the wasted bytes that is on pinned pages.
    pub wasted_on_pinned: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The requested bytes.
    pub bytes: u64,
    /// Events since the oldest allocation.
    pub oldest: u64,
    /// The sum of the numbers of events since each allocation.
    pub ages: u64,
    /// Nanoseconds since the oldest allocation; 0 if the trace has no timestamps.
    pub oldest_nanoseconds: u64,
    /// The mean number of nanoseconds since the allocations.
    pub mean_nanoseconds: u64,
    /// The sum of the nanoseconds since each allocation.
    #[serde(skip)]
    pub(super) nanoseconds: u128,
}

/// The contribution of one block to its share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) wasted: u64,
    pub(super) wasted_on_pinned: u64,
    pub(super) bytes: u64,
    pub(super) age: u64,
    pub(super) nanoseconds: u64,
}

/// Sums the contributions by key. The share with the most waste comes first.
pub(super) fn shares(parts: impl Iterator<Item = ((u64, u64), Part)>, name: impl Fn(u64, u64) -> String) -> Vec<Share> {
    let mut by_key = BTreeMap::<(u64, u64), Share>::new();
    for (key, part) in parts {
        let share = by_key.entry(key).or_default();
        share.wasted += part.wasted;
        share.wasted_on_pinned += part.wasted_on_pinned;
        share.blocks += 1;
        share.bytes = share.bytes.saturating_add(part.bytes);
        share.oldest = share.oldest.max(part.age);
        share.ages = share.ages.saturating_add(part.age);
        share.oldest_nanoseconds = share.oldest_nanoseconds.max(part.nanoseconds);
        share.nanoseconds += u128::from(part.nanoseconds);
    }
    let named = |((of, size), share): ((u64, u64), Share)| {
        let mean = share.nanoseconds / u128::from(share.blocks.max(1));
        Share { name: name(of, size), mean_nanoseconds: u64::try_from(mean).unwrap_or(u64::MAX), ..share }
    };
    let mut shares: Vec<Share> = by_key.into_iter().map(named).collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.wasted));
    shares
}
