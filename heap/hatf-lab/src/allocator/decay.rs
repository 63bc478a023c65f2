//! The gradual return of dirty pages to the system, as in jemalloc's `decay.c`. Of the pages that became dirty in each of
//! the last intervals, a part may stay that shrinks with the age of the interval.

use std::collections::VecDeque;

/// The number of intervals (`SMOOTHSTEP_NSTEPS`).
const STEPS: usize = 200;

/// The history of dirty pages.
#[derive(Debug)]
pub(super) struct Decay {
    /// The start of the current interval in nanoseconds.
    from: u64,
    /// The pages that became dirty in each interval, the oldest first.
    added: VecDeque<u64>,
    /// The dirty pages at the end of the last interval, or the pages that could have stayed if these are more.
    before: u64,
}

impl Default for Decay {
    fn default() -> Self {
        Self { from: 0, added: VecDeque::from([0; STEPS]), before: 0 }
    }
}

impl Decay {
    /// Advances to a time. `decay` is the time after which no page stays. If another interval has begun, returns the
    /// number of dirty pages that may stay.
    pub(super) fn advance(&mut self, time: u64, decay: u64, dirty: u64) -> Option<u64> {
        let interval = (decay / STEPS as u64).max(1);
        let passed = time.saturating_sub(self.from) / interval;
        if passed == 0 {
            return None;
        }
        self.from += passed * interval;
        for left in (0..passed.min(STEPS as u64)).rev() {
            self.added.pop_front();
            self.added.push_back(if left == 0 { dirty.saturating_sub(self.before) } else { 0 });
        }
        // The part that stays falls from 1 to 0 along Perlin's curve 6x^5 - 15x^4 + 10x^3.
        let all = STEPS as u128;
        let stays = |x: u128| x.pow(3) * (6 * x * x + 10 * all * all - 15 * all * x);
        let most: u128 = (1..=all).zip(&self.added).map(|(x, pages)| u128::from(*pages) * stays(x)).sum();
        let most = u64::try_from(most / all.pow(5)).unwrap_or(u64::MAX);
        self.before = dirty.max(most);
        Some(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that became dirty at once stay at first; half of them are gone after half of the time.
    #[test]
    fn pages_leave_along_the_curve() {
        let (mut decay, mut dirty, mut seen) = (Decay::default(), 1000, Vec::new());
        for time in 1..=220 {
            dirty = decay.advance(time * 50, 10_000, dirty).unwrap().min(dirty);
            seen.push(dirty);
        }
        assert_eq!(decay.advance(220 * 50 + 49, 10_000, dirty), None);
        assert!(seen.is_sorted_by(|one, next| one >= next));
        assert_eq!([seen[0], seen[20], seen[100], seen[180], seen[200]], [1000, 991, 500, 8, 0]);
    }
}
