//! Counts the records decoded by each tier, so that a test can detect that a fast path is no longer taken. Does nothing
//! outside tests.

/// The tiers, ordered by the amount of compile-time knowledge they use, most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodedBy {
    Specialized,
    Planned,
    Stateful,
    General,
}

#[cfg(test)]
thread_local! {
    static COUNTS: std::cell::Cell<[u64; 4]> = const { std::cell::Cell::new([0; 4]) };
}

/// Counts a record decoded on this thread.
#[cfg(test)]
pub(crate) fn log(tier: DecodedBy) {
    COUNTS.with(|counts| {
        let mut now = counts.get();
        now[tier as usize] += 1;
        counts.set(now);
    });
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn log(_: DecodedBy) {}

/// Returns the number of records that this thread decoded by each tier since the last call.
#[cfg(test)]
pub(crate) fn logged() -> [u64; 4] {
    COUNTS.with(std::cell::Cell::take)
}
