//! Wasted bytes by what blocks have in common: a site, a thread, a size.

use std::collections::BTreeMap;

use serde::Serialize;

/// The blocks with one site, thread or size (or site and size), and what is wasted by them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// What they have in common.
    pub name: String,
    /// Wasted bytes that are theirs. Over all shares this sums to the total exactly.
    pub wasted: u64,
    /// Those of them on pinned pages.
    pub wasted_on_pinned: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Events since the allocation of the oldest.
    pub oldest: u64,
    /// Events since their allocation, summed.
    pub ages: u64,
    /// Nanoseconds since the allocation of the oldest; 0 where the trace has no times.
    pub oldest_nanoseconds: u64,
    /// Nanoseconds since their allocation, on average.
    pub mean_nanoseconds: u64,
    /// The same, summed.
    #[serde(skip)]
    pub(super) nanoseconds: u128,
}

/// What one block adds to its share.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) wasted: u64,
    pub(super) wasted_on_pinned: u64,
    pub(super) bytes: u64,
    pub(super) age: u64,
    pub(super) nanoseconds: u64,
}

/// Sums parts by a key; the largest share of the waste first.
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
