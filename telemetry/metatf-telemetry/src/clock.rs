//! The clock that timestamps events, and the conversion of stamps to nanoseconds.

#[allow(unreachable_pub, reason = "a file of the recorder's, which gives these to its users")]
mod stamps;

use std::sync::OnceLock;

pub(crate) use stamps::{Clock, nanoseconds as monotonic};

impl Clock {
    /// Chooses the cycle counter if the kernel itself uses it, because then the kernel has verified that the counter
    /// has a constant rate and is synchronized between all cores.
    pub(crate) fn choose() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| {
            let trusted = if cfg!(target_arch = "x86_64") { "tsc" } else { "arch_sys_counter" };
            let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
            let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
            match std::fs::read_to_string(source) {
                Ok(name) if known && name.trim() == trusted => Self::Cycles,
                _ => Self::Monotonic,
            }
        })
    }
}

/// Returns the nanoseconds since 1970 at a time of `CLOCK_MONOTONIC`, assuming the current offset between the clocks.
/// Uses the fastest of three attempts, because the thread may be preempted between the two readings.
pub(crate) fn wall_at(nanoseconds: u64) -> u64 {
    let mut best = (u64::MAX, 0);
    for _ in 0..3 {
        let before = monotonic();
        let wall = wall();
        let took = monotonic().saturating_sub(before);
        if took < best.0 {
            best = (took, wall.wrapping_sub(before.wrapping_add(took / 2)));
        }
    }
    best.1.wrapping_add(nanoseconds)
}

/// Returns the nanoseconds since 1970.
fn wall() -> u64 {
    std::time::UNIX_EPOCH.elapsed().map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// A point in time, given by simultaneous readings of the stamp clock and the system clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) stamp: u64,
    /// The reading of `CLOCK_MONOTONIC`.
    pub(crate) nanoseconds: u64,
}

impl Moment {
    /// Reads both clocks. Uses the fastest of three attempts, because the thread may be preempted between the two
    /// readings.
    pub(crate) fn now(clock: Clock) -> Self {
        if clock == Clock::Monotonic {
            let now = monotonic();
            return Self { stamp: now, nanoseconds: now };
        }
        let mut best = (u64::MAX, Self::default());
        for _ in 0..3 {
            let before = clock.now();
            let nanoseconds = monotonic();
            let took = clock.now().wrapping_sub(before);
            if took < best.0 {
                best = (took, Self { stamp: before.wrapping_add(took / 2), nanoseconds });
            }
        }
        best.1
    }

    /// Reads both clocks twice, a short time apart, and returns the first reading and the line through both readings.
    pub(crate) fn calibrate(clock: Clock) -> (Self, Line) {
        let first = Self::now(clock);
        let mut second = first;
        while clock == Clock::Cycles && second.nanoseconds.wrapping_sub(first.nanoseconds) < 200_000 {
            second = Self::now(clock);
        }
        (first, Line::through(first, second))
    }
}

/// A linear conversion from stamps to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    from: Moment,
    /// Nanoseconds per stamp unit, times 2^32.
    rate: u64,
}

impl Line {
    /// The rate of one nanosecond per unit.
    const ONE: u64 = 1 << 32;

    /// Returns the line through two points, with a rate of one nanosecond per unit if they are equal.
    pub(crate) fn through(from: Moment, to: Moment) -> Self {
        let steps = to.stamp.saturating_sub(from.stamp);
        let nanoseconds = to.nanoseconds.saturating_sub(from.nanoseconds);
        let rate = (u128::from(nanoseconds) << 32).checked_div(u128::from(steps));
        Self { from, rate: rate.and_then(|rate| u64::try_from(rate).ok()).unwrap_or(Self::ONE) }
    }

    /// Returns the line with this rate.
    pub(crate) fn of_rate(from: Moment, rate: u64) -> Self {
        Self { from, rate }
    }

    /// Returns the nanoseconds per stamp unit, times 2^32.
    pub(crate) fn rate(&self) -> u64 {
        self.rate
    }

    /// Returns the number of stamp units in this many nanoseconds.
    pub(crate) fn steps(&self, nanoseconds: u64) -> u64 {
        let steps = (u128::from(nanoseconds) << 32).checked_div(u128::from(self.rate));
        steps.and_then(|steps| u64::try_from(steps).ok()).unwrap_or(0)
    }

    /// Converts a stamp to nanoseconds.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the product is of 64 bits and 64 bits, and 32 bits less: what is over wraps"
    )]
    pub(crate) fn at(&self, stamp: u64) -> u64 {
        let on = |steps: u64| ((u128::from(steps) * u128::from(self.rate)) >> 32) as u64;
        match stamp.checked_sub(self.from.stamp) {
            Some(steps) => self.from.nanoseconds.wrapping_add(on(steps)),
            None => self.from.nanoseconds.saturating_sub(on(self.from.stamp.wrapping_sub(stamp))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_become_nanoseconds_on_the_line() {
        let (from, to) = (Moment { stamp: 1000, nanoseconds: 50 }, Moment { stamp: 4000, nanoseconds: 1050 });
        let line = Line::through(from, to);
        assert_eq!([1000, 2500, 4000, 7000].map(|s| line.at(s)), [50, 549, 1049, 2049]);
        assert_eq!(line.at(850), 1);
        assert_eq!(line.at(0), 0, "before the clock began");
        assert_eq!(line.steps(1000), 3000);
    }

    #[test]
    fn moments_that_tell_nothing_make_no_panic() {
        let far = Moment { stamp: u64::MAX, nanoseconds: u64::MAX };
        assert_eq!(Line::through(far, far).rate(), Line::ONE);
        Line::through(Moment::default(), far).at(u64::MAX);
        Line::of_rate(far, u64::MAX).at(0);
        assert_eq!(Line::of_rate(far, 0).steps(5), 0);
    }

    #[test]
    fn the_clock_goes_on() {
        let clock = Clock::choose();
        let (first, line) = Moment::calibrate(clock);
        let now = Moment::now(clock);
        assert!(line.at(now.stamp) >= first.nanoseconds);
        assert!(Clock::from_number(clock as u32) == Some(clock));
        let difference = wall_at(first.nanoseconds + 5_000_000_000).wrapping_sub(wall_at(first.nanoseconds));
        assert!((4_000_000_000..6_000_000_000).contains(&difference), "{difference}");
    }
}
