//! By which tier records were decoded, so that a test can tell that a fast path still runs. Nothing outside of tests.

/// The tiers, from the one that knows most when the program is compiled.
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

/// Counts a record of this thread.
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

/// How many records this thread has decoded by each tier since it was asked last.
#[cfg(test)]
pub(crate) fn logged() -> [u64; 4] {
    COUNTS.with(std::cell::Cell::take)
}
